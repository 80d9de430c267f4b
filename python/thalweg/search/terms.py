"""What a search reads off an experiment: a measure of a flow or of the path, and constraints on it.

A constraint is `measure(flow) <op> number`, or `measure <op> number` for a measure of the path: `harm(theirs) <= 0.1`,
`rtt_p95(ours) < 60ms`, `utilisation >= 0.8`. Nothing is evaluated but this.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Literal

from thalweg.analysis import MEASURES, quantity
from thalweg.scenario.text import words

HARM = "harm"
"""The part of the goodput that a flow has alone and loses beside the others."""

Over = str
"""`mean`, `median`, `worst`, `best`, or a percentile: `p10`."""

Sign = Literal["<=", ">="]

_CONSTRAINT = re.compile(r"\s*([A-Za-z0-9_]+)\s*(?:\(\s*([^()\s]*)\s*\))?\s*(<=|>=|<|>|==|=|!=|≤|≥)\s*(\S.*?)\s*")
_SIGNS: dict[str, Sign] = {"<=": "<=", "<": "<=", "≤": "<=", ">=": ">=", ">": ">=", "≥": ">="}
_PERCENTILE = re.compile(r"p([0-9]{1,2})")
_KINDS = {"bit/s": "rate", "s": "time"}


class TermError(ValueError):
    """A measure, flow or constraint that cannot be read: what is wrong, what was expected, what was meant."""

    def __init__(self, message: str, expected: str, hint: str | None = None) -> None:
        """Describe the mistake; `message` is a line without a full stop."""
        super().__init__(message)
        self.message, self.expected, self.hint = message, expected, hint


@dataclass(frozen=True)
class Term:
    """A measure of a flow, or of the path."""

    measure: str
    flow: str | None

    @classmethod
    def of(cls, measure: str, flow: str | None, flows: Sequence[str]) -> "Term":
        """Check the names; `flows` are those of the scenario.

        Raises `TermError` if one is unknown, or the flow is missing or superfluous.
        """
        known = [*MEASURES, HARM]
        if measure not in known:
            hint = words.did_you_mean(measure, known)
            raise TermError(f"there is no measure `{measure}`", words.one_of(known), hint)
        if measure != HARM and MEASURES[measure].of == "path":
            if flow is not None:
                hint = f"write `{measure}` without a flow"
                raise TermError(f"`{measure}` is a measure of the path, not of a flow", "no flow", hint)
            return cls(measure, None)
        if not flow:
            raise TermError(f"`{measure}` is a measure of a flow", f"the name of a flow: {words.one_of(flows)}",
                            f"write `{measure}({flows[0]})`" if flows else None)  # fmt: skip
        if flow not in flows:
            hint = words.did_you_mean(flow, flows)
            raise TermError(f"there is no flow `{flow}`", words.one_of(flows) if flows else "a flow", hint)
        return cls(measure, flow)

    @property
    def unit(self) -> str:
        """The unit of its values, as `Measure.unit`."""
        return "ratio" if self.measure == HARM else MEASURES[self.measure].unit

    def __str__(self) -> str:
        """Write it as constraints do.

        >>> str(Term("goodput", "ours")), str(Term("utilisation", None))
        ('goodput(ours)', 'utilisation')
        """
        return f"{self.measure}({self.flow})" if self.flow else self.measure


@dataclass(frozen=True)
class Objective:
    """What a search makes large or small."""

    term: Term
    is_maximised: bool
    over: Over

    @property
    def name(self) -> str:
        """Its name in tables.

        >>> Objective(Term("goodput", "ours"), True, "worst").name
        'worst goodput(ours)'
        """
        return f"{self.over} {self.term}"

    def reduce(self, values: Sequence[float]) -> float:
        """Make one number of the values of the points of one repetition."""
        return reduced(values, self.over, is_large_good=self.is_maximised)

    def is_better(self, value: float, other: float) -> bool:
        """Return whether the first of two values is better."""
        return value > other if self.is_maximised else value < other


@dataclass(frozen=True)
class Constraint:
    """A bound that a candidate has to keep at every point of the sweep."""

    term: Term
    sign: Sign
    bound: float
    text: str
    """As it was written."""

    @classmethod
    def parse(cls, text: str, flows: Sequence[str]) -> "Constraint":
        """Read `measure(flow) <op> number`.

        Raises `TermError` if it is anything else.

        >>> Constraint.parse("rtt_p95(ours) <= 60ms", ["ours"]).bound
        0.06
        """
        match = _CONSTRAINT.fullmatch(text)
        if not match:
            expected = "measure(flow) <= number, or >= number"
            raise TermError(f"`{text}` is not a constraint", expected, "as in harm(theirs) <= 0.1")
        if match[3] not in _SIGNS:
            raise TermError(f"`{match[3]}` is not a bound", "<= or >=", f"write {match[1]}(...) <= {match[4]}")
        term = Term.of(match[1], match[2], flows)
        return cls(term, _SIGNS[match[3]], _bound(match[4], term), " ".join(text.split()))

    @property
    def name(self) -> str:
        """Its name in tables."""
        return f"worst {self.term}"

    def reduce(self, values: Sequence[float]) -> float:
        """Return the value of the point that is nearest to breaking the bound, or farthest beyond it."""
        return max(values) if self.sign == "<=" else min(values)

    def excess(self, value: float) -> float:
        """Return by how much a value breaks the bound, as a part of it; at most 0 where the bound is kept."""
        over = value - self.bound if self.sign == "<=" else self.bound - value
        return over / (abs(self.bound) or 1.0)


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


def check_over(over: str) -> None:
    """Raise `TermError` unless `over` names a way to reduce the values of several points."""
    if over not in ("mean", "median", "worst", "best") and not _PERCENTILE.fullmatch(over):
        expected = "mean, median, worst, best, or a percentile such as p10"
        hint = words.did_you_mean(over, ("mean", "median", "worst", "best"))
        raise TermError(f'"{over}" does not reduce the values of several points to one', expected, hint)


def _bound(text: str, term: Term) -> float:
    kind = _KINDS.get(term.unit)
    try:
        number = float(text)
        if isfinite(number):
            return number
    except ValueError:
        found = quantity(text)
        if found and found[0] == kind:
            return found[1]
    with_unit = {"rate": ", or a rate such as 5Mbps", "time": ", or a time such as 60ms"}.get(kind or "", "")
    raise TermError(f"`{text}` is not a number for {term}", f"a number in {_unit_words(term.unit)}{with_unit}")


def _unit_words(unit: str) -> str:
    return {"ratio": "parts of 1 (0.1 is 10 %)", "count": "units"}.get(unit, unit)
