"""Compares the best candidates with the default at held-out points, by Welch's test with Holm's correction."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from thalweg import analysis
from thalweg.analysis import Difference, Estimate
from thalweg.errors import ThalwegError
from thalweg.plan import Plan
from thalweg.report.text.labels import setting
from thalweg.results import open_run
from thalweg.search.candidates import Candidate, front
from thalweg.search.measuring import Lab, Values, all_quantities, by_repetition
from thalweg.search.planning import Planner, points
from thalweg.search.searching import unmeasured
from thalweg.search.table import Search
from thalweg.search.terms import Constraint, Objective

MAX_WINNERS = 3

ALL_POINTS = "all points"

MAX_POINTS = 24

Verdict = Literal["better", "worse", "no difference seen", "too few", "failed"]
"""`too few`: too few repetitions for a verdict."""


@dataclass(frozen=True)
class Verdicts:
    """Comparison of a candidate's objective or constraint with the default's, at one or all points."""

    candidate: str
    quantity: str
    unit: str
    point: str
    default: Estimate
    found: Estimate
    difference: Difference
    p: float | None
    """p-value, corrected for the number of tests."""
    verdict: Verdict


@dataclass(frozen=True)
class Verified:
    """The default and the best candidates on one engine."""

    engine: str
    version: str
    is_held_out: bool
    """Whether points are held out; False: the points of the search were run again with other seeds."""
    points: Sequence[str]
    candidates: Sequence[Candidate]
    """The default first, then the candidates; their values cover all points."""
    rows: Sequence[Verdicts]
    untrustworthy: int
    """Number of experiments that are marked untrustworthy and have no value."""


def winners(candidates: Sequence[Candidate], search: Search) -> list[Candidate]:
    """Return the candidates to verify: the best ones, or a selection of the Pareto front."""
    objective = search.objectives[0]
    if len(search.objectives) == 1:
        rest, best = list(candidates), list[Candidate]()
        while len(best) < MAX_WINNERS and (next_best := front(rest, search)):
            best.append(next_best[0])
            rest = [candidate for candidate in rest if candidate.settings != next_best[0].settings]
        return best
    ordered = sorted(front(candidates, search), key=lambda candidate: candidate.objectives(search)[0])
    if objective.is_maximised:
        ordered.reverse()
    if len(ordered) <= MAX_WINNERS:
        return ordered
    indices = [round(number * (len(ordered) - 1) / (MAX_WINNERS - 1)) for number in range(MAX_WINNERS)]
    return [ordered[index] for index in indices]


def verify(
    planner: Planner,
    lab: Lab,
    folder: Path,
    candidates: Sequence[Candidate],
    report: Callable[[str], None] = lambda text: None,
) -> Verified:
    """Run the default and `candidates` at the held-out points on the planner's engine.

    Raises:
        Interrupted: If the user requested a stop; the same call resumes.
        ThalwegError: If the engine cannot run the plan, or a file cannot be written.
    """
    search = planner.search
    default = Candidate(None, {})
    verified, plans, values = [], [], []
    untrustworthy = 0
    for tried in (default, *candidates):
        report(tried.name)
        plan = planner.plan(tried.settings, "held out")
        directory = folder / ("default" if tried.number is None else f"candidate-{tried.number}")
        measured = _measured(lab, plan, directory, search)
        quantities = [] if isinstance(measured, str) else all_quantities(measured, search.quantities, plan)
        failed = measured if isinstance(measured, str) else ""
        candidate = Candidate(tried.number, tried.settings, quantities, failed=failed)
        if not failed:
            candidate = replace(candidate, failed=unmeasured(candidate, search))
        verified.append(candidate)
        plans.append(plan)
        values.append({} if isinstance(measured, str) else measured)
        untrustworthy += 0 if failed else len(open_run(directory).untrustworthy)
    rows = _judged(
        [
            row
            for candidate, plan, candidate_values in list(zip(verified, plans, values, strict=True))[1:]
            if not candidate.failed and not verified[0].failed
            for row in _compared(candidate, (plans[0], values[0]), (plan, candidate_values), search)
        ],
        search,
    )
    names = list(_names(plans[0]).values())
    names = names if len(names) <= MAX_POINTS else [f"{len(names)} points"]
    return Verified(
        planner.engine.name, planner.engine.version, bool(search.held_out), names, verified, rows, untrustworthy
    )


def _measured(lab: Lab, plan: Plan, directory: Path, search: Search) -> Values | str:
    try:
        return lab.measure(plan, directory, search.terms)
    except ThalwegError as error:
        if error.code not in ("experiments-failed", "empty-run"):
            raise
        return error.message


def _compared(
    candidate: Candidate, default: tuple[Plan, Values], candidate_side: tuple[Plan, Values], search: Search
) -> list[Verdicts]:
    rows = []
    names = _names(default[0])
    numbers = points(default[0])
    point_groups: list[tuple[str, list[int]]] = [(ALL_POINTS, numbers)]
    if 1 < len(numbers) <= MAX_POINTS:
        point_groups += [(names[number], [number]) for number in numbers]
    for quantity in search.quantities:
        for name, at in point_groups if isinstance(quantity, Objective) else point_groups[:1]:
            first, second = (_estimate(values, quantity, at) for _, values in (default, candidate_side))
            if first is None or second is None:
                continue
            difference = analysis.difference(first, second)
            quantity_name = quantity.name if name == ALL_POINTS else str(quantity.term)
            row = Verdicts(
                candidate.name,
                quantity_name,
                quantity.term.unit,
                name,
                first,
                second,
                difference,
                difference.p,
                "too few",
            )
            rows.append(row)
    return rows


def _estimate(values: Values, quantity: Objective | Constraint, at: Sequence[int]) -> Estimate | None:
    present = [value for value in by_repetition(values, quantity, at) if value is not None]
    return analysis.estimate(present) if present else None


def _judged(rows: Sequence[Verdicts], search: Search) -> list[Verdicts]:
    corrected = iter(analysis.holm([row.p for row in rows if row.p is not None]))
    tested = [row if row.p is None else replace(row, p=next(corrected)) for row in rows]
    large_is_good = {constraint.name: constraint.sign == ">=" for constraint in search.constraints}
    large_is_good |= {
        name: objective.is_maximised
        for objective in search.objectives
        for name in (objective.name, str(objective.term))
    }
    return [replace(row, verdict=_verdict(row, large_is_good[row.quantity])) for row in tested]


def _verdict(row: Verdicts, is_large_good: bool) -> Verdict:
    if row.p is None:
        return "too few"
    if row.p >= 1 - analysis.CONFIDENCE:
        return "no difference seen"
    return "better" if (row.difference.value > 0) == is_large_good else "worse"


def _names(plan: Plan) -> dict[int, str]:
    sweeps = {experiment.experiment: experiment.sweep for experiment in plan.experiments}
    keys = [key for key in next(iter(sweeps.values())) if len({point[key] for point in sweeps.values()}) > 1]
    return {
        number: ", ".join(setting(key, point[key]) for key in keys) or ALL_POINTS for number, point in sweeps.items()
    }
