"use strict";
// Draws the figures of a study: when they come into view, again when the reader chooses an engine, hides a line or zooms,
// and when the width or the colours change.
(() => {
  const { darkness, fill, theme, sample, draw, empty, then, whenLookChanges } = globalThis.thalweg;
  const { figures, engines } = JSON.parse(document.getElementById("data").textContent);
  const charts = [...document.querySelectorAll(".chart[data-figure]")];
  const states = figures.map(() => ({ hidden: new Set(), zoom: null, is_drawn: false }));
  let engine = null; // null: all

  // Rows travel as columns; a column of texts as the numbers of its distinct values.
  const unpacked = ({ columns, texts }) => {
    const names = Object.keys(columns);
    return (columns[names[0]] ?? []).map((_, i) => Object.fromEntries(names.map((name) => {
      const value = columns[name][i];
      return [name, name in texts && value !== null ? texts[name][value] : value];
    })));
  };
  figures.forEach((figure) => { figure.rows = unpacked(figure.rows); });

  const colour = (line) => line.colour[darkness.matches ? 1 : 0];

  // How many panels stand beside one another, and how wide each is.
  const LEAST = { heatmap: 250, series: 330, cdf: 230 };
  const layout = (kind, panels, width) => {
    const room = Math.max(1, Math.floor((width - 50) / Math.min(width - 50, LEAST[kind] ?? 230)));
    const perRow = Math.min(room, panels);
    const columns = Math.ceil(panels / Math.ceil(panels / perRow));
    return { columns, each: Math.max(120, Math.floor((width - 64 - 22 * (columns - 1)) / columns)) };
  };

  const turn = (spec, name, texts, each) => {
    const longest = Math.max(...texts.map((text) => text.length));
    const angle = longest * 6.3 * texts.length > each && texts.length <= 24 ? -40 : 0;
    (spec.layer ?? [spec]).forEach((layer) => { if (layer.encoding[name]?.axis) layer.encoding[name].axis.labelAngle = angle; });
  };

  const drawFigure = async (element) => {
    const number = Number(element.dataset.figure);
    const figure = figures[number];
    const state = states[number];
    const look = theme();
    const rows = figure.rows.filter((row) => !state.hidden.has(row.series) && (engine === null || row.engine === engine || row.engine === null));
    if (!rows.some((row) => row.kind !== "theory")) return empty(element, figure.rows.length ? "Nothing is chosen, or this engine did not run it." : "Nothing was measured.");
    const panels = figure.panels.filter((panel) => rows.some((row) => row.panel === panel));
    const width = element.clientWidth;
    const { columns, each } = layout(figure.kind, panels.length, width);
    const ends = rows.reduce(([low, high], row) => [Math.min(low, row.x), Math.max(high, row.x)], [Infinity, -Infinity]);
    const spec = fill(figure.spec, {
      ...look, names: figure.lines.map((line) => line.name), colours: figure.lines.map(colour), dashes: figure.lines.map((line) => line.dash),
      shapes: figure.lines.map((line) => line.shape), panels, x_domain: figure.x_domain, y_domain: figure.y_domain,
      t_domain: state.zoom ?? [Math.min(0, ends[0]), ends[1]], gradient: Math.min(260, width - 120),
    });
    const inner = spec.spec;
    const isMap = figure.kind === "heatmap";
    const cells = figure.x_domain.length;
    inner.width = panels.length > 1 ? each : Math.min(width - 76, isMap ? 64 * cells : figure.kind === "series" ? width : 720);
    if (isMap) inner.width = Math.min(inner.width, 64 * cells);
    inner.height = isMap ? Math.min(34, Math.max(20, inner.width / cells)) * figure.y_domain.length : panels.length > 1 ? 170 : 250;
    if (isMap && inner.width / cells < 31) inner.layer = inner.layer.filter((layer) => layer.name !== "numbers");
    if (cells) turn(inner, "x", figure.x_domain, inner.width);
    spec.columns = columns;
    spec.facet.header.labelLimit = inner.width;
    if (panels.some((panel) => panel.length * 7 > inner.width)) spec.facet.header.labelExpr = "split(datum.label, ' · ')";
    if (panels.length > 1 && isMap) spec.spacing = 24;
    const whole = panels.length > 1 ? spec : { ...inner, $schema: spec.$schema, data: spec.data };
    whole.description = figure.description;
    await draw(element, whole, figure.kind === "series" && state.zoom ? rows : rows, look);
    state.is_drawn = true;
  };

  // --- legends: a line that is switched off is gone from the drawing -------------------------------------------------

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
    if (!legend.children.length && named.length === 1) legend.append(sample(colour(named[0]), named[0].dash), named[0].name);
    legend.hidden = !legend.childNodes.length;
  };

  if (engines.length > 1) {
    const label = document.createElement("label");
    const select = document.createElement("select");
    ["all, side by side", ...engines].forEach((text, i) => select.add(new Option(text, String(i))));
    select.addEventListener("change", () => {
      engine = select.value === "0" ? null : engines[Number(select.value) - 1];
      states.forEach((state) => { state.is_drawn = false; });
      watch();
    });
    label.append("engine", select);
    document.getElementById("figure-choices").append(label);
  }

  // A page can hold many figures: each is drawn once it is about to be seen.
  let watcher;
  const watch = () => {
    watcher?.disconnect();
    watcher = new IntersectionObserver((entries) => entries.forEach((entry) => {
      if (!entry.isIntersecting || states[Number(entry.target.dataset.figure)].is_drawn) return;
      then(() => drawFigure(entry.target));
    }), { rootMargin: "600px" });
    charts.forEach((element) => watcher.observe(element));
  };
  const redraw = () => {
    states.forEach((state) => { state.is_drawn = false; });
    charts.forEach(offerLines);
    watch();
  };
  redraw();
  whenLookChanges(redraw);
  addEventListener("beforeprint", () => charts.forEach((element) => { if (!states[Number(element.dataset.figure)].is_drawn) then(() => drawFigure(element)); }));
  then(() => { document.documentElement.dataset.drawn = "yes"; });
})();
