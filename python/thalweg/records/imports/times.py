"""Parses dates and times of logs; times without a time zone are assumed to be UTC.

Ambiguous dates, such as 11/12/2023, and unknown or ambiguous abbreviations of time zones are rejected.
"""

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone
from functools import lru_cache

from thalweg.records.imports import values
from thalweg.records.imports.items import Assumed, Unread

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)

NO_ZONE = "it has no time zone, and counts as UTC"
NOT_A_TIME = "not a time"

MONTHS = {
    name: number
    for number, full in enumerate(
        ("january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
         "december"), 1)
    for name in (full, full[:3])
}  # fmt: skip
WEEKDAYS = {
    name: number
    for number, full in enumerate(
        ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"))
    for name in (full, full[:3])
}  # fmt: skip
ZONES = {
    "UTC": 0, "GMT": 0, "UT": 0, "Z": 0, "WET": 0, "WEST": 60, "CET": 60, "CEST": 120, "EET": 120, "EEST": 180,
    "MSK": 180, "JST": 540, "KST": 540, "AEST": 600, "AEDT": 660, "NZST": 720, "NZDT": 780, "EST": -300,
    "EDT": -240, "MST": -420, "MDT": -360, "PDT": -420, "AKST": -540, "AKDT": -480, "HST": -600,
}  # fmt: skip
"""Minutes east of Greenwich, for unambiguous abbreviations."""

SLASHED = re.compile(
    r"\[?(\d{1,2})/([A-Za-z]{3})/(\d{4}):(\d{2}):(\d{2}):(\d{2})(?:\.(\d{1,9}))?(?: ([+-]\d{4}))?\]?", re.ASCII
)
"""Time of the common log format, `21/Nov/2026:23:37:28 +0100`, and of HAProxy, with milliseconds and no zone."""
DOTTED = re.compile(
    r"(\d{1,2})\.(\d{1,2})\.(\d{4})(?:[ T,]+(\d{1,2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)?)?", re.ASCII
)
"""Spreadsheet date in a locale that puts the day first."""
TWO_MEANINGS = re.compile(r"\d{1,2}([/.-])\d{1,2}\1(\d{2}|\d{4})\b.*", re.ASCII)
YEAR_FIRST = re.compile(r"\d{4}/\d{2}/\d{2}(?!\d)", re.ASCII)
DASHED = re.compile(r"^(\d{1,2})-([A-Za-z]{3})-(\d{4})(?!\d)", re.ASCII)
"""A date in the format 21-Nov-2026."""
CLOCK = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)?", re.ASCII)
OFFSET = re.compile(r"([+-])(\d{2}):?(\d{2})?", re.ASCII)
WORDS = 8


def instant(text: str) -> int | None:
    """Parse a UNIX time in seconds, or a date and time.

    Returns:
        UNIX time in microseconds, marked as assumed if it has no time zone; `None` if there is no value.

    Raises:
        Unread: It is not a time, is before 1970, or is ambiguous.

    >>> instant("1795304248.123"), instant("2026-11-21T23:37:28.123Z"), instant("21/Nov/2026:23:37:28 +0000")
    (1795304248123000, 1795304248123000, 1795304248000000)
    >>> instant("Sat, 21 Nov 2026 23:37:28 +0000") == instant("Sat Nov 21 11:37:28 PM UTC 2026") == 1795304248000000
    True
    """
    if values.is_number(text) or values.is_unknown(text):
        return values.count(text, 1e6)
    return _written(text)


def formatted(text: str, form: str) -> int | None:
    """Parse a time in a format of `datetime.strptime`; it returns and raises as `instant` does.

    >>> formatted("11/21/2026 11:37 PM", "%m/%d/%Y %I:%M %p")
    1795304220000000
    """
    return None if values.is_unknown(text) else _formatted(text, form)


def later(at_us: int, duration_us: int) -> int:
    """Return the sum of a time and a duration; it is assumed if the time is."""
    value = int(at_us) + duration_us
    return Assumed(value, at_us.why) if isinstance(at_us, Assumed) else value


@lru_cache(maxsize=4096)
def _formatted(text: str, form: str) -> int:
    try:
        return _microseconds(datetime.strptime(text, form), text)
    except (ValueError, re.error):
        raise Unread("not a time in the format of --time-format", f"`{text}`") from None


@lru_cache(maxsize=4096)
def _written(text: str) -> int:
    try:
        return _microseconds(_parsed(text), text)
    except (ValueError, OverflowError):
        raise Unread(NOT_A_TIME, f"`{text}`") from None


