"""Reads values of a scenario that may be malformed.

Rules between keys are checked even if other keys are malformed, so that all mistakes of a file are reported together.
They read a scenario from `structure.sound`, in which a value is valid, absent, or MALFORMED.
"""

from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import TypeVar

from thalweg.errors import ThalwegError
from thalweg.scenario import traces
from thalweg.scenario.document import Raw, TomlValue
from thalweg.scenario.text import quantities
from thalweg.scenario.text.quantities import Bdps, PacketCount, QuantityError

T = TypeVar("T")

NANOS = 10**9


class Malformed:
    """Placeholder for a malformed value: the key exists, but its value is unknown."""

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "?"


MALFORMED = Malformed()


def table(raw: TomlValue, key: str) -> Raw:
    """Return the table under a key, empty if it is missing or malformed."""
    value = raw.get(key) if isinstance(raw, dict) else None
    return value if isinstance(value, dict) else {}


def tables(raw: Raw, key: str) -> Iterator[tuple[int, Raw]]:
    """Yield the tables of a list with their indices."""
    value = raw.get(key)
    for index, table_ in enumerate(value if isinstance(value, list) else ()):
        if isinstance(table_, dict):
            yield index, table_


def whole_number(raw: Raw, key: str, default: int) -> int:
    """Return an integer; the default if it is absent or malformed."""
    value = raw.get(key)
    return value if isinstance(value, int) else default


def quantity(raw: Raw, key: str, parse: Callable[[str], T], default: str | None = None) -> T | None:
    """Return a quantity; None if it is malformed, or absent without a default."""
    text = raw.get(key, default)
    if not isinstance(text, str):
        return None
    try:
        return parse(text)
    except QuantityError:
        return None


def rate_for_bdp(link: Raw, folder: Path) -> Fraction | None:
    """Return the rate that defines a direction's BDP: the constant rate, that of the first step, or a trace's mean
    rate; None: unlimited or unknown.
    """
    if (rate := quantity(link, "rate", quantities.rate)) is not None:
        return Fraction(rate)
    for _, step in tables(link, "steps"):
        first = quantity(step, "rate", quantities.rate)
        return None if first is None else Fraction(first)
    trace = trace_of(link, folder)
    return trace.mean_rate_bps or None if trace else None


def trace_of(link: Raw, folder: Path) -> traces.Trace | None:
    """Return the trace of a direction; None if it has none, or an unreadable one."""
    if not isinstance(name := link.get("trace"), str):
        return None
    try:
        return traces.read(folder / name)
    except ThalwegError:
        return None


def room_bytes(buffer: int | Bdps, rate_bps: Fraction | None, rtt_ns: int | None) -> int | None:
    """Return the size of a buffer in whole bytes, rounded down; None if it depends on an unknown value.

    >>> room_bytes(Bdps(Fraction(1, 2)), Fraction(40_000_000), 45_000_000)
    112500
    """
    if isinstance(buffer, int):
        return buffer
    if rate_bps is None or rtt_ns is None:
        return None
    # Integers are used because arithmetic of fractions is slow, and sweeps have many points.
    factor = buffer.factor
    return rate_bps.numerator * rtt_ns * factor.numerator // (rate_bps.denominator * factor.denominator * 8 * NANOS)


def buffer_of(link: Raw) -> int | Bdps | PacketCount | None:
    """Return a direction's buffer."""
    return quantity(link, "buffer", quantities.buffer, "1bdp")
