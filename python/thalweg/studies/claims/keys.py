"""Keys of points: those of the sweep, and those derived from a point's path."""

from collections.abc import Sequence
from dataclasses import dataclass

from thalweg import analysis
from thalweg.scenario.document import TomlValue, Value
from thalweg.studies.claims.models import Against, Quantity

DERIVED = tuple(analysis.DERIVED)

DROPPED = "*"
"""Marker in `where` of `against`: the key is not inherited."""


@dataclass(frozen=True)
class Range:
    """A condition with a range of numbers; None: no limit."""

    at_least: float | None
    at_most: float | None


def range_of(condition: TomlValue) -> Range | None:
    """Return the range of a condition; None if it lists values."""
    if not isinstance(condition, dict):
        return None
    low, high = (end if isinstance(end, int | float) else None for end in map(condition.get, ("at_least", "at_most")))
    return Range(low, high)


def values_of(condition: TomlValue) -> list[TomlValue]:
    """Return the values that a condition lists; the condition must not be a range."""
    return condition if isinstance(condition, list) else [condition]


def is_one(condition: TomlValue) -> bool:
    """Return whether a condition is a single value."""
    return not isinstance(condition, dict | list)


def decides_derived(key: str) -> bool:
    """Return whether derived keys of the path, the hosts and the number of flows may depend on a key of the sweep."""
    return key.startswith(("path.", "host.")) or key.endswith(".count")


def number(value: TomlValue | None) -> float | None:
    """Parse a value of a sweep as a number in base units (bit/s, B, s, or BDPs); None for others and truth values."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        return float(value)
    parsed = analysis.quantity(value) if isinstance(value, str) else None
    return parsed[1] if parsed else None


def unit(key: str, value: Value | None) -> str:
    """Return the unit of a key's number as in reports; empty without a unit.

    >>> unit("path.rtt", "45ms"), unit("rate_bps", 4e7), unit("path.buffer", "1bdp")
    ('s', 'bit/s', '')
    """
    if key in DERIVED:
        return next((name for end, name in (("_bps", "bit/s"), ("_s", "s"), ("_bytes", "B")) if key.endswith(end)), "")
    parsed = analysis.quantity(value) if isinstance(value, str) else None
    return {"rate": "bit/s", "size": "B", "time": "s"}.get(parsed[0], "") if parsed else ""


def sides(value: Quantity, against: Against | None, keys: Sequence[str]) -> tuple[Quantity, Quantity]:
    """Return a quantity and its reference, which inherits unspecified settings.

    Keys of `where` that another part's sweep (`keys`) lacks are not inherited, except derived keys.
    """
    if against is None:
        return value, value
    conditions = dict(value.where)
    if against.part is not None:
        conditions = {key: condition for key, condition in conditions.items() if key in keys or key in DERIVED}
    conditions |= against.where
    measure = against.measure or value.measure
    return value, Quantity(
        measure=measure,
        flow=against.flow or (value.flow if _is_of_flow(measure) else None),
        where={key: condition for key, condition in conditions.items() if condition != DROPPED},
        window=against.window or value.window,
    )


def _is_of_flow(measure: str) -> bool:
    measure_ = analysis.MEASURES.get(measure)
    return measure_ is None or measure_.of == "flow"