def _parsed(text: str) -> datetime:
    if match := SLASHED.fullmatch(text):
        day, month, year, *clock, zone = match.groups()
        return _at(year, _month(month, text), day, clock, _zone(zone) if zone else None)
    if match := DOTTED.fullmatch(text):
        day, month, year, *clock = match.groups()
        return _at(year, int(month), day, clock, None)
    if TWO_MEANINGS.fullmatch(text):
        raise Unread(
            "a date with several meanings: name its format with --time-format, such as '%d/%m/%Y %H:%M'", f"`{text}`"
        )
    text = DASHED.sub(r"\1 \2 \3", text)
    if YEAR_FIRST.match(text):
        text = text.replace("/", "-", 2)
    try:
        return datetime.fromisoformat(re.sub(r"[ T]?UTC$", "+00:00", text))
    except ValueError:
        return _of_words(text)


def _of_words(text: str) -> datetime:
    """Parse the words of a date in any order, as `date` prints them in English."""
    words = text.replace(",", " ").split()
    if not 1 <= len(words) <= WORDS:
        raise Unread(NOT_A_TIME, f"`{text}`")
    words_by_kind: dict[str, str] = {}
    for word in words:
        kind = _kind(word)
        if kind in words_by_kind or not kind:
            raise Unread(NOT_A_TIME, f"`{text}`")
        words_by_kind[kind] = word
    if "clock" in words_by_kind and "month" not in words_by_kind:
        raise Unread("a time without a date", f"`{text}`")
    if "clock" in words_by_kind and "year" not in words_by_kind:
        raise Unread("a time without a year", f"`{text}`")
    clock = CLOCK.fullmatch(words_by_kind.get("clock", ""))
    if clock is None or not {"month", "day"} <= words_by_kind.keys():
        raise Unread(NOT_A_TIME, f"`{text}`")
    hour, *others = clock.groups()
    if half := words_by_kind.get("half"):
        if not 1 <= int(hour) <= 12:
            raise Unread(NOT_A_TIME, f"`{text}`")
        hour = str(int(hour) % 12 + 12 * (half.upper() == "PM"))
    zone = _zone(words_by_kind["zone"]) if "zone" in words_by_kind else None
    at = _at(
        words_by_kind["year"],
        _month(words_by_kind["month"], text),
        words_by_kind["day"].rstrip("."),
        [hour, *others],
        zone,
    )
    if "weekday" in words_by_kind and WEEKDAYS[words_by_kind["weekday"].lower()] != at.weekday():
        raise Unread("a date whose day of the week is wrong", f"`{text}`")
    return at


def _kind(word: str) -> str:
    lower = word.lower()
    if lower in WEEKDAYS:
        return "weekday"
    if lower in MONTHS:
        return "month"
    if CLOCK.fullmatch(word):
        return "clock"
    if re.fullmatch(r"\d{4}", word, re.ASCII):
        return "year"
    if re.fullmatch(r"\d{1,2}\.?", word, re.ASCII):
        return "day"
    if lower in ("am", "pm"):
        return "half"
    return "zone" if OFFSET.fullmatch(word) or re.fullmatch(r"[A-Z]{1,5}", word) else ""


def _month(name: str, text: str) -> int:
    number = MONTHS.get(name.lower())
    if number is None:
        raise Unread(NOT_A_TIME, f"`{text}`")
    return number


def _zone(name: str) -> timezone:
    if match := OFFSET.fullmatch(name):
        minutes = 60 * int(match[2]) + int(match[3] or 0)
        return timezone(timedelta(minutes=minutes if match[1] == "+" else -minutes))
    if name not in ZONES:
        raise Unread("a time zone that is unknown or has several meanings", f"`{name}`")
    return timezone(timedelta(minutes=ZONES[name]))


def _at(year: str, month: int, day: str, clock: Sequence[str | None], zone: timezone | None) -> datetime:
    """Return a time; `clock` has hour, minute, second and fractional digits, `None` for zero."""
    *whole_parts, fraction = clock
    hour, minute, second = (int(part or 0) for part in whole_parts)
    micro = int((fraction or "0")[:6].ljust(6, "0"))
    return datetime(int(year), month, int(day), hour, minute, second, micro, tzinfo=zone)


def _microseconds(at: datetime, text: str) -> int:
    aware = at.replace(tzinfo=UTC) if at.tzinfo is None else at
    if aware < EPOCH:
        raise Unread("a time before 1970", f"`{text}`")
    value = (aware - EPOCH) // MICROSECOND
    return Assumed(value, NO_ZONE) if at.tzinfo is None else value
