"""The table of key numbers: a row per point of the sweep and flow."""

from dataclasses import dataclass

from thalweg.analysis import MEASURES
from thalweg.report.content import Cell, Measurements, Point, Sweep
from thalweg.report.text.labels import NOTHING, key_title, value_text

FLOW_MEASURES = (
    "goodput",
    "completion_time",
    "retransmit_ratio",
    "copies_jain",
    "utilisation_while_active",
    "completion_time_p99",
    "video_bitrate",
    "stall_time",
    "page_time_half",
    "page_time",
)
PATH_MEASURES = ("utilisation", "queueing_delay", "utilisation_up", "queueing_delay_up")

MAX_ROWS = 1300
"""Approximate maximum number of rows on a page; more would make it slow to open."""


@dataclass(frozen=True)
class Heading:
    """A heading of a column of numbers."""

    title: str
    unit: str
    about: str


@dataclass(frozen=True)
class Number:
    """A cell of the table."""

    measure: str
    text: str
    half_width: str | None
    cell: Cell | None
    is_partial: bool
    """Whether more than `NEGLIGIBLE` of the transfers were incomplete, so that this time covers only the others."""


@dataclass(frozen=True)
class NumbersRow:
    """A row: one flow at one point."""

    point: list[str]
    """Sweep values, and the label of the run if there are several; only in the first row of a point."""
    span: int
    """Number of rows of the point; only in its first row, else 0."""
    experiment: int
    run: int
    flow: str
    cc: str
    n: str
    numbers: list[Number]
    path: list[Number]
    """Numbers of the path; only in the first row of a point."""


@dataclass(frozen=True)
class NumbersTable:
    """The complete table."""

    point_headings: list[str]
    flow_headings: list[Heading]
    path_headings: list[Heading]
    rows: list[NumbersRow]
    n: str | None
    """Number of repetitions behind every row; None: it varies, and has a separate column."""
    points_left_out: int

    @property
    def has_partial(self) -> bool:
        """Whether a note about incomplete transfers is needed."""
        return any(number.is_partial for row in self.rows for number in row.numbers)


def table(sweep: Sweep, measurements: Measurements) -> NumbersTable:
    """Return the table; columns without any value are omitted."""
    flow_measures = [measure for measure in FLOW_MEASURES if measurements.has(measure)]
    path_measures = [measure for measure in PATH_MEASURES if measurements.has(measure)]
    rows = []
    points = sweep.points_side_by_side
    max_points = max(1, MAX_ROWS // max(1, len(sweep.flows)))
    for point in points[:max_points]:
        head = [value_text(point.values.get(axis.key)) for axis in sweep.axes]
        if sweep.is_of_several_runs:
            head.append(sweep.labels[point.run])
        flows = [flow for flow in sweep.flows if (point.run, point.experiment, flow) in sweep.ccs]
        for position, flow in enumerate(flows):
            is_first = position == 0
            rows.append(
                NumbersRow(
                    head if is_first else [],
                    len(flows) if is_first else 0,
                    point.experiment,
                    point.run,
                    flow,
                    sweep.ccs[point.run, point.experiment, flow],
                    _repetitions(measurements, point, flow),
                    [_number(measurements, point, measure, flow) for measure in flow_measures],
                    [_number(measurements, point, measure, None) for measure in path_measures] if is_first else [],
                )
            )
    counts = {row.n for row in rows}
    headings = [key_title(axis.key) for axis in sweep.axes]
    return NumbersTable(
        [*headings, sweep.runs_title] if sweep.is_of_several_runs else headings,
        [_heading(measurements, measure) for measure in flow_measures],
        [_heading(measurements, measure) for measure in path_measures],
        rows,
        counts.pop() if len(counts) == 1 else None,
        max(0, len(points) - max_points),
    )


def _heading(measurements: Measurements, measure: str) -> Heading:
    return Heading(MEASURES[measure].title, measurements.scales[measure].unit, MEASURES[measure].about)


def _repetitions(measurements: Measurements, point: Point, flow: str) -> str:
    cell = measurements.cell(point, "transfers", flow)
    return str(cell.n) if cell else "0"


def _number(measurements: Measurements, point: Point, measure: str, flow: str | None) -> Number:
    cell = measurements.cell(point, measure, flow)
    if cell is None:
        return Number(measure, NOTHING, None, None, False)
    scale = measurements.scales[measure]
    is_partial = (
        measure.startswith(("completion_time", "page_time"))
        and flow is not None
        and measurements.is_cut_off(point, flow)
    )
    return Number(measure, scale.text(cell.mean), scale.half_width(cell.low, cell.high), cell, is_partial)
