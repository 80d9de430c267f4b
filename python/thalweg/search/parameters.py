"""Parameters of a search: their ranges, and the conversion of sampled values to values of the scenario.

Quantities are sampled as numbers in their base unit, and rounded, so that tables show the exact values that were run.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import floor, log10
from typing import TYPE_CHECKING, Literal, cast

from thalweg.analysis import quantity
from thalweg.checks import TermError
from thalweg.report.text.labels import key_title
from thalweg.scenario.document import Value
from thalweg.scenario.places import show
from thalweg.scenario.text.quantities import rate_text, time_text

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

Kind = Literal["number", "whole", "choice", "rate", "size", "time", "rtt", "bdp", "packets", "arrivals"]
"""Kind of a parameter's values: a plain number, one of a list, or a quantity."""

WHOLE: tuple[Kind, ...] = ("whole", "packets")

SIZES = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9}

DIGITS = 4

FRACTION = 0.382
"""Position of the value between the ends in `Parameter.samples`: its distance from the low end, as a fraction of the
range, or of 1 if the range is longer. Whole ends below 1000 thus lead to a value that is not whole.
"""

EVERY_FLOW = "flow.*."
"""Prefix of the address of a parameter that all flows share."""


def expanded(address: str, flows: Iterable[str]) -> list[str]:
    """Return the addresses that a parameter sets.

    >>> expanded("flow.*.cc_params.probe_gain", ["near", "far"])
    ['flow.near.cc_params.probe_gain', 'flow.far.cc_params.probe_gain']
    >>> expanded("path.buffer", ["near", "far"])
    ['path.buffer']
    """
    if not address.startswith(EVERY_FLOW):
        return [address]
    return [f"flow.{flow}.{address.removeprefix(EVERY_FLOW)}" for flow in flows]


@dataclass(frozen=True)
class Parameter:
    """A key of the scenario, or a value of a fuzzer's element, and its range or choices."""

    address: str
    kind: Kind
    low: float = 0.0
    """Lower end of the range, in the base unit of `kind`."""
    high: float = 0.0
    is_log: bool = False
    choices: Sequence[Value] = ()

    def distribution(self) -> "BaseDistribution":
        """Return the distribution from which Optuna samples."""
        from optuna import distributions

        if self.kind == "choice":
            return distributions.CategoricalDistribution(list(self.choices))
        if self.kind in WHOLE:
            return distributions.IntDistribution(round(self.low), round(self.high), log=self.is_log)
        return distributions.FloatDistribution(self.low, self.high, log=self.is_log)

    def setting(self, sampled: Value) -> Value:
        """Return the scenario's value for a sampled one.

        >>> Parameter("path.buffer", "bdp", 0.5, 8).setting(1.23456)
        '1.235bdp'
        """
        if self.kind == "choice":
            return sampled
        if self.kind == "whole":
            return int(sampled)
        rounded = min(max(_significant(float(sampled)), self.low), self.high)
        return written(rounded, self.kind)

    @property
    def ends(self) -> Sequence[Value]:
        """Values to check before the search: the ends of a range, or every choice."""
        return self.choices if self.kind == "choice" else (self.setting(self.low), self.setting(self.high))

    @property
    def samples(self) -> Sequence[Value]:
        """Values for which the engine's support is checked: `ends`, and for numbers one between them."""
        if self.kind != "number":
            return self.ends
        return *self.ends, self.setting(self.low + FRACTION * min(1.0, self.high - self.low))

    @property
    def title(self) -> str:
        """Name of the parameter in tables and figures.

        >>> Parameter("flow.ours.cc_params.pacing_gain", "number").title, Parameter("path.buffer", "bdp").title
        ('pacing_gain of ours', 'buffer')
        >>> Parameter("flow.*.cc_params.pacing_gain", "number").title
        'pacing_gain of every flow'
        """
        return key_title(self.address.replace(EVERY_FLOW, "flow.every flow.")).removeprefix("cc_params.")

    @property
    def span(self) -> str:
        """Possible values as text."""
        if self.kind == "choice":
            return ", ".join(_shown(value) for value in self.choices)
        low, high = map(_shown, self.ends)
        return f"{low} to {high}{' (log)' if self.is_log else ''}"


def ranged(address: str, ends: Sequence[Value], *, is_log: bool, is_whole: bool = False) -> Parameter:
    """Parse the two ends of a range: numbers, or quantities of one kind.

    Raises:
        TermError: If the ends have any other form.
    """
    expected = "two numbers, or two quantities of one kind, the smaller one first"
    if len(ends) != 2:
        raise TermError(
            f"`{address}` has {len(ends)} ends", expected, "several values to choose from: { choices = [...] }"
        )
    kinds: list[Kind] = []
    numbers = []
    for end in ends:
        parsed = quantity(end) if isinstance(end, str) else ("number", float(end))
        if parsed is None or isinstance(end, bool):
            raise TermError(f"`{address}` cannot range to {show(end)}", expected, "choices: { choices = [...] }")
        kinds.append("whole" if is_whole else cast(Kind, parsed[0]))
        numbers.append(parsed[1])
    if kinds[0] != kinds[1]:
        raise TermError(f"`{address}` ranges from a {kinds[0]} to a {kinds[1]}", expected)
    low, high = numbers
    if not low < high:
        raise TermError(f"`{address}` ranges from {show(ends[0])} to {show(ends[1])}", expected)
    if is_log and low <= 0:
        raise TermError(f"`{address}` begins at {show(ends[0])}", "a low end above 0 for the scale log")
    return Parameter(address, kinds[0], low, high, is_log)


def number_of(value: Value | None) -> float | None:
    """Return a setting as a number in its base unit; None for booleans and for texts that are not quantities.

    >>> number_of("20ms"), number_of(3), number_of("bbr")
    (0.02, 3.0, None)
    """
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        return float(value)
    parsed = quantity(value)
    return parsed[1] if parsed else None


def written(value: float, kind: Kind) -> Value:
    """Return the scenario's value for a number in the base unit of its kind.

    >>> written(0.02, "time"), written(2.5, "bdp"), written(0.5, "number")
    ('20ms', '2.5bdp', 0.5)
    """
    return value if kind == "number" else _text(value, kind)


def _shown(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)


def _significant(value: float) -> float:
    return value if value == 0 else round(value, DIGITS - 1 - floor(log10(abs(value))))


def _text(value: float, kind: Kind) -> str:
    if kind == "rate":
        return rate_text(round(value))
    if kind == "time":
        return time_text(round(Fraction(value) * 10**9))
    if kind == "size":
        unit, size = max(
            (name_and_size for name_and_size in SIZES.items() if value >= name_and_size[1]),
            key=lambda name_and_size: name_and_size[1],
            default=("B", 1),
        )
        return f"{value / size:.{DIGITS}g}{unit}" if size > 1 else f"{round(value)}B"
    if kind == "packets":
        return f"{round(value)}packets"
    return f"{value:.10g}{'/s' if kind == 'arrivals' else kind}"
