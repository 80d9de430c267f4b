"""Parses numbers with units exactly, without binary fractions.

crates/units implements the same in Rust; tests/vectors/quantities.json tests both. Rates are in bits per second, sizes
in bytes (`MB` = 10^6, `MiB` = 2^20), times in nanoseconds, all from 0 to 2^64 - 1. A fraction of the base unit is an
error. The parsers raise `QuantityError` for any other text.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TypeVar

LARGEST = 2**64 - 1
"""Largest value of a quantity, in its base unit."""

RATES = {"bps": 1, "kbps": 10**3, "Mbps": 10**6, "Gbps": 10**9}
SIZES = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
TIMES = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9}

_NUMBER = re.compile(r"\s*(?P<whole>[0-9]+)(?:\.(?P<fraction>[0-9]{1,18}))?\s*(?P<unit>[^0-9.\s].*?)?\s*", re.ASCII)


class QuantityError(ValueError):
    """A text that is not the expected quantity; the message is a short reason, or empty."""


@dataclass(frozen=True)
class Bdps:
    """Capacity in bandwidth-delay products."""

    factor: Fraction


@dataclass(frozen=True)
class PacketCount:
    """Capacity in packets."""

    packets: int


@dataclass(frozen=True)
class Rtts:
    """A time in round-trip times of the path."""

    factor: Fraction


@dataclass(frozen=True)
class PerSecond:
    """Arrivals per second."""

    arrivals: Fraction


T = TypeVar("T")


MAX_CACHED = 1 << 18
"""Maximum number of cached texts of one kind, enough for the values of a large sweep."""


def _cached(parse: Callable[[str], T]) -> Callable[[str], T]:
    """Cache the results of a parser; the points of a sweep share most of their texts."""
    return lru_cache(maxsize=MAX_CACHED)(parse)


@_cached
def rate(text: str) -> int:
    """Parse a rate in bits per second.

    >>> rate("2.5Gbps")
    2500000000
    """
    return _integer(text, RATES)


@_cached
def size(text: str) -> int:
    """Parse a size in bytes.

    >>> size("4MiB")
    4194304
    """
    return _integer(text, SIZES)


@_cached
def time(text: str) -> int:
    """Parse a time in nanoseconds.

    >>> time("0.5s")
    500000000
    """
    return _integer(text, TIMES)


@_cached
def time_or_rtt(text: str) -> int | Rtts:
    """Parse a time in nanoseconds, or in round-trip times.

    >>> time_or_rtt("1.5rtt")
    Rtts(factor=Fraction(3, 2))
    """
    number, unit = _split(text)
    return Rtts(number) if unit == "rtt" else time(text)


@_cached
def buffer(text: str) -> int | Bdps | PacketCount:
    """Parse a buffer capacity: bytes, bandwidth-delay products, or packets.

    >>> buffer("100kB"), buffer("0.5bdp"), buffer("240packets")
    (100000, Bdps(factor=Fraction(1, 2)), PacketCount(packets=240))
    """
    number, unit = _split(text)
    if unit == "bdp":
        return Bdps(number)
    if unit in ("packets", "packet"):
        return PacketCount(_exact(number, "the number of packets is not a whole number"))
    return size(text)


@_cached
def size_or_unlimited(text: str) -> int | None:
    """Parse a size in bytes, or `unlimited`, which is None.

    >>> size_or_unlimited("unlimited") is None
    True
    """
    return None if text.strip() == "unlimited" else size(text)


@_cached
def arrival_rate(text: str) -> int | PerSecond:
    """Parse arrivals per second, or the load that they offer in bits per second.

    >>> arrival_rate("20/s"), arrival_rate("10Mbps")
    (PerSecond(arrivals=Fraction(20, 1)), 10000000)
    """
    number, unit = _split(text)
    return PerSecond(number) if unit == "/s" else rate(text)


def rate_text(bps: int | Fraction) -> str:
    """Return a rate as text in the largest unit that it reaches, with up to four significant digits (from 10,000 Gbps
    on: in whole Gbps).

    >>> rate_text(24), rate_text(2_500_000)
    ('24bps', '2.5Mbps')
    """
    return _text(bps, RATES)


def time_text(ns: int | Fraction) -> str:
    """Return a time as text in the largest unit up to seconds that it reaches, with up to four significant digits
    (from 10,000 s on: in whole seconds).

    >>> time_text(500_000_000_000), time_text(1_500_000)
    ('500s', '1.5ms')
    """
    return _text(ns, {unit: size for unit, size in TIMES.items() if unit != "min"}) if ns else "0s"


def exact_time_text(ns: int) -> str:
    """Return a time as text that `time` parses as the same number of nanoseconds.

    >>> exact_time_text(1_500_000), exact_time_text(12_463_400_000)
    ('1.5ms', '12463400us')
    """
    text = time_text(ns)
    unit, size = max((item for item in TIMES.items() if ns % item[1] == 0), key=lambda item: item[1])
    return text if time(text) == ns else f"{ns // size}{unit}"


def _text(value: int | Fraction, units: Mapping[str, int]) -> str:
    unit, size = max(
        ((u, s) for u, s in units.items() if value >= s),
        key=lambda name_and_size: name_and_size[1],
        default=(next(iter(units)), 1),
    )
    number = float(value / Fraction(size))
    return f"{number:.4g}{unit}" if number < 10_000 else f"{number:.0f}{unit}"


def _split(text: str) -> tuple[Fraction, str]:
    match = _NUMBER.fullmatch(text)
    if not match:
        raise QuantityError("it is negative" if text.strip().startswith("-") else "")
    fraction = match["fraction"] or ""
    if not match["unit"]:
        raise QuantityError("the unit is missing")
    return Fraction(int(match["whole"] + fraction), 10 ** len(fraction)), match["unit"]


def _integer(text: str, units: Mapping[str, int]) -> int:
    number, unit = _split(text)
    if unit not in units:
        raise QuantityError(f"unknown unit `{unit}`")
    smallest = next(iter(units))
    return _exact(number * units[unit], f"the resolution is 1{smallest}")


def _exact(value: Fraction, why_not: str) -> int:
    if value.denominator != 1:
        raise QuantityError(why_not)
    if value > LARGEST:
        raise QuantityError("it is too large")
    return value.numerator
