"use strict";
// Shared code of pages: instantiates templates, draws charts, and zooms.
globalThis.thalweg = (() => {
  document.documentElement.dataset.script = "runs";
  const darkness = matchMedia("(prefers-color-scheme: dark)");

  // --- templates ---------------------------------------------------------------------------------------------------

  const fill = (part, values) => {
    if (typeof part === "string") return part.startsWith("@") ? values[part.slice(1)] : part;
    if (Array.isArray(part)) {
      const only = part.length === 1 && typeof part[0] === "string" && part[0].startsWith("@");
      return only ? values[part[0].slice(1)] : part.map((each) => fill(each, values));
    }
    if (part === null || typeof part !== "object") return part;
    return Object.fromEntries(Object.entries(part).map(([key, value]) => [key, fill(value, values)]));
  };

  // Returns the current colours and font of the page.
  const theme = () => {
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(`--${name}`).trim();
    return { ink: colour("ink"), muted: colour("muted"), line: colour("line"), alarm: colour("alarm"),
      font: style.fontFamily };
  };

  // Returns an image of a line, for legends.
  const sample = (colour, dash) => {
    const drawing = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    const stroke = document.createElementNS("http://www.w3.org/2000/svg", "line");
    const set = (node, values) => Object.entries(values).forEach(([name, value]) => node.setAttribute(name, value));
    set(drawing, { width: 30, height: 8, "aria-hidden": "true" });
    set(stroke, { x1: 1, x2: 29, y1: 4, y2: 4, stroke: colour, "stroke-width": 2.5,
      "stroke-dasharray": dash.join(" ") });
    drawing.append(stroke);
    return drawing;
  };

  const config = (theme) => ({
    background: "transparent", font: theme.font, view: { stroke: null },
    axis: {
      labelColor: theme.muted, titleColor: theme.muted, labelFontSize: 11, titleFontSize: 11, titleFontWeight: 400,
        titlePadding: 8,
      grid: false, domainColor: theme.line, tickColor: theme.line, tickSize: 4, labelPadding: 4,
    },
    axisX: { domain: false, ticks: false },
    axisY: { grid: true, gridColor: theme.line, domain: false, ticks: false },
    header: { labelColor: theme.ink, labelFontSize: 12, labelFontWeight: 600 },
    legend: { labelColor: theme.muted, titleColor: theme.muted, labelFontSize: 11, titleFontSize: 11,
      titleFontWeight: 400 },
    facet: { spacing: 22 },
  });

  const draw = async (element, spec, rows, theme) => {
    const { clientHeight } = element;
    element.style.minHeight = `${clientHeight}px`; // keeps the page from scrolling while a chart is replaced
    spec.datasets = { rows };
    const result = await globalThis.vegaEmbed(element, spec, {
      mode: "vega-lite", renderer: "svg", ast: true, config: config(theme), tooltip: { theme: darkness.matches ? "dark"
        : "light" },
      actions: { export: true, source: false, compiled: false, editor: false }, downloadFileName: element.dataset.title,
    });
    element.finalize?.();
    element.finalize = result.finalize;
    element.style.minHeight = "";
    element.querySelector("summary")?.setAttribute("aria-label", `Save the chart: ${element.dataset.title}`);
  };

  const empty = (element, text) => {
    element.finalize?.();
    element.finalize = undefined;
    element.classList.remove("vega-embed");
    const paragraph = document.createElement("p");
    paragraph.className = "empty";
    paragraph.textContent = text;
    element.replaceChildren(paragraph);
  };

  // --- zoom --------------------------------------------------------------------------------------------------------

  // A time range that one or several charts show. It is set by dragging on a chart, by typing, or with buttons, so that
  // it works with mouse and keyboard. `whole()` returns both ends of the time, `take(range)` draws a range (null:
  // everything).
  const zoom = (toolbar, whole, take) => {
    let range = null;
    const field = (title, end) => {
      const label = document.createElement("label");
      const input = document.createElement("input");
      Object.assign(input, { type: "number", min: 0, step: "any", inputMode: "decimal" });
      input.addEventListener("change", () => {
        const wanted = [...(range ?? whole())];
        wanted[end] = Number(input.value);
        show(wanted);
      });
      label.append(title, input);
      toolbar.append(label);
      return input;
    };
    const button = (text, title, work) => {
      const made = Object.assign(document.createElement("button"), { type: "button", textContent: text, title });
      made.setAttribute("aria-label", title);
      made.addEventListener("click", work);
      toolbar.append(made);
      return made;
    };
    const moved = (low, high) => () => {
      const [a, b] = range ?? whole();
      show([a + low * (b - a), b + high * (b - a)]);
    };
    const from = field("from (s)", 0);
    const to = field("to (s)", 1);
    button("+", "Zoom in", moved(0.25, -0.25));
    const out = button("\u2212", "Zoom out", moved(-0.5, 0.5));
    const earlier = button("\u2190", "Earlier", moved(-0.5, -0.5));
    const later = button("\u2192", "Later", moved(0.5, 0.5));
    const reset = button("Whole time", "Show the whole time", () => show(null));
    const hint = document.createElement("span");
    hint.textContent = "or drag across a chart";
    toolbar.append(hint);
    const write = () => {
      const [a, b] = range ?? whole();
      [from.value, to.value] = [Number(a.toPrecision(6)), Number(b.toPrecision(6))];
      [out, earlier, later, reset].forEach((each) => { each.disabled = range === null; });
      toolbar.classList.toggle("zoomed", range !== null);
    };
    const show = (wanted) => {
      const [first, last] = whole();
      let next = null;
      if (wanted && wanted.every(Number.isFinite)) {
        let [a, b] = wanted[0] < wanted[1] ? wanted : [wanted[1], wanted[0]];
        if (a < first) [a, b] = [first, Math.min(last, b + (first - a))];
        if (b > last) [a, b] = [Math.max(first, a - (b - last)), last];
        if (b - a > 1e-6 * (last - first) && (a > first || b < last)) next = [a, b];
      }
      range = next;
      write();
      take(range);
    };
    // Returns the box of the plot of a chart that is under a pointer, else undefined.
    const plot = (element, event) => [...element.querySelectorAll("svg path.background")]
      .map((path) => path.getBoundingClientRect())
      .filter((box) => box.width > 0 && event.clientX >= box.left - 4 && event.clientX <= box.right + 4 &&
        event.clientY >= box.top && event.clientY <= box.bottom)
      .sort((a, b) => a.width * a.height - b.width * b.height)[0];
    const listen = (element) => {
      element.classList.add("zooms");
      element.addEventListener("pointerdown", (event) => {
        const box = event.button === 0 && !event.target.closest("details") ? plot(element, event) : undefined;
        if (!box) return;
        const [a, b] = range ?? whole();
        const place = (x) => Math.min(box.right, Math.max(box.left, x));
        const brush = Object.assign(document.createElement("div"), { className: "brush" });
        const own = element.getBoundingClientRect();
        const start = place(event.clientX);
        let end = start;
        const drag = (moving) => {
          end = place(moving.clientX);
          Object.assign(brush.style, {
            left: `${Math.min(start, end) - own.left}px`, width: `${Math.abs(end - start)}px`,
              top: `${box.top - own.top}px`, height: `${box.height}px`,
          });
          element.append(brush);
        };
        const stop = () => {
          element.removeEventListener("pointermove", drag);
          ["pointerup", "pointercancel"].forEach((each) => element.removeEventListener(each, finish));
          brush.remove();
        };
        const finish = (ending) => {
          stop();
          const time = (x) => a + ((x - box.left) / box.width) * (b - a);
          if (ending.type === "pointerup" && Math.abs(end - start) > 4) show([time(start), time(end)].sort((x, y) =>
            x - y));
        };
        event.preventDefault();
        element.setPointerCapture(event.pointerId);
        element.addEventListener("pointermove", drag);
        ["pointerup", "pointercancel"].forEach((each) => element.addEventListener(each, finish));
      });
      element.addEventListener("dblclick", () => show(null));
    };
    return { listen, write, range: () => range, forget: () => { range = null; write(); } };
  };

  // Returns the points within a time range, and the ones before and after it, so that a line extends to both edges.
  const within = (points, range, time) => (range === null ? points : points.filter((point, i) =>
    (time(points[Math.min(i + 1, points.length - 1)]) >= range[0] && time(points[Math.max(i - 1, 0)]) <= range[1])));

  // Drawings are sequential: a change during a drawing is drawn when it has finished.
  let queue = Promise.resolve();
  const then = (work) => { queue = queue.then(work).catch((error) => console.error(error)); return queue; };

  const whenLookChanges = (work) => {
    let width = innerWidth;
    let pending = 0;
    addEventListener("resize", () => {
      if (innerWidth === width) return;
      width = innerWidth;
      clearTimeout(pending);
      pending = setTimeout(work, 150);
    });
    darkness.addEventListener("change", work);
  };

  return { zoom, within, darkness, fill, theme, sample, draw, empty, then, whenLookChanges };
})();
