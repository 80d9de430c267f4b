"use strict";
// What the scripts of all pages share: templates are filled in, drawn, and replaced. It asks nothing of the network.
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

  // The colours and the font of the page, as they are now.
  const theme = () => {
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(`--${name}`).trim();
    return { ink: colour("ink"), muted: colour("muted"), line: colour("line"), alarm: colour("alarm"), font: style.fontFamily };
  };

  // A line as it is drawn, for legends.
  const sample = (colour, dash) => {
    const drawing = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    const stroke = document.createElementNS("http://www.w3.org/2000/svg", "line");
    const set = (node, values) => Object.entries(values).forEach(([name, value]) => node.setAttribute(name, value));
    set(drawing, { width: 30, height: 8, "aria-hidden": "true" });
    set(stroke, { x1: 1, x2: 29, y1: 4, y2: 4, stroke: colour, "stroke-width": 2.5, "stroke-dasharray": dash.join(" ") });
    drawing.append(stroke);
    return drawing;
  };

  const config = (theme) => ({
    background: "transparent", font: theme.font, view: { stroke: null },
    axis: {
      labelColor: theme.muted, titleColor: theme.muted, labelFontSize: 11, titleFontSize: 11, titleFontWeight: 400, titlePadding: 8,
      grid: false, domainColor: theme.line, tickColor: theme.line, tickSize: 4, labelPadding: 4,
    },
    axisX: { domain: false, ticks: false },
    axisY: { grid: true, gridColor: theme.line, domain: false, ticks: false },
    header: { labelColor: theme.ink, labelFontSize: 12, labelFontWeight: 600 },
    facet: { spacing: 22 },
  });

  const draw = async (element, spec, rows, theme) => {
    const { clientHeight } = element;
    element.style.minHeight = `${clientHeight}px`; // the page does not jump while a chart is replaced
    spec.datasets = { rows };
    const result = await globalThis.vegaEmbed(element, spec, {
      mode: "vega-lite", renderer: "svg", ast: true, config: config(theme), tooltip: { theme: darkness.matches ? "dark" : "light" },
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

  // Drawings follow one another: a change during one is drawn once it is finished.
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

  return { darkness, fill, theme, sample, draw, empty, then, whenLookChanges };
})();
