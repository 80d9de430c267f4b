"""Cells of the grid: measurements of both engines for each flow at each point."""

from dataclasses import dataclass, field
from typing import Literal

import polars as pl

from thalweg.analysis import Estimate, half_width
from thalweg.plan import Experiment
from thalweg.plan.models import Flow, LoadUnlimited, RepeatOnce
from thalweg.scenario.sweep import Assignment
from thalweg.validate.errors import ERRORS
from thalweg.validate.part import EngineSide, GridPart

State = Literal["compared", "lacking", "failed", "untrustworthy", "not run"]

PointKind = Literal["solo", "pair", "many", "transfers"]
"""Flows at a point: a single unlimited connection, two of them, more of them (or repeated ones, or background
traffic), or flows that include limited ones.
"""


@dataclass(frozen=True)
class ComparedMeasure:
    """A measure on both engines, as medians over repetitions, and the error of the first engine."""

    first: float | None
    second: float | None
    error: float | None
    noise: float | None = None
    """Maximum difference that random variation explains; None: unknown without repetitions."""

    @property
    def within_noise(self) -> bool:
        """Return whether the values differ, but within the uncertainty of the repetitions."""
        if self.first is None or self.second is None or self.noise is None:
            return False
        return 0 < abs(self.first - self.second) <= self.noise


@dataclass(frozen=True)
class GridCell:
    """A flow at a point of a scenario, or all of its flows together."""

    scenario: str
    point: Assignment
    flow: str | None
    """Flow; None: the path, with all flows."""
    cc: str | None
    kind: PointKind
    state: State
    measures: dict[str, ComparedMeasure] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    """Reasons why it is not compared, or not in all repetitions."""


def compare(part: GridPart) -> list[GridCell]:
    """Compare a scenario point by point: each flow, and at points of the kind `many` the path."""
    cells = []
    for point in part.points:
        sides = [_state(side, point.experiment) for side in part.sides]
        state: State = next((state for state, _ in sides if state != "compared"), "compared")
        notes = list(dict.fromkeys(note for _, notes in sides for note in notes))
        point_of_sweep = {key: point.sweep[key] for key in part.sweep_keys}
        kind = kind_of(point)
        has_share = kind in ("pair", "many") and len(point.flows) > 1
        for flow in (*point.flows, *([None] if kind == "many" else [])):
            name, cc = (flow.name, flow.cc) if flow else (None, None)
            measure_names = _measure_names(flow, has_share=has_share) if flow else ["utilisation"]
            measures = _measures(part, point.experiment, name, measure_names) if state == "compared" else {}
            cell_notes = [*notes, *_without_value(part, name, measures)]
            cells.append(GridCell(part.name, point_of_sweep, name, cc, kind, state, measures, cell_notes))
    return cells


def kind_of(point: Experiment) -> PointKind:
    """Return the kind of a point."""
    if not all(isinstance(flow.load, LoadUnlimited) for flow in point.flows):
        return "transfers"
    if point.background or not all(isinstance(flow.repeat, RepeatOnce) for flow in point.flows):
        return "many"
    connections = sum(flow.count for flow in point.flows)
    return "solo" if connections == 1 else "pair" if connections == 2 else "many"


def _measure_names(flow: Flow, *, has_share: bool) -> list[str]:
    is_endless = isinstance(flow.load, LoadUnlimited)
    measure_names = ["goodput" if is_endless else "completion_time", "retransmit_ratio", "rtt_mean"]
    return [*measure_names, "share"] if has_share else measure_names


def _measures(
    part: GridPart, experiment: int, flow: str | None, measure_names: list[str]
) -> dict[str, ComparedMeasure]:
    compared = {}
    for name in ERRORS:
        if name in measure_names:
            first, second = (_estimate(side, experiment, flow, name) for side in part.sides)
            if first is None or second is None:
                compared[name] = ComparedMeasure(_median(first), _median(second), None)
                continue
            error = ERRORS[name].of(first.median, second.median)
            compared[name] = ComparedMeasure(first.median, second.median, error, half_width(first, second))
    return compared


def _without_value(part: GridPart, flow: str | None, measures: dict[str, ComparedMeasure]) -> list[str]:
    """Return notes on values that cannot be compared: only one engine has them, or only the reference is 0."""
    notes = []
    for name, compared in measures.items():
        values = (compared.first, compared.second)
        if compared.error is None and values != (None, None):
            side_ = next((side for side, value in zip(part.sides, values, strict=True) if value is None), part.sides[1])
            notes.append(f"{side_.engine.name}: {flow or 'the path'} has no {ERRORS[name].title} to compare with")
    return notes


def _median(estimate: Estimate | None) -> float | None:
    return estimate.median if estimate else None


def _estimate(side: EngineSide, experiment: int, flow: str | None, measure: str) -> Estimate | None:
    is_flow = pl.col("flow").is_null() if flow is None else pl.col("flow") == flow
    assert side.summary is not None  # both sides have the state `compared`
    rows = side.summary.filter(pl.col("experiment") == experiment, is_flow, pl.col("measure") == measure)
    if not rows.height or rows["median"][0] is None:
        return None
    return Estimate(**rows.select("n", "mean", "low", "high", "median").row(0, named=True))


def _state(side: EngineSide, experiment: int) -> tuple[State, list[str]]:
    name = side.engine.name
    if experiment in side.reasons:
        return "lacking", [side.reasons[experiment]]
    planned = (
        [experiment_ for experiment_ in side.plan.experiments if experiment_.experiment == experiment]
        if side.plan
        else []
    )
    failures = _failures(side, experiment)
    marks = {mark.repetition: mark.reason for mark in (side.status.untrustworthy if side.status else [])
             if mark.experiment == experiment}  # fmt: skip
    notes = []
    if failures:
        notes.append(f"{name}: {_repetition_count(failures, planned)} failed: {next(iter(failures.values()))}")
    if marks:
        notes.append(f"{name}: {_repetition_count(marks, planned)} untrustworthy: {next(iter(marks.values()))}")
    if side.summary is not None and side.summary.filter(experiment=experiment).height:
        return "compared", notes
    if marks:
        return "untrustworthy", notes
    return ("failed", notes) if failures else ("not run", [f"{name}: not run yet"])


def _failures(side: EngineSide, experiment: int) -> dict[int, str]:
    """Return the messages of failures by repetition."""
    if side.status:
        return {
            failure.repetition: failure.message for failure in side.status.failures if failure.experiment == experiment
        }
    failed_events = side.outcome.failed if side.outcome else []
    return {event["repetition"]: event["message"] for event in failed_events if event["experiment"] == experiment}


def _repetition_count(repetitions: dict[int, str], planned: list[Experiment]) -> str:
    return f"{len(repetitions)} of {len(planned)} repetition{'' if len(planned) == 1 else 's'}"
