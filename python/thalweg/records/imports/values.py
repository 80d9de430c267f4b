"""Parses texts of logs as values of columns: numbers with units, and booleans.

Texts in `NOTHING`, NaN and infinities are unknown. Parsing functions raise `Unread` for malformed texts.
"""

import math
import re

from thalweg.records.imports.items import Unread

LARGEST = 2**64 - 1
"""Maximum value of an integer column."""
MAX_DIGITS = 20

NOTHING = frozenset(("", "-", "null", "NULL", "None", "NA", "N/A", "\\N"))
UNDEFINED = re.compile(r"[+-]?(nan|inf|infinity)", re.IGNORECASE | re.ASCII)
NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
COMMA = "a decimal comma or a thousands separator"
GROUPED = re.compile(r"[+-]?\d{1,3}(?:[.,' \u00a0\u202f]\d{3})+(?:[.,]\d*)?|[+-]?\d+,\d+", re.ASCII)
"""Numbers with thousands separators or a decimal comma."""
MARKED = {
    ",": re.compile(r"([+-]?(?:\d{1,3}(?:\.\d{3})+|\d+))(?:,(\d*))?", re.ASCII),
    ".": re.compile(r"([+-]?(?:\d{1,3}(?:,\d{3})+|\d+))(?:\.(\d*))?", re.ASCII),
}
"""Numbers with optional thousands separators, by their decimal mark."""

UNSAMPLED_US = 4_294_900_000
"""RTTs of BBR from this value on stand for an unsampled RTT: the kernel reports the largest number of 32 bits, which
`ss` can round to six digits.
"""

UNITS = {
    "us": {"s": 1e6, "ms": 1e3, "us": 1.0, "ns": 1e-3, "min": 60e6},
    "bps": {"bps": 1.0, "kbps": 1e3, "Mbps": 1e6, "Gbps": 1e9, "B/s": 8.0, "kB/s": 8e3, "MB/s": 8e6},
    "bytes": {"B": 1.0, "kB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30, "bit": 0.125},
    "share": {"ratio": 1.0, "%": 0.01},
}
"""Units of the values of a column and their sizes in the column's unit, by the last word of its name."""


def is_unknown(text: str) -> bool:
    """Return whether a text means an unknown value.

    >>> is_unknown("-"), is_unknown("-Infinity"), is_unknown("0")
    (True, True, False)
    """
    return text in NOTHING or UNDEFINED.fullmatch(text) is not None


def is_number(text: str) -> bool:
    """Return whether a text is a decimal number."""
    return NUMBER.fullmatch(text) is not None


def number(text: str, unit: float = 1.0) -> float | None:
    """Parse a number and multiply it by the factor `unit`; `None` if it is unknown.

    >>> number("1.5", 1e6), number("-")
    (1500000.0, None)
    """
    if is_unknown(text):
        return None
    if not is_number(text):
        raise Unread(COMMA if GROUPED.fullmatch(text) else "not a number", f"`{text}`")
    value = float(text) * unit
    if not math.isfinite(value):
        raise Unread("a number that is too large", f"`{text}`")
    return value


def count(text: str, unit: float = 1.0) -> int | None:
    """Parse a non-negative number, multiply it by the factor `unit`, and round it; `None` if it is unknown.

    >>> count("0.204", 1e6), count("12")
    (204000, 12)
    """
    if text.isdecimal() and text.isascii() and unit == 1.0 and len(text) <= MAX_DIGITS:
        value = int(text)
    else:
        amount = number(text, unit)
        if amount is None:
            return None
        value = round(amount)
    if not 0 <= value <= LARGEST:
        raise Unread("a negative number" if value < 0 else "a number that is too large", f"`{text}`")
    return value


def sampled_us(value: int | None) -> int | None:
    """Return an RTT of BBR; `None` if the kernel reports that it has no sample.

    >>> sampled_us(20_000), sampled_us(4_294_967_295)
    (20000, None)
    """
    return None if value is None or value >= UNSAMPLED_US else value


def with_point(text: str, mark: str) -> str:
    """Convert a number with a decimal mark and optional thousands separators; other texts are unchanged.

    >>> with_point("1.000.000", ","), with_point("800,5", ","), with_point("1,000.5", "."), with_point("-", ",")
    ('1000000', '800.5', '1000.5', '-')
    """
    match = MARKED[mark].fullmatch(text)
    if match is None:
        if mark != "." and is_number(text) and "." in text:
            raise Unread("a decimal point, although --decimal is a comma", f"`{text}`")
        return text
    return re.sub("[.,]", "", match[1]) + (f".{match[2]}" if match[2] else "")


def truth(text: str) -> bool | None:
    """Parse a boolean; `None` if it is unknown.

    >>> truth("true"), truth("0"), truth("-")
    (True, False, None)
    """
    if is_unknown(text):
        return None
    lower = text.lower()
    if lower in ("true", "t", "yes", "y", "1"):
        return True
    if lower in ("false", "f", "no", "n", "0"):
        return False
    raise Unread("neither true nor false", f"`{text}`")
