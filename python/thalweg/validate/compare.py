"""Cells of the grid: what both engines measured for each flow at each point, and why something is not compared."""

from dataclasses import dataclass, field
from typing import Any, Literal

from thalweg.plan import Experiment
from thalweg.plan.models import Flow, LoadUnlimited
from thalweg.validate.errors import ERRORS
from thalweg.validate.part import Part, Side

State = Literal["compared", "lacking", "failed", "untrustworthy", "not run"]


@dataclass(frozen=True)
class Compared:
    """A measure on both engines, medians over repetitions, and the error of the first one."""

    first: float | None
    second: float | None
    error: float | None


@dataclass(frozen=True)
class Cell:
    """A flow at a point of a scenario."""

    scenario: str
    point: dict[str, Any]
    """What the sweep sets there."""
    flow: str
    cc: str
    state: State
    measures: dict[str, Compared] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    """Why it is not compared, or not with all its repetitions."""


def compare(part: Part) -> list[Cell]:
    """Compare a scenario point by point and flow by flow."""
    cells = []
    for point in part.points:
        sides = [_state(side, point.experiment) for side in part.sides]
        state: State = next((state for state, _ in sides if state != "compared"), "compared")
        notes = list(dict.fromkeys(note for _, notes in sides for note in notes))
        point_of_sweep = {key: point.sweep[key] for key in part.sweep_keys}
        for flow in point.flows:
            measures = _measures(part, point, flow) if state == "compared" else {}
            own = [*notes, *_without_value(part, flow.name, measures)]
            cells.append(Cell(part.name, point_of_sweep, flow.name, flow.cc, state, measures, own))
    return cells


def _measures(part: Part, point: Experiment, flow: Flow) -> dict[str, Compared]:
    """Compare what says most of a flow: how fast it is if it never ends, how long it takes if it does."""
    is_endless = isinstance(flow.load, LoadUnlimited)
    wanted = ["goodput" if is_endless else "completion_time", "retransmit_ratio", "rtt_mean"]
    if is_endless and len(point.flows) > 1:
        wanted.append("share")
    found = {}
    for name in ERRORS:
        if name in wanted:
            first, second = (_median(side, point.experiment, flow.name, name) for side in part.sides)
            error = ERRORS[name].of(first, second) if first is not None and second is not None else None
            found[name] = Compared(first, second, error)
    return found


def _without_value(part: Part, flow: str, measures: dict[str, Compared]) -> list[str]:
    """Note what only one of the engines has, such as the completion time of a flow that the other cut off."""
    notes = []
    for name, compared in measures.items():
        values = (compared.first, compared.second)
        if compared.error is None and values != (None, None):
            who = next((side for side, value in zip(part.sides, values, strict=True) if value is None), part.sides[1])
            notes.append(f"{who.engine.name}: {flow} has no {ERRORS[name].title} to compare with")
    return notes


def _median(side: Side, experiment: int, flow: str, measure: str) -> float | None:
    rows = side.summary.filter(experiment=experiment, flow=flow, measure=measure)
    return float(rows["median"][0]) if rows.height and rows["median"][0] is not None else None


def _state(side: Side, experiment: int) -> tuple[State, list[str]]:
    """Say whether a side has trustworthy results at a point, and what is to be noted."""
    name = side.engine.name
    if experiment in side.reasons:
        return "lacking", [side.reasons[experiment]]
    planned = [each for each in side.plan.experiments if each.experiment == experiment] if side.plan else []
    failures = _failures(side, experiment)
    marks = {each.repetition: each.reason for each in (side.status.untrustworthy if side.status else [])
             if each.experiment == experiment}  # fmt: skip
    notes = []
    if failures:
        notes.append(f"{name}: {_some(failures, planned)} failed: {next(iter(failures.values()))}")
    if marks:
        notes.append(f"{name}: {_some(marks, planned)} untrustworthy: {next(iter(marks.values()))}")
    if side.summary is not None and side.summary.filter(experiment=experiment).height:
        return "compared", notes
    if marks:
        return "untrustworthy", notes
    return ("failed", notes) if failures else ("not run", [f"{name}: not run yet"])


def _failures(side: Side, experiment: int) -> dict[int, str]:
    """Give what failed, by repetition: from the run directory if something in it is complete, else as it was told."""
    if side.status:
        return {each.repetition: each.message for each in side.status.failures if each.experiment == experiment}
    told = side.outcome.failed if side.outcome else []
    return {event["repetition"]: event["message"] for event in told if event["experiment"] == experiment}


def _some(repetitions: dict[int, str], planned: list[Experiment]) -> str:
    return f"{len(repetitions)} of {len(planned)} repetition{'' if len(planned) == 1 else 's'}"
