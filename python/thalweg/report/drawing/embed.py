"""The data of the page's charts, stored once in columns."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict

from thalweg import analysis
from thalweg.analysis import MEASURES, Axis
from thalweg.analysis.tables.series import spread
from thalweg.report.content import Content, LabelledRun, Measurements, Sweep
from thalweg.report.drawing.charts import templates
from thalweg.report.drawing.colours import PATH, colours
from thalweg.report.drawing.layout import MAX_PANELS, layout
from thalweg.report.page_json import PageJson
from thalweg.report.text.findings import subject
from thalweg.report.text.labels import key_title, setting, short_values, value_text
from thalweg.report.text.numbers import rounded, scale_for
from thalweg.report.text.sentences import along, main_axis
from thalweg.report.text.timelines import Timelines, timelines

MAX_FLOWS = 8
VALUES_BUDGET = 100_000
MIN_VALUES = 12


@dataclass(frozen=True)
class Chart:
    """A bar chart over the sweep."""

    measure: str
    flow: str | None
    """Flow of the chart; None: a measure of the path, or the flows are on the x axis."""
    title: str


TOGETHER = ("goodput", "completion_time", "retransmit_ratio")
"""Measures that have a chart of all flows, or a chart for each flow."""


def line_axis(sweep: Sweep) -> Axis | None:
    """Return the axis over which all flows share one chart; None without an ordered axis, with too few or too many
    flows, or with too many panels.
    """
    axis = main_axis(sweep)
    if axis is None or not 1 < len(sweep.flows) <= MAX_FLOWS:
        return None
    return axis if len(along(sweep, axis)) <= MAX_PANELS else None


def figures(sweep: Sweep, measurements: Measurements) -> list[Chart]:
    """Return the bar charts: `charts`, except of measures for which all flows share a chart of lines."""
    every = charts(sweep, measurements)
    return [chart for chart in every if chart.measure not in TOGETHER] if line_axis(sweep) else every


def charts(sweep: Sweep, measurements: Measurements) -> list[Chart]:
    """Return the charts over the sweep that have values: of the measures `TOGETHER`, one for each of the first
    `MAX_FLOWS` flows, or one with the flows on the x axis; and one of utilisation and one of queueing delay.
    """
    flows: Sequence[str | None] = sweep.flows[:MAX_FLOWS] if sweep.axes else [None]
    candidates: list[tuple[str, str | None]] = [(measure, flow) for measure in TOGETHER for flow in flows]
    first = sweep.flows[0] if sweep.flows else None
    if sweep.axes or sweep.is_of_several_runs:  # for a single point they would have one bar each
        is_sized = bool(sweep.axes) and first in measurements.sized_flows
        candidates += [
            ("utilisation_while_active", first) if is_sized else ("utilisation", None),
            ("queueing_delay", None),
        ]
    present = {(measure, flow) for _, _, flow, measure in measurements.cells} | {
        (key[3], None) for key in measurements.cells
    }
    return [Chart(measure, flow, subject(measure, flow)) for measure, flow in candidates if (measure, flow) in present]


class Distributions(TypedDict):
    """Distributions as columns: point, flow, measure, and the sorted values in the displayed unit."""

    point: list[int]
    flow: list[int]
    measure: list[str]
    values: list[list[float | None]]
    titles: dict[str, str]


class PageData(TypedDict):
    """Input of the page's script, except the figures and their selection lists."""

    templates: dict[str, PageJson]
    runs: Sequence[str]
    runs_title: str
    axes: list[PageJson]
    layout: PageJson
    flows: list[str]
    colours: dict[str, list[str]]
    path_colour: list[str]
    measures: dict[str, PageJson]
    points: PageJson
    numbers: PageJson
    distributions: Distributions
    series: Timelines


