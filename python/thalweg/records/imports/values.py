"""Texts of logs become values of columns: numbers with units, and times. What is empty, or `-`, is not known."""

import math
import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from thalweg.records.imports.items import Unread

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
LARGEST = 2**64 - 1
"""What a column of whole numbers can hold."""
MOST_DIGITS = 20
"""Digits of that."""

NOTHING = ("", "-", "null", "NULL", "NaN", "nan")
"""Texts that stand for a value that there is not."""

UNITS = {
    "us": {"s": 1e6, "ms": 1e3, "us": 1.0, "ns": 1e-3, "min": 60e6},
    "bps": {"bps": 1.0, "kbps": 1e3, "Mbps": 1e6, "Gbps": 1e9, "B/s": 8.0, "kB/s": 8e3, "MB/s": 8e6},
    "bytes": {"B": 1.0, "kB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30, "bit": 0.125},
    "share": {"ratio": 1.0, "%": 0.01},
}
"""By the last word of a column's name: the units of its values, and how much of its own unit each is."""

MONTHS = {name: number for number, name in enumerate(
    ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"), 1)}  # fmt: skip
LOG_TIME = re.compile(r"\[?(\d{2})/([A-Z][a-z]{2})/(\d{4}):(\d{2}):(\d{2}):(\d{2}) ([+-])(\d{2})(\d{2})\]?")
"""Time as the common log format has it: `21/Nov/2026:23:37:28 +0100`."""


def number(text: str, unit: float = 1.0) -> float | None:
    """Read a number and give it in another unit; None where there is none.

    >>> number("1.5", 1e6), number("-")
    (1500000.0, None)
    """
    if text in NOTHING:
        return None
    try:
        value = float(text) * unit
    except ValueError:
        raise Unread(f"`{_short(text)}` is no number") from None
    if not math.isfinite(value):
        raise Unread(f"`{_short(text)}` is no finite number")
    return value


def count(text: str, unit: float = 1.0) -> int | None:
    """Read a number that has no sign and no fraction once it is in the unit asked for; None where there is none.

    >>> count("0.204", 1e6), count("12")
    (204000, 12)
    """
    if text.isdecimal() and text.isascii() and unit == 1.0 and len(text) <= MOST_DIGITS:
        value = int(text)
    else:
        amount = number(text, unit)
        if amount is None:
            return None
        value = round(amount)
    if not 0 <= value <= LARGEST:
        raise Unread(f"`{_short(text)}` is {'less than nothing' if value < 0 else 'too much'}")
    return value


def truth(text: str) -> bool | None:
    """Read what is true or false; None where it is neither.

    >>> truth("true"), truth("0"), truth("-")
    (True, False, None)
    """
    if text in NOTHING:
        return None
    lower = text.lower()
    if lower in ("true", "t", "yes", "y", "1"):
        return True
    if lower in ("false", "f", "no", "n", "0"):
        return False
    raise Unread(f"`{_short(text)}` is neither true nor false")


def instant(text: str) -> int | None:
    """Read a UNIX time in seconds, a date and time of ISO 8601 (without a zone: UTC), or one of the common log format.

    Gives microseconds.

    >>> instant("1795304248.123"), instant("2026-11-21T23:37:28.123Z"), instant("21/Nov/2026:23:37:28 +0000")
    (1795304248123000, 1795304248123000, 1795304248000000)
    """
    if text in NOTHING:
        return None
    try:
        return count(text, 1e6)
    except Unread:
        return _written(text)


@lru_cache(maxsize=4096)
def _written(text: str) -> int:
    if match := LOG_TIME.fullmatch(text):
        day, month, year, hour, minute, second, sign, hours, minutes = match.groups()
        zone = timedelta(hours=int(hours), minutes=int(minutes))
        try:
            at = datetime(int(year), MONTHS[month], int(day), int(hour), int(minute), int(second), tzinfo=UTC)
            at += -zone if sign == "+" else zone
        except (KeyError, ValueError, OverflowError):
            raise Unread(f"`{_short(text)}` is no time") from None
    else:
        try:
            at = datetime.fromisoformat(text.removesuffix(" UTC"))
        except ValueError:
            raise Unread(f"`{_short(text)}` is no time") from None
        at = at.replace(tzinfo=UTC) if at.tzinfo is None else at
    if at < EPOCH:
        raise Unread(f"`{_short(text)}` is before 1970")
    return (at - EPOCH) // MICROSECOND


def _short(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:37]}..."
