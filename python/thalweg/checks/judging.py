"""Verdicts of checks, by confidence intervals over repetitions.

Both sides are computed in every repetition, and the interval of their difference is judged, so that effects of a
repetition on both sides cancel. docs/reference/checks.md defines the verdicts.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, inf
from typing import Literal

import polars as pl

from thalweg import analysis
from thalweg.analysis import CONFIDENCE, Estimate, estimate
from thalweg.checks.check import Bound, Check, Place
from thalweg.checks.terms import Term
from thalweg.results import Run
from thalweg.scenario.document import Value

Verdict = Literal["holds", "does not hold", "not settled"]

ORDER: tuple[Verdict, ...] = ("does not hold", "not settled", "holds")
"""Verdicts by precedence."""

SLACK = 1e-9
"""Relative tolerance for rounding errors of floating-point arithmetic."""

MAX_REPETITIONS = 1000
"""If more repetitions than this would be needed, the two sides count as practically equal."""

Values = Mapping[tuple[str, str | None], Mapping[tuple[int, int], float]]
"""Values by measure and flow, then by experiment and repetition."""


@dataclass(frozen=True)
class Finding:
    """Verdict of a bound at one point of the sweep."""

    bound: Bound
    point: Mapping[str, Value]
    """Values of the sweep keys that the check leaves open."""
    verdict: Verdict
    left: Estimate | None
    right: Estimate | None
    difference: Estimate | None
    """Left side minus right side; all three estimates are None if no repetition has a value of both."""
    reason: str = ""
    """Reason why the verdict is `not settled`."""


@dataclass(frozen=True)
class Outcome:
    """Result of a check."""

    check: Check
    verdict: Verdict
    places: int
    """Number of points of the sweep at which it was judged."""
    finding: Finding
    """The deciding finding: of those with this verdict, the one with the smallest margin to its bound."""


def judge(run: Run, checks: Sequence[Check]) -> list[Outcome]:
    """Judge checks by the trustworthy experiments of a run.

    Raises:
        TermError: If a check refers to a point that is not in the run's sweep.
    """
    rows = analysis.repetitions(run, measures={term.measure for check in checks for term in check.terms})
    values, repetitions = _values(rows), set(rows.select("experiment", "repetition").iter_rows())
    points = {experiment["experiment"]: experiment["sweep"] for experiment in run.plan["experiments"]}
    return [_outcome(run, check, check.places(points), values, repetitions) for check in checks]


def _values(rows: pl.DataFrame) -> Values:
    frame = rows.drop_nulls("value")
    by_measure: dict[tuple[str, str | None], dict[tuple[int, int], float]] = {}
    for measure, flow, *at, value in frame.select("measure", "flow", "experiment", "repetition", "value").iter_rows():
        by_measure.setdefault((measure, flow), {})[at[0], at[1]] = value
    return by_measure


def _outcome(
    run: Run, check: Check, places: Sequence[Place], values: Values, repetitions: Collection[tuple[int, int]]
) -> Outcome:
    comparisons = len(places) * len(check.bounds)
    findings = [
        _finding(run, bound, place, _repetitions(run, bound, place, values, repetitions), comparisons)
        for place in places
        for bound in check.bounds
    ]
    worst = min(findings, key=lambda finding: (ORDER.index(finding.verdict), _margin(finding)))
    return Outcome(check, worst.verdict, len(places), worst)


def _margin(finding: Finding) -> float:
    """Return the margin between the interval and the bound, relative to the larger side; negative if the interval
    extends beyond the bound, `-inf` without values.
    """
    left, right, difference = finding.left, finding.right, finding.difference
    if left is None or right is None or difference is None:
        return -inf
    kept = difference.mean if finding.bound.sign in (">", ">=") else -difference.mean
    half = difference.high - difference.mean if difference.high is not None else 0.0
    return (kept - half) / (max(abs(left.mean), abs(right.mean)) or 1.0)


def _finding(
    run: Run, bound: Bound, place: Place, repetitions: Sequence[Mapping[Term, float | None]], comparisons: int
) -> Finding:
    sides = [(bound.left.value(at), bound.right.value(at)) for at in repetitions]
    pairs = [(first, second) for first, second in sides if first is not None and second is not None]
    if not pairs:
        return Finding(bound, place.point, "not settled", None, None, None, _no_value(run, bound, place, repetitions))
    left, right = estimate([first for first, _ in pairs]), estimate([second for _, second in pairs])
    difference = estimate([first - second for first, second in pairs])
    verdict, reason = _verdict(bound, difference, SLACK * max(abs(left.mean), abs(right.mean)), comparisons)
    if verdict == "holds" and len(pairs) < len(repetitions):
        # The missing ones can be those that break the bound, such as transfers that have not finished.
        missing = len(repetitions) - len(pairs)
        verdict, reason = "not settled", f"{missing} of {len(repetitions)} repetitions have no value"
    if not analysis.copied(run).isdisjoint(place.experiments.values()):
        verdict, reason = "not settled", f"its repetitions are copies of one another ({analysis.copies_remedy(run)})"
    return Finding(bound, place.point, verdict, left, right, difference, reason)


def _repetitions(
    run: Run, bound: Bound, place: Place, values: Values, known: Collection[tuple[int, int]]
) -> list[Mapping[Term, float | None]]:
    """Return the values of the terms in every repetition whose experiments are complete and trustworthy."""
    count = 1 + max(experiment["repetition"] for experiment in run.plan["experiments"])
    terms = {**bound.left.terms, **bound.right.terms}.values()
    return [
        {term: values.get((term.measure, term.flow), {}).get((place.experiments[term], repetition)) for term in terms}
        for repetition in range(count)
        if all((place.experiments[term], repetition) in known for term in terms)
    ]


def _verdict(bound: Bound, difference: Estimate, slack: float, comparisons: int) -> tuple[Verdict, str]:
    """Return the verdict on a difference, and the reason if it is not settled; `slack` is the rounding tolerance.

    A violation needs a wider interval the more comparisons there are (Bonferroni), because one may be broken by chance.
    A check holds only if all its comparisons are confirmed, which needs no correction.
    """
    if difference.low is None or difference.high is None:
        return "not settled", "one repetition has no interval: --repetitions 5"
    is_above, is_strict = bound.sign in (">", ">="), bound.sign in ("<", ">")
    half = difference.high - difference.mean
    kept = difference.mean if is_above else -difference.mean
    if (kept - half > slack) if is_strict else (kept - half >= -slack):
        return "holds", ""
    wide = half * _quantile(difference.n, comparisons) / _quantile(difference.n, 1)
    if (kept + wide <= slack) if is_strict else (kept + wide < -slack):
        return "does not hold", ""
    return "not settled", _advice(difference.n, abs(kept), half if kept > 0 else wide)


def _quantile(n: int, comparisons: int) -> float:
    from scipy import special

    return float(special.stdtrit(n - 1, 1 - (1 - CONFIDENCE) / 2 / comparisons))


def _advice(n: int, distance: float, half: float) -> str:
    """Estimate the required number of repetitions: an interval shrinks with their square root."""
    enough = max(n + 1.0, 1.2 * n * (half / distance) ** 2) if distance else inf
    if enough > MAX_REPETITIONS:
        return "the two sides are too close to decide"
    return f"too few repetitions; about {ceil(enough)} would suffice"


def _no_value(run: Run, bound: Bound, place: Place, repetitions: Sequence[Mapping[Term, float | None]]) -> str:
    terms = list(dict.fromkeys([*bound.left.terms.values(), *bound.right.terms.values()]))
    for term in terms:
        if reason := analysis.why_never(run, term.measure, term.flow, place.experiments[term]):
            return reason
    for at in repetitions:
        if None not in at.values():
            reasons = ((side.text, side.why_no_value(at)) for side in (bound.left, bound.right))
            return next(f"`{text}` has no value: {reason}" for text, reason in reasons if reason)
    missing = [term for term in terms if all(at[term] is None for at in repetitions)]
    return f"no repetition has a value of {' and '.join(map(str, missing or terms))}"
