"""The quantities of a search: a measure of a flow or of the path, and constraints on it.

A constraint is `measure(flow) <op> number`, or `measure <op> number` for a measure of the path: `harm(theirs) <= 0.1`,
`rtt_p95(ours) < 60ms`, `utilisation >= 0.8`.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from thalweg.analysis.measuring.repetitions import FROM_QUEUE, FROM_SAMPLES
from thalweg.checks import Check, Term, TermError
from thalweg.scenario import Document
from thalweg.scenario.text import quantities, words

Over = str
"""Reduction: `mean`, `median`, `worst`, `best`, or a percentile such as `p10`."""

Sign = Literal["<=", ">="]

_PERCENTILE = re.compile(r"p([0-9]{1,2})")


@dataclass(frozen=True)
class Objective:
    """A quantity that a search maximises or minimises."""

    term: Term
    is_maximised: bool
    over: Over

    @property
    def name(self) -> str:
        """Name of the objective in tables.

        >>> Objective(Term("goodput", "ours"), True, "worst").name
        'worst goodput(ours)'
        """
        return f"{self.over} {self.term}"

    def reduce(self, values: Sequence[float]) -> float:
        """Reduce the values of the points of one repetition to one number."""
        return reduced(values, self.over, is_large_good=self.is_maximised)

    def is_better(self, value: float, other: float) -> bool:
        """Return whether the first of two values is better."""
        return value > other if self.is_maximised else value < other


@dataclass(frozen=True)
class Constraint:
    """A bound on a measure, applied to the worst of the points."""

    term: Term
    sign: Sign
    bound: float
    text: str

    @classmethod
    def parse(cls, text: str, flows: Sequence[str]) -> "Constraint":
        """Parse `measure(flow) <op> number`.

        Raises:
            TermError: If the text has any other form.

        >>> Constraint.parse("rtt_p95(ours) <= 60ms", ["ours"]).bound
        0.06
        """
        check = Check.parse(text, flows)
        (bound, *rest), expected = check.bounds, "measure(flow) <= number, or >= number"
        number = bound.right.value({}) if not bound.right.terms else None
        if rest or bound.left.term is None or number is None:
            raise TermError(f"`{check.text}` is not a constraint", expected, "as in harm(theirs) <= 0.1")
        return cls(bound.left.term, "<=" if bound.sign in ("<", "<=") else ">=", number, check.text)

    @property
    def name(self) -> str:
        """Name of the constraint in tables."""
        return f"worst {self.term}"

    def reduce(self, values: Sequence[float]) -> float:
        """Return the value that is nearest to breaking the bound, or farthest beyond it."""
        return max(values) if self.sign == "<=" else min(values)

    def excess(self, value: float) -> float:
        """Return the excess of a value over the bound, as a fraction of the bound's magnitude (of 1 if the bound is 0);
        at most 0 if the bound holds.
        """
        difference = value - self.bound if self.sign == "<=" else self.bound - value
        return difference / (abs(self.bound) or 1.0)


def reduced(values: Sequence[float], over: Over, *, is_large_good: bool) -> float:
    """Reduce the values of several points to one.

    >>> reduced([1.0, 2.0, 6.0], "worst", is_large_good=False), reduced([1.0, 2.0, 6.0], "mean", is_large_good=False)
    (6.0, 3.0)
    """
    import numpy as np

    if over == "mean":
        return float(np.mean(values))
    if over in ("worst", "best"):
        return min(values) if (over == "worst") == is_large_good else max(values)
    return float(np.percentile(values, 50 if over == "median" else int(over.removeprefix("p"))))


def intervals_ns(document: Document) -> list[int]:
    """Return the sampling intervals of a checked scenario, in ns; 0: no samples."""
    written = document.raw.get("sample_interval", "10ms")
    return [quantities.time(str(interval)) for interval in document.swept.get("sample_interval", [written])]


def check_sampled(term: Term, document: Document) -> None:
    """Check that the scenario takes samples at all points of its sweep, if a term needs them.

    Raises:
        TermError: If it takes none at a point.
    """
    if term.measure not in FROM_SAMPLES | FROM_QUEUE:
        return
    if 0 in intervals_ns(document):
        raise TermError(
            f"`{term}` has no value without samples: `sample_interval` is 0s",
            "a measure that needs no samples, or a scenario that takes them",
            'set sample_interval above 0s: sample_interval = "10ms"',
        )


def check_over(over: str) -> None:
    """Check that `over` is a known reduction.

    Raises:
        TermError: If it is not.
    """
    if over not in ("mean", "median", "worst", "best") and not _PERCENTILE.fullmatch(over):
        expected = "mean, median, worst, best, or a percentile such as p10"
        hint = words.did_you_mean(over, ("mean", "median", "worst", "best"))
        raise TermError(f'"{over}" does not reduce the values of several points to one', expected, hint)
