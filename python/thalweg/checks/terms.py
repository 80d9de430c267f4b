"""A measure of a flow or of the path, as written in checks, searches and fuzzers: `goodput(ours)`, `utilisation`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from thalweg.analysis import MEASURES
from thalweg.scenario.document import Value
from thalweg.scenario.text import words

HARM = "harm"
"""Fraction of its solo goodput that a flow loses beside the others."""


class TermError(ValueError):
    """A measure, flow or bound that cannot be parsed: the error, the expected form, and a suggestion."""

    def __init__(self, message: str, expected: str, hint: str | None = None) -> None:
        """Create an error; `message` is a line without a full stop."""
        super().__init__(message)
        self.message, self.expected, self.hint = message, expected, hint


@dataclass(frozen=True)
class Term:
    """A measure of a flow, or of the path."""

    measure: str
    flow: str | None
    at: Mapping[str, Value] = field(default_factory=dict, hash=False)
    """Sweep keys with the value at which the measure is taken; other keys are left open."""

    @classmethod
    def of(cls, measure: str, flow: str | None, flows: Sequence[str]) -> "Term":
        """Create a term and check its names; `flows` are those of the scenario.

        Raises:
            TermError: If a name is unknown, or the flow is missing or superfluous.
        """
        measures = [*MEASURES, HARM]
        if measure not in measures:
            hint = words.did_you_mean(measure, measures)
            raise TermError(f"there is no measure `{measure}`", words.one_of(measures), hint)
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

    @property
    def is_fraction(self) -> bool:
        """Whether its values are at most 1."""
        return self.measure == HARM or MEASURES[self.measure].is_fraction

    def __str__(self) -> str:
        """Return the term as it is written in checks.

        >>> str(Term("goodput", "ours")), str(Term("utilisation", None, {"path.rtt": "50ms"}))
        ('goodput(ours)', 'utilisation(path.rtt=50ms)')
        """
        inside = [*([self.flow] if self.flow else []), *(f"{key}={value}" for key, value in self.at.items())]
        return f"{self.measure}({', '.join(inside)})" if inside else self.measure
