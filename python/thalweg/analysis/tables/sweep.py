"""The keys of a sweep as axes."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from thalweg.results.plan_document import SweptValue

# Units by quantity. A key whose values all have the same quantity is sorted numerically ("0.5bdp" before "10bdp").
# thalweg.scenario.text.quantities parses the same units exactly; analysis does not import scenarios, and floats
# suffice.
_UNITS: dict[str, tuple[str, float]] = {
    "bps": ("rate", 1), "kbps": ("rate", 1e3), "Mbps": ("rate", 1e6), "Gbps": ("rate", 1e9),
    "B": ("size", 1), "kB": ("size", 1e3), "MB": ("size", 1e6), "GB": ("size", 1e9),
    "KiB": ("size", 2**10), "MiB": ("size", 2**20), "GiB": ("size", 2**30),
    "ns": ("time", 1e-9), "us": ("time", 1e-6), "ms": ("time", 1e-3), "s": ("time", 1), "min": ("time", 60),
    "rtt": ("rtt", 1), "bdp": ("bdp", 1), "packets": ("packets", 1), "/s": ("arrivals", 1),
}  # fmt: skip
_QUANTITY = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*(\S+?)\s*")


@dataclass(frozen=True)
class Axis:
    """A key of the sweep with its values in display order."""

    key: str
    values: Sequence[SweptValue]
    is_ordered: bool
    """Whether the values are sorted numerically, as numbers or quantities of one kind."""


def axes(points: pl.DataFrame, keys: Sequence[str]) -> list[Axis]:
    """Return an axis per key that has more than one value among the points."""
    candidates = [_axis(key, points[key].drop_nulls().unique(maintain_order=True).to_list()) for key in keys]
    return [axis for axis in candidates if len(axis.values) > 1]


def _axis(key: str, values: list[SweptValue]) -> Axis:
    if all(isinstance(value, float) for value in values):
        return Axis(key, sorted(values), is_ordered=True)
    quantities = [quantity(value) for value in values]
    kinds = {quantity[0] if quantity else None for quantity in quantities}
    if len(kinds) == 1 and None not in kinds:
        order = sorted(range(len(values)), key=lambda i: quantities[i] or ("", 0))
        return Axis(key, [values[i] for i in order], is_ordered=True)
    return Axis(key, values, is_ordered=False)


def quantity(value: SweptValue) -> tuple[str, float] | None:
    """Parse a text as a kind and a number, in base units (bit/s, B, s); None if it is not a quantity.

    >>> quantity("40Mbps"), quantity("0.5bdp"), quantity("cubic")
    (('rate', 40000000.0), ('bdp', 0.5), None)
    """
    match = _QUANTITY.fullmatch(value) if isinstance(value, str) else None
    if not match or match[2] not in _UNITS:
        return None
    kind, scale = _UNITS[match[2]]
    return kind, float(match[1]) * scale
