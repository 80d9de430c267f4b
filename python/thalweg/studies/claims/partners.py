"""Finds keys with which a point would have several references, before anything is run."""

from collections.abc import Sequence
from math import prod

from thalweg.scenario.document import TomlValue
from thalweg.studies.claims.keys import DERIVED, decides_derived, is_one, number, range_of, values_of
from thalweg.studies.claims.models import Quantity
from thalweg.studies.claims.shapes import Shape


def ambiguous_keys(value: Quantity, against: Quantity, own: Shape, other: Shape, *, is_same_part: bool) -> list[str]:
    """Return the sweep keys in which the references of a point have several values.

    Keys that both sides leave open match points with references. Keys that a condition on a derived key may restrict
    are ignored, because its effect depends on the paths, and so are keys whose values are not known before the run.
    """
    paired = {key for key in own.sweep if _is_open(key, value)} & {key for key in other.sweep if _is_open(key, against)}
    has_derived = any(key in DERIVED for key in against.where)
    left = {
        key: _matching(against.where.get(key), values)
        for key, values in other.sweep.items()
        if values is not None
        and key not in paired
        and not (has_derived and decides_derived(key) and _is_open(key, against))
    }
    is_same = (value.measure, value.flow, value.window) == (against.measure, against.flow, against.window)
    # A point is never compared with itself.
    is_among_them = is_same and is_same_part and all(value.where.get(key) in each for key, each in left.items())
    partners = prod(len(each) for each in left.values()) - is_among_them
    return [key for key, each in left.items() if len(each) > 1] if partners > 1 else []


def _is_open(key: str, quantity: Quantity) -> bool:
    return key not in quantity.where or not is_one(quantity.where[key])


def _matching(wanted: TomlValue | None, values: Sequence[TomlValue]) -> Sequence[TomlValue]:
    if wanted is None:
        return values
    if (limits := range_of(wanted)) is not None:
        low = float("-inf") if limits.at_least is None else limits.at_least
        high = float("inf") if limits.at_most is None else limits.at_most
        return [value for value in values if (known := number(value)) is not None and low <= known <= high]
    return [value for value in values if value in values_of(wanted)]
