"use strict";
// Instantiates the chart templates of the page's data and draws them. Draws them again when the reader selects another
// point, when the width changes, and when the colour scheme changes.
(() => {
  const { within, darkness, fill, sample, draw, empty, then, whenLookChanges } = globalThis.thalweg;
  const data = JSON.parse(document.getElementById("data").textContent);
  const all = (selector) => [...document.querySelectorAll(selector)];
  const points = data.points.run.map((run, i) => ({ run, experiment: data.points.experiment[i],
    axes: data.points.axes[i], cc: data.points.cc[i] }));
  const PATH = ""; // key of values without a congestion control

  const look = () => {
    const which = darkness.matches ? 1 : 0;
    const ccs = Object.keys(data.colours);
    return {
      ...globalThis.thalweg.theme(),
      path: data.path_colour[which],
      ccs: [...ccs, PATH],
      colours: [...ccs.map((cc) => data.colours[cc][which]), data.path_colour[which]],
    };
  };

  // Line styles of a point: the colour of the congestion control; flows that share it differ by shade, then by dashes.
  const PATTERNS = [[1, 0], [6, 3], [2, 2]];
  const styles = (theme, number) => {
    const seen = {};
    return data.flows.map((flow, i) => {
      const cc = points[number]?.cc[i] ?? PATH;
      const turn = seen[cc] ?? 0;
      seen[cc] = turn + 1;
      const shade = turn % 2 ? (darkness.matches ? 0.62 : 0.45) : 1;
      const base = theme.colours[theme.ccs.indexOf(cc)] ?? theme.path;
      const parts = [1, 3, 5].map((at) => Math.round(parseInt(base.slice(at, at + 2), 16) * shade));
      return { flow, cc, colour: `rgb(${parts.join(",")})`, dash: PATTERNS[Math.floor(turn / 2) % PATTERNS.length] };
    });
  };

  // --- bars over the sweep -----------------------------------------------------------------------------------------

  const chosen = new Map(data.layout.chosen.map((axis) => [axis, 0]));
  const xAxis = data.layout.x === null ? null : data.axes[data.layout.x];

  const panelOf = (point) => {
    const parts = data.layout.panels.map((axis) => data.axes[axis].settings[point.axes[axis]]);
    return (data.runs.length > 1 ? [data.runs[point.run], ...parts] : parts).join(" · ");
  };

  const barRows = (measure, flow, scale) => {
    const { numbers } = data;
    const rows = [];
    numbers.point.forEach((number, i) => {
      const point = points[number];
      const name = data.flows[numbers.flow[i]];
      if (numbers.measure[i] !== measure || (xAxis && name !== flow)) return;
      if ([...chosen].some(([axis, value]) => point.axes[axis] !== value)) return;
      const [mean, low, high] = [numbers.mean[i], numbers.low[i], numbers.high[i]].map((value) => (value === null ? null
        : value / scale.size));
      const fixed = (value) => value.toFixed(scale.decimals);
      const label = [panelOf(point), xAxis ? xAxis.settings[point.axes[data.layout.x]] :
        name].filter(Boolean).join(" · ");
      const text = low === null ? fixed(mean) : `${fixed(mean)} (${fixed(low)} to ${fixed(high)})`;
      rows.push({
        x: xAxis ? xAxis.short[point.axes[data.layout.x]] : name ?? "path",
        panel: panelOf(point), mean, high, drawn_low: low === null ? null : Math.max(0, low), n: numbers.n[i],
        cc: measure === "utilisation_while_active" || name === undefined ? PATH : point.cc[numbers.flow[i]],
        label, text, description: `${label}: ${scale.title} ${text}, n = ${numbers.n[i]}`,
      });
    });
    return rows;
  };

  const columnsFor = (panels, width) => {
    const perRow = data.runs.length > 1 && panels % data.runs.length === 0 ? panels / data.runs.length : panels;
    const room = Math.max(1, Math.floor((width - 50) / (width < 560 ? 145 : 210)));
    if (perRow <= room) return perRow;
    return Math.ceil(perRow / Math.ceil(perRow / room));
  };

  const MIN_BAR_PX = 14; // height of a line of a vertical label
  const MIN_SLANTED_PX = 20;

  const drawBars = async (element, theme) => {
    const { measure, title } = element.dataset;
    const scale = data.measures[measure];
    const rows = barRows(measure, element.dataset.flow || undefined, scale);
    if (!rows.length) return empty(element, "No values.");
    const panels = [...new Set(points.map(panelOf))].filter((panel) => rows.some((row) => row.panel === panel));
    const domain = xAxis ? xAxis.short : data.flows.filter((flow) => rows.some((row) => row.x === flow));
    const width = element.clientWidth;
    const columns = columnsFor(panels.length, width);
    const each = panels.length > 1 ? Math.floor((width - 64 - 22 * (columns - 1)) / columns) : Math.min(width - 64,
      Math.max(560, 26 * domain.length));
    const spec = fill(data.templates.bars, {
      ...theme, x_domain: domain.length ? domain : ["path"], panels, x_title: xAxis ? xAxis.short_title : "flow",
        y_title: scale.title,
    });
    const inner = spec.spec;
    // In a chart with only zeros, Vega would place zero in the middle of the axis.
    if (rows.every((row) => row.mean === 0 && !row.high)) inner.layer[0].encoding.y.scale = { domain: [0, 1] };
    // Vega warns about a layer without data, because its axis would have no extent.
    if (rows.every((row) => row.drawn_low === null)) inner.layer.pop();
    const longest = Math.max(...domain.map((text) => text.length));
    // Every bar keeps its label: horizontal if there is space, otherwise slanted, otherwise vertical. A chart that is
    // still too wide scrolls within its box.
    const wide = Math.max(each, MIN_BAR_PX * domain.length);
    const angle = longest * 6.5 * domain.length <= wide ? 0 : wide / domain.length >= MIN_SLANTED_PX ? -40 : -90;
    inner.layer.forEach((layer) => { layer.encoding.x.axis.labelAngle = angle; });
    const lines = panels.some((panel) => panel.length * 7 > each);
    if (!lines) delete spec.facet.header.labelExpr;
    inner.width = Math.max(80, wide);
    inner.height = 150;
    spec.columns = columns;
    const whole = panels.length > 1 ? spec : { ...inner, $schema: spec.$schema, data: spec.data };
    whole.description = `Bars: ${title} by ${xAxis ? xAxis.title : "flow"}${panels.length > 1 ? `, ${panels.length} panels` : ""}. The table of numbers has the values.`;
    return draw(element, whole, rows, theme);
  };

  // --- one point ---------------------------------------------------------------------------------------------------

  const wanted = { run: 0, axes: data.axes.map(() => 0) };
  if (points.length) wanted.axes = [...points[0].axes];
  const current = () => points.findIndex((point) => point.run === wanted.run && point.axes.every((value, axis) =>
    value === wanted.axes[axis]));

  const drawCdf = (element, theme, number) => {
    const { measure } = element.dataset;
    const { distributions } = data;
    const rows = [];
    distributions.point.forEach((point, i) => {
      if (point !== number || distributions.measure[i] !== measure) return;
      const flow = data.flows[distributions.flow[i]];
      const cc = points[number].cc[distributions.flow[i]];
      const values = distributions.values[i];
      const add = (v, share) => rows.push({ v, share, flow, cc, line: flow });
      if (values.length) add(values[0], 0);
      values.forEach((v, place) => add(v, (place + 1) / values.length));
    });
    if (!rows.length) return empty(element, "No value at this point.");
    const spec = fill(data.templates.cdf, { ...theme, x_title: distributions.titles[measure] });
    const values = rows.map((row) => row.v);
    // Values can differ by orders of magnitude; on a linear axis the smallest would be a vertical line at the left end.
    if (Math.min(...values) > 0 && Math.max(...values) > 8 * Math.min(...values)) spec.encoding.x.scale = { type: "log",
      nice: false };
    spec.width = element.clientWidth;
    spec.height = 190;
    spec.autosize = { type: "fit", contains: "padding" };
    spec.description = `Cumulative distribution of ${distributions.titles[measure]}, a line per flow.`;
    return draw(element, spec, rows, theme);
  };

  // Curves are encoded as 16-bit fractions of the last time `end` and of the maximum value `top`.
  const curves = (entry, kind) => {
    const { flow, points: counts, top, packed } = entry.curves[kind];
    const bytes = Uint8Array.from(atob(packed), (character) => character.charCodeAt(0));
    const view = new DataView(bytes.buffer);
    const total = bytes.length / 4;
    let start = 0;
    return flow.map((which, line) => {
      const points = Array.from({ length: counts[line] }, (_, i) => ({
        t: (view.getUint16(2 * (start + i), true) / 65535) * entry.end, v: (view.getUint16(2 * (total + start + i),
          true) / 65535) * top,
      }));
      start += counts[line];
      return { flow: which, line, points };
    });
  };

  const hidden = new Set();
  const seriesRows = (kind, entry, number, range) => {
    if (!(kind in entry.curves)) return [];
    return curves(entry, kind).filter(({ flow }) => flow < 0 || !hidden.has(flow)).flatMap(({ flow, line,
      points: all }) => within(all, range, (point) => point.t).map(({ t, v }) => ({
      t, v, flow: flow < 0 ? "queue" : data.flows[flow], cc: flow < 0 ? PATH : points[number].cc[flow], line:
        kind.startsWith("queue") ? "backlog" : String(line),
    })));
  };

  const drawSeries = (element, theme, number, entry) => {
    const { kind } = element.dataset;
    const range = zoomed?.range() ?? null;
    const rows = entry ? seriesRows(kind, entry, number, range) : [];
    if (!rows.length) return empty(element,
      hidden.size && entry?.curves[kind] ? "No flow shown here has this quantity." : "Not recorded at this point.");
    if (kind === "queue") {
      const top = Math.max(...rows.map((row) => row.v));
      // The capacity of a nearly empty queue is not drawn, because the backlog would be a line at the bottom.
      if (entry.room !== null && entry.room <= 4 * top) rows.push({ v: entry.room, line: "room" });
      entry.drops.filter((t) => range === null || (t >= range[0] && t <= range[1])).forEach((t) => rows.push({ t,
        v: entry.room !== null && entry.room <= 4 * top ? entry.room : top, line: "drops" }));
    }
    const template = kind.startsWith("queue") ? data.templates.queue : data.templates.lines;
    const lines = new Set(rows.map((row) => row.line));
    const isLast = element === all(".series .chart").filter(isShown).at(-1);
    const spec = fill(template, { ...theme, t_domain: range ?? [0, entry.end], x_title: isLast ? "time (s)" : null,
      y_title: element.dataset.axis });
    if (spec.layer) spec.layer = spec.layer.filter((layer) => lines.has(layer.name));
    spec.width = element.clientWidth;
    spec.height = 172;
    spec.autosize = { type: "fit", contains: "padding" };
    spec.description = `${element.dataset.title} over time in one repetition.`;
    return draw(element, spec, rows, theme);
  };

  // Switches of the flows; if there are too many flows, only the first ones have a switch.
  const MAX_SWITCHES = 24;
  const showLegend = (lines) => {
    const legend = document.getElementById("point-legend");
    const known = lines.map((line, flow) => ({ ...line, flow: line.flow, number: flow }))
      .filter((line) => line.cc !== PATH);
    legend.replaceChildren(...known.slice(0, MAX_SWITCHES).map((line) => {
      const label = document.createElement("label");
      const box = document.createElement("input");
      box.type = "checkbox";
      box.checked = !hidden.has(line.number);
      box.addEventListener("change", () => {
        if (box.checked) hidden.delete(line.number);
        else hidden.add(line.number);
        then(drawPoint);
      });
      const cc = document.createElement("small");
      cc.textContent = line.cc;
      label.append(...(known.length > 1 ? [box] : []), sample(line.colour, line.dash), `${line.flow} `, cc);
      return label;
    }));
    if (known.length > MAX_SWITCHES) legend.append(`and ${known.length - MAX_SWITCHES} more`);
  };

  const isShown = (element) => !element.closest("figure").hidden;

  const drawPoint = async () => {
    const number = current();
    const lines = styles(look(), number);
    const theme = { ...look(), flows: data.flows, flow_colours: lines.map((line) => line.colour),
      dashes: lines.map((line) => line.dash) };
    showLegend(lines);
    const entry = entryOf(number);
    const text = document.getElementById("point-text");
    if (number < 0) text.textContent = "This run has no such point.";
    else if (!entry) text.textContent = data.series.left_out ?
      `The time series of ${data.series.left_out} of ${data.series.left_out + data.series.entries.length} points, including this one, are left out to limit the size of the page.` : "This point has no time series.";
    else {
      const [connections, drawn] = entry.connections;
      text.textContent = `The charts show repetition ${entry.repetition} (seed ${entry.seed}), whose goodput of ${data.series.first_flow} is the median of all repetitions.`
        + (drawn < connections ? ` Of ${connections} connections, ${drawn} have their own curves.` : "");
      const replay = document.querySelector(`.replay[data-run="${points[number].run}"]`);
      const pick = `.experiment == ${points[number].experiment} and .repetition == ${entry.repetition}`;
      replay.textContent = `jq '.plan | .experiments |= map(select(${pick}))' ${replay.dataset.json} | thalweg-engine run --plan - --out replay`;
    }
    zoomed?.write();
    for (const element of all("#detail .chart").filter(isShown)) {
      if (number < 0) empty(element, "Nothing to draw.");
      else if (element.dataset.kind === "cdf") await drawCdf(element, theme, number);
      else await drawSeries(element, theme, number, entry);
    }
  };

  const entryOf = (number) => data.series.entries.find((each) => each.point === number);
  const toolbar = document.getElementById("zoom");
  const zoomed = toolbar && globalThis.thalweg.zoom(toolbar, () => [0, entryOf(current())?.end || 1], () =>
    then(drawTime));
  const drawTime = async () => {
    const number = current();
    const lines = styles(look(), number);
    const theme = { ...look(), flows: data.flows, flow_colours: lines.map((line) => line.colour),
      dashes: lines.map((line) => line.dash) };
    for (const element of all(".series .chart").filter(isShown)) await drawSeries(element, theme, number,
      entryOf(number));
  };
  all(".series .chart").forEach((element) => zoomed?.listen(element));
  const quantities = all("#quantities input");
  const showQuantities = () => quantities.forEach((box) =>
    { document.querySelector(`.series [data-kind="${box.value}"]`).closest("figure").hidden = !box.checked; });
  quantities.forEach((box) => box.addEventListener("change", () => { showQuantities(); then(drawTime); }));
  showQuantities();

  const drawCharts = async () => {
    const theme = look();
    for (const element of all("#charts .bars .chart")) await drawBars(element, theme);
  };

  // --- choices -----------------------------------------------------------------------------------------------------

  const choice = (parent, title, texts, value, take) => {
    const label = document.createElement("label");
    const select = document.createElement("select");
    texts.forEach((text, i) => select.add(new Option(text, String(i), false, i === value)));
    select.addEventListener("change", () => take(Number(select.value)));
    label.append(title, select);
    parent.append(label);
  };

  const offer = () => {
    const forPoint = document.getElementById("point-choices");
    if (data.runs.length > 1) choice(forPoint, data.runs_title, data.runs, 0, (value) => { wanted.run = value;
      zoomed?.forget(); then(drawPoint); });
    data.axes.forEach((axis, i) => choice(forPoint, axis.title, axis.values, wanted.axes[i], (value) =>
      { wanted.axes[i] = value; zoomed?.forget(); then(drawPoint); }));
    const forCharts = document.getElementById("chart-choices");
    if (forCharts) data.layout.chosen.forEach((i) => choice(forCharts, data.axes[i].title, data.axes[i].values, 0,
      (value) => { chosen.set(i, value); then(drawCharts); }));
  };

  const panels = new Set(points.map(panelOf)).size;
  document.querySelector(".bars")?.style.setProperty("--least", panels > 2 || (xAxis && xAxis.values.length > 8) ?
    "100%" : panels > 1 ? "480px" : "340px");
  offer();
  then(drawCharts);
  then(drawPoint).then(() => { document.documentElement.dataset.drawn = "yes"; });
  whenLookChanges(() => { then(drawCharts); then(drawPoint); });
})();