def data(content: Content) -> PageData:
    """Return the input of the page's script, except the figures and their selection lists."""
    sweep, measurements = content.sweep, content.measurements
    plan = layout(sweep.axes, len(content.runs))
    hues = colours(sweep.ccs.values())
    points, index = _points(sweep)
    return {
        "templates": templates(),
        "runs": sweep.labels,
        "runs_title": sweep.runs_title,
        "axes": [_axis(axis) for axis in sweep.axes],
        "layout": {"x": plan.x, "panels": plan.panels, "chosen": plan.chosen},
        "flows": sweep.flows,
        "colours": {cc: [hue.light, hue.dark] for cc, hue in hues.items()},
        "path_colour": [PATH.light, PATH.dark],
        "measures": {
            name: {
                "title": _with_unit(measure.title, measurements.scales[name].unit),
                "size": measurements.scales[name].size,
                "decimals": measurements.scales[name].decimals,
            }
            for name, measure in MEASURES.items()
        },
        "points": points,
        "numbers": _numbers(sweep, measurements, index),
        "distributions": _distributions(content.runs, sweep.flows, index),
        "series": timelines(content.runs, sweep.flows, index),
    }


def _axis(axis: analysis.Axis) -> PageJson:
    title, short = short_values(axis)
    return {
        "title": key_title(axis.key),
        "short_title": title,
        "values": [value_text(value) for value in axis.values],
        "short": short,
        "settings": [setting(axis.key, value) for value in axis.values],
    }


def _with_unit(title: str, unit: str) -> str:
    return f"{title} ({unit})" if unit else title


def _points(sweep: Sweep) -> tuple[PageJson, dict[tuple[int, int], int]]:
    columns: PageJson = {
        "run": [point.run for point in sweep.points],
        "experiment": [point.experiment for point in sweep.points],
        "axes": [[axis.values.index(point.values.get(axis.key)) for axis in sweep.axes] for point in sweep.points],
        "cc": [[sweep.ccs.get((point.run, point.experiment, flow)) for flow in sweep.flows] for point in sweep.points],
    }
    return columns, {(point.run, point.experiment): number for number, point in enumerate(sweep.points)}


def _numbers(sweep: Sweep, measurements: Measurements, index: dict[tuple[int, int], int]) -> PageJson:
    measures = {figure.measure for figure in figures(sweep, measurements)}
    flows = {None, *sweep.flows}
    rows = [(key, cell) for key, cell in measurements.cells.items() if key[3] in measures and key[2] in flows]
    return {
        "point": [index[key[0], key[1]] for key, _ in rows],
        "flow": [-1 if key[2] is None else sweep.flows.index(key[2]) for key, _ in rows],
        "measure": [key[3] for key, _ in rows],
        "n": [cell.n for _, cell in rows],
        "mean": [rounded(cell.mean, 7) for _, cell in rows],
        "low": [rounded(cell.low, 7) for _, cell in rows],
        "high": [rounded(cell.high, 7) for _, cell in rows],
    }


def _distributions(
    runs: Sequence[LabelledRun], flow_names: Sequence[str], index: dict[tuple[int, int], int]
) -> Distributions:
    rows: list[tuple[int, int, str, list[float]]] = []
    flows = {flow: number for number, flow in enumerate(flow_names)}
    for number, labelled in enumerate(runs):
        run = labelled.run
        for frame in (analysis.transfer_distributions(run), analysis.rtt_distributions(run)):
            for experiment, flow, measure, values in frame.iter_rows():
                if flow in flows:
                    rows.append((index[number, experiment], flows[flow], measure, values))
    rows = spread(rows, VALUES_BUDGET // MIN_VALUES)
    limit = max(MIN_VALUES, VALUES_BUDGET // max(1, len(rows)))
    titles = {"completion_time": "Completion time", "transfer_goodput": "Goodput", "rtt": "Smoothed RTT"}
    units = {"completion_time": "s", "transfer_goodput": "bit/s", "rtt": "s"}
    largest = {measure: max((row[3][-1] for row in rows if row[2] == measure), default=1.0) for measure in titles}
    scales = {measure: scale_for(units[measure], [value]) for measure, value in largest.items()}
    return {
        "point": [point for point, _, _, _ in rows],
        "flow": [flow for _, flow, _, _ in rows],
        "measure": [measure for _, _, measure, _ in rows],
        "values": [
            [rounded(value / scales[measure].size, 4) for value in spread(values, limit)]
            for _, _, measure, values in rows
        ],
        "titles": {measure: _with_unit(title, scales[measure].unit) for measure, title in titles.items()},
    }
