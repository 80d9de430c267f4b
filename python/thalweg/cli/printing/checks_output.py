"""Output of checks: one sentence each, or JSON; and the exit code."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from thalweg import printable
from thalweg.errors import Exit

if TYPE_CHECKING:
    from thalweg.analysis import Estimate
    from thalweg.checks import Outcome, Side

CODES = {"holds": Exit.FINE, "does not hold": Exit.CHECK_BROKEN, "not settled": Exit.NOT_SETTLED}

SIZES = {"bit/s": ("Mbit/s", 1e6), "s": ("ms", 1e-3)}
"""Displayed unit for each unit, and its size in that unit."""


def codes(outcomes: "Sequence[Outcome]") -> list[Exit]:
    """Return the exit code of each check."""
    return [CODES[outcome.verdict] for outcome in outcomes]


def sentence(outcome: "Outcome") -> str:
    """Return the verdict as a sentence, with the numbers of the deciding point and their 95 % intervals."""
    finding = outcome.finding
    text = f"{outcome.verdict}: {outcome.check.text}"
    if finding.left and finding.right and finding.difference:
        unit, size = SIZES.get(finding.bound.unit, (finding.bound.unit, 1.0))
        unit = f" {unit}" if unit else ""
        bound = finding.bound
        left, right = _number(finding.left, bound.left, size), _number(finding.right, bound.right, size)
        text += f": {left} against {right}{unit}, difference {_number(finding.difference, None, size, sign='+')}{unit}"
        text += f"; n = {finding.difference.n}"
    if finding.reason:
        text += f"; {finding.reason}"
    return printable.value(text + _where(outcome))


def as_json(outcomes: "Sequence[Outcome]") -> list[dict[str, object]]:
    """Return every check with its verdict and the numbers of the deciding point."""
    return [
        {
            "check": outcome.check.text,
            "verdict": outcome.verdict,
            "points": outcome.places,
            "point": dict(outcome.finding.point),
            "unit": outcome.finding.bound.unit or None,
            "left": outcome.finding.left and asdict(outcome.finding.left),
            "right": outcome.finding.right and asdict(outcome.finding.right),
            "difference": outcome.finding.difference and asdict(outcome.finding.difference),
            "reason": outcome.finding.reason or None,
        }
        for outcome in outcomes
    ]


def _where(outcome: "Outcome") -> str:
    if outcome.places == 1:
        return ""
    point = ", ".join(f"{key} = {value}" for key, value in outcome.finding.point.items())
    return f"; at {point}, the {'closest' if outcome.verdict == 'holds' else 'worst'} of {outcome.places} points"


def _number(estimate: "Estimate", side: "Side | None", size: float, sign: str = "") -> str:
    """Return a mean with its interval as text; a side without measures and a single repetition have no interval."""
    mean = f"{estimate.mean / size:{sign}.4g}"
    if estimate.low is None or estimate.high is None or (side and not side.terms):
        return mean
    return f"{mean} [{estimate.low / size:.4g}, {estimate.high / size:.4g}]"
