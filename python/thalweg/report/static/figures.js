"use strict";
// Draws figures (see draw.py) when they scroll into view, and again when the reader selects a value, hides a line or
// zooms, and when the width or the colours change.
(() => {
  const { darkness, fill, theme, sample, draw, empty, then, whenLookChanges, zoom, within } = globalThis.thalweg;
  const { figures, choices } = JSON.parse(document.getElementById("data").textContent);
  const charts = [...document.querySelectorAll(".chart[data-figure]")];
  const states = figures.map(() => ({ hidden: new Set(), zoom: null, isDrawn: false }));
  // A selection keeps the rows whose column has the selected value or no value; null: all rows.
  const chosen = Object.fromEntries(choices.map(({ column, values, has_all }) => [column, has_all ? null : values[0]]));
  const isChosen = (row) => choices.every(({ column }) => chosen[column] === null || row[column] === undefined ||
    row[column] === null || row[column] === chosen[column]);

  // Rows are encoded as columns, and texts as indices of the column's distinct values.
  const unpacked = ({ columns, texts }) => {
    const names = Object.keys(columns);
    return (columns[names[0]] ?? []).map((_, i) => Object.fromEntries(names.map((name) => {
      const value = columns[name][i];
      return [name, name in texts && value !== null ? texts[name][value] : value];
    })));
  };
  figures.forEach((figure) => { figure.rows = unpacked(figure.rows); });

  const colour = (line) => line.colour[darkness.matches ? 1 : 0];

  const LEAST = { heatmap: 250, series: 330, cdf: 230 };
  // Returns the number of panels in a row, and the width of each.
  const layout = (kind, panels, width) => {
    const room = Math.max(1, Math.floor((width - 50) / Math.min(width - 50, LEAST[kind] ?? 230)));
    const perRow = Math.min(room, panels);
    const columns = Math.ceil(panels / Math.ceil(panels / perRow));
    return { columns, each: Math.max(120, Math.floor((width - 64 - 22 * (columns - 1)) / columns)) };
  };

  const turn = (spec, name, texts, each) => {
    const longest = Math.max(...texts.map((text) => text.length));
    const angle = longest * 6.3 * texts.length > each && texts.length <= 24 ? -40 : 0;
    // The bounding boxes of rotated labels overlap, although their texts do not.
    const labelOverlap = angle && each / texts.length >= 16 ? false : "greedy";
    (spec.layer ?? [spec]).forEach((layer) => { Object.assign(layer.encoding[name]?.axis ?? {}, { labelAngle: angle,
      labelOverlap }); });
  };

  const ends = (figure) => figure.rows.reduce(([low, high], row) => [Math.min(low, row.x), Math.max(high, row.x)], [0,
    0]);

  // Returns the points of curves over time that a zoomed figure shows.
  const zoomed = (rows, range) => {
    if (!range) return rows;
    const lines = new Map();
    rows.forEach((row) => {
      const key = `${row.panel}\n${row.line}`;
      lines.set(key, [...(lines.get(key) ?? []), row]);
    });
    return [...lines.values()].flatMap((points) => within(points, range, (row) => row.x));
  };

  const drawFigure = async (element) => {
    const number = Number(element.dataset.figure);
    const figure = figures[number];
    const state = states[number];
    const look = theme();
    const rows = figure.rows.filter((row) => !state.hidden.has(row.series) && isChosen(row));
    if (!rows.some((row) => row.kind !== "theory")) return empty(element, figure.rows.length ?
      "The selection has no values." : "No values.");
    const panels = figure.panels.filter((panel) => rows.some((row) => row.panel === panel));
    const width = element.clientWidth;
    const { columns, each } = layout(figure.kind, panels.length, width);
    const spec = fill(figure.spec, {
      ...look, names: figure.lines.map((line) => line.name), colours: figure.lines.map(colour),
        dashes: figure.lines.map((line) => line.dash),
      shapes: figure.lines.map((line) => line.shape), panels, x_domain: figure.x_domain, y_domain: figure.y_domain,
      t_domain: state.zoom?.range() ?? ends(figure), gradient: Math.min(260, width - 120),
    });
    const inner = spec.spec;
    const isMap = figure.kind === "heatmap";
    const cells = figure.x_domain.length;
    inner.width = panels.length > 1 ? each : Math.min(width - 76, isMap ? 64 * cells : figure.kind === "series" ? width
      : 720);
    if (isMap) inner.width = Math.min(inner.width, 64 * cells);
    inner.height = isMap ? Math.min(34, Math.max(20, inner.width / cells)) * figure.y_domain.length : panels.length > 1
      ? 170 : 250;
    if (isMap && inner.width / cells < 31) inner.layer = inner.layer.filter((layer) => layer.name !== "numbers");
    if (cells) turn(inner, "x", figure.x_domain, inner.width);
    spec.columns = columns;
    spec.facet.header.labelLimit = inner.width;
    if (panels.some((panel) =>
      panel.length * 7 > inner.width)) spec.facet.header.labelExpr = "split(datum.label, ' · ')";
    if (panels.length > 1 && isMap) spec.spacing = 24;
    const whole = panels.length > 1 ? spec : { ...inner, $schema: spec.$schema, data: spec.data };
    whole.description = figure.description;
    state.zoom?.write();
    await draw(element, whole, zoomed(rows, state.zoom?.range()), look);
  };

  // --- legends: a line that is switched off is removed from the drawing ----------------------------------------------

  const offerLines = (element) => {
    const number = Number(element.dataset.figure);
    const figure = figures[number];
    const legend = element.parentElement.querySelector(".legend");
    const named = figure.lines.filter((line) => line.name);
    legend.replaceChildren(...(named.length > 1 || named.some((line) => line.is_theory) ? named : []).map((line) => {
      const label = document.createElement("label");
      const box = document.createElement("input");
      box.type = "checkbox";
      box.checked = !states[number].hidden.has(line.name);
      box.addEventListener("change", () => {
        if (box.checked) states[number].hidden.delete(line.name);
        else states[number].hidden.add(line.name);
        then(() => drawFigure(element));
      });
      label.append(box, sample(colour(line), line.dash), line.name);
      return label;
    }));
    if (!legend.children.length && named.length === 1) {
      const only = document.createElement("span");
      only.append(sample(colour(named[0]), named[0].dash), named[0].name);
      legend.append(only);
    }
    legend.hidden = !legend.childNodes.length;
  };

  choices.forEach(({ title, column, values, has_all: hasAll }) => {
    const label = document.createElement("label");
    const select = document.createElement("select");
    (hasAll ? ["all, side by side", ...values] : values).forEach((text, i) => select.add(new Option(text, String(i))));
    select.addEventListener("change", () => {
      chosen[column] = hasAll ? [null, ...values][Number(select.value)] : values[Number(select.value)];
      redraw();
    });
    label.append(title, select);
    document.getElementById("figure-choices").append(label);
  });

  charts.forEach((element) => {
    const number = Number(element.dataset.figure);
    if (figures[number].kind !== "series") return;
    const toolbar = document.createElement("div");
    toolbar.className = "zoom";
    element.before(toolbar);
    states[number].zoom = zoom(toolbar, () => ends(figures[number]), () => then(() => drawFigure(element)));
    states[number].zoom.listen(element);
    states[number].zoom.write();
  });

  // A page can contain many figures; each is drawn when it is about to become visible.
  let watcher;
  const watch = () => {
    watcher?.disconnect();
    watcher = new IntersectionObserver((entries) => entries.forEach((entry) => {
      if (!entry.isIntersecting || states[Number(entry.target.dataset.figure)].isDrawn) return;
      states[Number(entry.target.dataset.figure)].isDrawn = true;
      then(() => drawFigure(entry.target));
    }), { rootMargin: "600px" });
    charts.forEach((element) => watcher.observe(element));
  };
  const redraw = () => {
    states.forEach((state) => { state.isDrawn = false; });
    charts.forEach(offerLines);
    watch();
  };
  redraw();
  whenLookChanges(redraw);
  addEventListener("beforeprint", () => charts.forEach((element) =>
    { if (!states[Number(element.dataset.figure)].isDrawn) then(() => drawFigure(element)); }));
  document.documentElement.dataset.figures = "ready";
})();
