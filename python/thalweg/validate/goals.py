"""The goals for the agreement of two engines, and their verdicts."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from thalweg.validate.compare import ComparedMeasure, GridCell, PointKind
from thalweg.validate.errors import ERRORS, MIN_RETRANSMIT_RATIO

Statistic = Literal["median", "mean", "90th percentile"]
GoalVerdict = Literal["met", "not met", "not enough"]

FEWEST: dict[Statistic, int] = {"median": 4, "mean": 4, "90th percentile": 10}
"""Minimum number of errors for a statistic; below ten, the 90th percentile depends only on the two largest."""

LARGE = {
    "goodput": 0.12,
    "utilisation": 0.05,
    "retransmit_ratio": 1.5,
    "rtt_mean": 0.15,
    "share": 0.07,
    "completion_time": 0.15,
}
"""Magnitude above which an error counts as a disagreement: the largest limit of the measure's goals, if it has any."""


@dataclass(frozen=True)
class Goal:
    """Maximum size of the errors of a measure."""

    title: str
    measure: str
    kinds: frozenset[PointKind]
    statistic: Statistic
    limit: float


ALL: frozenset[PointKind] = frozenset(("solo", "pair", "many", "transfers"))

GOALS = (
    Goal("goodput, flow alone", "goodput", frozenset(("solo",)), "median", 0.03),
    Goal("goodput, flow alone", "goodput", frozenset(("solo",)), "90th percentile", 0.12),
    Goal("share, two flows", "share", frozenset(("pair",)), "mean", 0.07),
    Goal("share, two classes", "share", frozenset(("many",)), "mean", 0.07),
    Goal("completion time", "completion_time", ALL, "mean", 0.15),
    Goal("retransmits, if any", "retransmit_ratio", ALL, "median", 1.5),
)


@dataclass(frozen=True)
class JudgedGoal:
    """A goal and its result."""

    goal: Goal
    n: int
    within_noise: int
    found: float | None
    p90: float | None
    """The 90th percentile, regardless of the goal's statistic."""
    verdict: GoalVerdict


def judge(cells: Sequence[GridCell]) -> list[JudgedGoal]:
    """Return whether each goal is met."""
    return [_judge(goal, cells) for goal in GOALS]


def _judge(goal: Goal, cells: Sequence[GridCell]) -> JudgedGoal:
    counted = [
        compared
        for cell in one_share_per_point(cells, goal.measure)
        if cell.kind in goal.kinds and (compared := cell.measures.get(goal.measure)) and _counts(goal.measure, compared)
    ]
    sizes = [ERRORS[goal.measure].size(compared.error) for compared in counted if compared.error is not None]
    noise = sum(bool(compared.within_noise) for compared in counted)
    if not sizes:
        return JudgedGoal(goal, 0, 0, None, None, "not enough")
    p90 = float(np.quantile(sizes, 0.9))
    statistic = {"median": float(np.median(sizes)), "mean": float(np.mean(sizes)), "90th percentile": p90}[
        goal.statistic
    ]
    verdict: GoalVerdict = "met" if statistic <= goal.limit else "not met"
    return JudgedGoal(
        goal, len(sizes), noise, statistic, p90, verdict if len(sizes) >= FEWEST[goal.statistic] else "not enough"
    )


def one_share_per_point(cells: Sequence[GridCell], measure: str) -> list[GridCell]:
    """Return the cells whose errors count; of two shares at a point only the first, because the error of the other one
    is its negative.
    """
    if measure != "share":
        return list(cells)
    kept: dict[tuple[str, str], list[GridCell]] = {}
    for cell in cells:
        kept.setdefault((cell.scenario, repr(cell.point)), []).append(cell)
    shared = [[cell for cell in point if "share" in cell.measures] for point in kept.values()]
    return [cell for point in shared for cell in (point[:1] if len(point) == 2 else point)]


def _counts(measure: str, compared: ComparedMeasure) -> bool:
    """Return whether a cell has an error that counts: two negligible retransmit ratios are equal by definition, and
    many of them would hide the magnitude of the others.
    """
    if compared.error is None:
        return False
    if measure != "retransmit_ratio":
        return True
    return max(compared.first or 0.0, compared.second or 0.0) > MIN_RETRANSMIT_RATIO


@dataclass(frozen=True)
class Disagreement:
    """A large error that exceeds the uncertainty of the repetitions."""

    cell: GridCell
    measure: str
    compared: ComparedMeasure
    weight: float
    """Magnitude relative to the limit of its measure, by which disagreements are ranked."""


def disagreements(cells: Sequence[GridCell]) -> list[Disagreement]:
    """Return the disagreements, the largest first; goodput is omitted if shares are compared."""
    listed = []
    shares = {id(cell) for cell in one_share_per_point(cells, "share")}
    for cell in cells:
        for measure, compared in cell.measures.items():
            if compared.error is None or compared.within_noise:
                continue
            if measure == "goodput" and "share" in cell.measures:
                continue
            if measure == "share" and id(cell) not in shares:
                continue
            size, large = ERRORS[measure].size(compared.error), LARGE[measure]
            is_factor = ERRORS[measure].kind == "factor"
            weight = math.log(max(size, 1.0)) / math.log(large) if is_factor else size / large
            if weight > 1:
                listed.append(Disagreement(cell, measure, compared, weight))
    return sorted(listed, key=lambda disagreement: -disagreement.weight)
