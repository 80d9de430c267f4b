"""Figures over the sweep of a report, and of single points."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from thalweg import analysis
from thalweg.analysis import MEASURES, QUANTITIES
from thalweg.report.content import LabelledRun, Measurements, Point, Sweep
from thalweg.report.drawing.embed import TOGETHER, Chart, charts, line_axis
from thalweg.report.drawing.embed import figures as bar_charts
from thalweg.report.drawing.figure import Figure, Scaled, quantity_axis
from thalweg.report.drawing.layout import MAX_PANELS, Layout, layout
from thalweg.report.page_json import PageJson
from thalweg.report.text.labels import setting, short_values
from thalweg.report.text.sentences import along, flow_name
from thalweg.results import Run

MIN_VALUES = 3
"""Minimum number of values in both dimensions of a heat map; fewer are easier to read as bars."""
MAX_POINTS = 24
LOG_RANGE = 8
"""Ratio of the largest to the smallest value from which on an axis is logarithmic."""


def sweep_figures(sweep: Sweep, measurements: Measurements) -> list[Figure]:
    """Return the figures over the sweep: a line for each flow if there is a `line_axis`, and bars."""
    plan = layout(sweep.axes, len(sweep.labels))
    bars = [figure for chart in bar_charts(sweep, measurements) for figure in _bars(sweep, measurements, plan, chart)]
    return [*flow_figures(sweep, measurements), *bars]


def flow_figures(sweep: Sweep, measurements: Measurements) -> list[Figure]:
    """Return a figure per measure with a line for each flow over the main axis; the other axes are panels."""
    axis = line_axis(sweep)
    if axis is None:
        return []
    title, short = short_values(axis)
    numbers = [_number(text) for text in short]
    is_numeric = None not in numbers
    positions: dict[str, float | str] = dict(
        zip(map(str, axis.values), numbers if is_numeric else short, strict=True)  # type: ignore[arg-type]
    )
    positive = [number for number in numbers if number]
    is_log = is_numeric and len(positive) == len(numbers) and max(positive) >= LOG_RANGE * min(positive)
    figures = []
    for measure in (MEASURES[name] for name in TOGETHER):
        rows = [
            {
                "x": positions[str(point.values[axis.key])],
                "y": cell.mean,
                "low": cell.low,
                "high": cell.high,
                "series": flow_name(sweep, flow),
                "panel": " · ".join(series.settings),
            }
            for series in along(sweep, axis)
            for flow in sweep.flows
            for point in series.points
            if (cell := measurements.cell(point, measure.name, flow))
        ]
        if rows:
            figures.append(
                Figure(
                    slug(f"flows-{measure.name}"),
                    f"{measure.title} of each flow",
                    "lines",
                    pl.DataFrame(rows, infer_schema_length=None),
                    x=Scaled(title, is_log=is_log),
                    y=Scaled(measure.title, measure.unit),
                )
            )
    return figures


def _number(text: str) -> float | None:
    """Return the number in a value of an axis; None if it is not a number.

    >>> _number("0.5"), _number("40ms")
    (0.5, None)
    """
    try:
        return float(text)
    except ValueError:
        return None


def heat_maps(sweep: Sweep, measurements: Measurements) -> list[Figure]:
    """Return a heat map per chart if the sweep has two ordered dimensions with enough values."""
    ordered = [i for i, axis in enumerate(sweep.axes) if axis.is_ordered and len(axis.values) >= MIN_VALUES]
    if len(ordered) < 2:
        return []
    x, y = sorted(ordered, key=lambda i: (-len(sweep.axes[i].values), i))[:2]
    rest = [i for i in range(len(sweep.axes)) if i not in (x, y)]
    panels: list[int] = []
    count = len(sweep.labels)
    for i in sorted(rest, key=lambda i: len(sweep.axes[i].values)):
        if count * len(sweep.axes[i].values) > MAX_PANELS:
            break
        panels.append(i)
        count *= len(sweep.axes[i].values)
    roles = _Roles(x, y, sorted(panels), [i for i in rest if i not in panels])
    return [figure for chart in charts(sweep, measurements) if (figure := _map(sweep, measurements, roles, chart))]


def point_figures(runs: Sequence[LabelledRun], sweep: Sweep) -> Iterator[Figure]:
    """Return the distributions and time series of the first points of the sweep."""
    points = sweep.points[:MAX_POINTS]
    for number, labelled in enumerate(runs):
        run = labelled.run
        run_points = {point.experiment: point for point in points if point.run == number}
        if not run_points:
            continue
        yield from _distributions(run, run_points, sweep)
        typical = analysis.typical_repetitions(labelled.repetitions, sweep.flows[0]) if sweep.flows else {}
        pairs = [(experiment, typical[experiment]) for experiment in run_points if experiment in typical]
        for series in analysis.series(run, pairs):
            point_name = sweep.text(run_points[series.experiment])
            for name, lines in series.lines.items():
                if not lines:
                    continue
                quantity = QUANTITIES[name]
                rows = [
                    {"t_s": t, "value": value, "flow": line.name, "line": str(i)}
                    for i, line in enumerate(lines)
                    for t, value in zip(line.t_s, line.value, strict=True)
                ]
                yield Figure(
                    slug(f"{name}-{point_name}"), _at(quantity.title, point_name), "series", pl.DataFrame(rows),
                    y=quantity_axis(quantity),
                )  # fmt: skip


def slug(text: str) -> str:
    """Convert a text to a file name.

    >>> slug("goodput-large bbr, buffer 0.5bdp")
    'goodput-large-bbr-buffer-0.5bdp'
    """
    return re.sub(r"[^A-Za-z0-9._]+", "-", text).strip("-.")[:120] or "figure"


def _bars(sweep: Sweep, measurements: Measurements, plan: Layout, chart: Chart) -> Iterator[Figure]:
    measure, flow = chart.measure, chart.flow
    if plan.x is None:
        names = sweep.flows if flow is None and MEASURES[measure].of == "flow" else [flow]
        rows = [
            _row(sweep, measurements, point, measure, name) | {"x": name or "path"}
            for point in sweep.points
            for name in names
            if measurements.cell(point, measure, name)
        ]
        if rows:
            yield _bar_figure(chart, rows, "flow", "")
        return
    axis = sweep.axes[plan.x]
    title, short = short_values(axis)
    groups: dict[str, list[PageJson]] = {}
    for value, text in zip(axis.values, short, strict=True):
        for point in sweep.points:
            if point.values.get(axis.key) != value or not measurements.cell(point, measure, flow):
                continue
            position = {"x": text, "panel": _settings(sweep, point, plan.panels)}
            groups.setdefault(_settings(sweep, point, plan.chosen), []).append(
                _row(sweep, measurements, point, measure, flow) | position
            )
    for chosen, rows in groups.items():
        yield _bar_figure(chart, rows, title, chosen)


def _bar_figure(chart: Chart, rows: list[PageJson], x: str, chosen: str) -> Figure:
    measure = MEASURES[chart.measure]
    return Figure(
        slug("-".join(part for part in ("bars", measure.name, chart.flow or "", chosen) if part)),
        _at(chart.title, chosen), "bars", pl.DataFrame(rows, infer_schema_length=None),
        x=Scaled(x), y=Scaled(measure.title, measure.unit),
    )  # fmt: skip


@dataclass(frozen=True)
class _Roles:
    x: int
    y: int
    panels: list[int]
    chosen: list[int]


def _map(sweep: Sweep, measurements: Measurements, roles: _Roles, chart: Chart) -> Figure | None:
    x, y = roles.x, roles.y
    measure, flow = MEASURES[chart.measure], chart.flow
    names = [dict(zip(sweep.axes[i].values, short_values(sweep.axes[i])[1], strict=True)) for i in (x, y)]
    keys = sweep.axes[x].key, sweep.axes[y].key
    rows = []
    indices = [{str(value): index for index, value in enumerate(sweep.axes[i].values)} for i in (x, y)]
    order = sorted(
        sweep.points,
        key=lambda point: [index.get(str(point.values.get(key)), 0) for index, key in zip(indices, keys, strict=True)],
    )
    for point in order:
        cell = measurements.cell(point, measure.name, flow)
        if cell is None:
            continue
        rows.append(
            {
                "x": names[0][point.values.get(keys[0])],  # type: ignore[index]
                "y": names[1][point.values.get(keys[1])],  # type: ignore[index]
                "value": cell.mean,
                "low": cell.low,
                "high": cell.high,
                "panel": _settings(sweep, point, roles.panels),
                "engine": sweep.labels[point.run],
                "choice": _settings(sweep, point, roles.chosen, ", "),
            }
        )
    if not rows:
        return None
    return Figure(
        slug("-".join(part for part in ("map", measure.name, flow or "") if part)),
        chart.title, "heatmap", pl.DataFrame(rows, infer_schema_length=None),
        x=Scaled(short_values(sweep.axes[x])[0]), y=Scaled(short_values(sweep.axes[y])[0]),
        value=Scaled(measure.title, measure.unit),
    )  # fmt: skip


def _row(sweep: Sweep, measurements: Measurements, point: Point, measure: str, flow: str | None) -> PageJson:
    cell = measurements.cell(point, measure, flow)
    assert cell is not None
    cc = sweep.ccs.get((point.run, point.experiment, flow or ""), "")
    return {
        "y": cell.mean, "low": cell.low, "high": cell.high, "engine": sweep.labels[point.run],
        "series": "" if measure == "utilisation_while_active" else cc,
    }  # fmt: skip


def _settings(sweep: Sweep, point: Point, axes: list[int], separator: str = " · ") -> str:
    return separator.join(setting(sweep.axes[i].key, point.values.get(sweep.axes[i].key)) for i in axes)


def _distributions(run: Run, run_points: Mapping[int, Point], sweep: Sweep) -> Iterator[Figure]:
    titles = {"completion_time": "Completion time", "transfer_goodput": "Goodput of transfers", "rtt": "Smoothed RTT"}
    frame = pl.concat([analysis.transfer_distributions(run), analysis.rtt_distributions(run)])
    for (experiment, measure), group in frame.group_by("experiment", "measure", maintain_order=True):
        point = run_points.get(int(str(experiment)))
        if point is None:
            continue
        rows = [
            {"value": value, "share": (rank + 1) / len(values), "series": flow}
            for flow, values in group.select("flow", "values").iter_rows()
            for rank, value in enumerate(values)
        ]
        if not rows:
            continue
        values = [row["value"] for row in rows]
        point_name = sweep.text(point)
        title = titles[str(measure)]
        yield Figure(
            slug(f"cdf-{measure}-{point_name}"), _at(title, point_name), "cdf", pl.DataFrame(rows),
            # Values can differ by orders of magnitude; on a linear axis the smallest would be a vertical line.
            x=Scaled(title, "bit/s" if measure == "transfer_goodput" else "s", max(values) > 8 * min(values) > 0),
        )  # fmt: skip


def _at(title: str, point_name: str) -> str:
    return f"{title}: {point_name}" if point_name else title
