"""Columns that are derived from other columns if the source lacks them."""

from thalweg.records.imports.items import RecordRow, Unread
from thalweg.records.schema import LATEST_US, TRANSFER

BITS = 8
MICROSECONDS = 1_000_000
EARLIEST_US = 946_684_800_000_000
"""Earliest valid time: the start of the year 2000 as UNIX time. An earlier time has a wrong unit, or the clock was not
set.
"""


def complete(row: RecordRow) -> RecordRow:
    """Fill in derived values in place; existing ones are unchanged.

    Raises:
        Unread: If the end time is neither present nor derivable, or a time is invalid.

    >>> complete({"kind": "close", "end_us": 1_700_000_009_000_000, "duration_us": 4_000_000})["start_us"]
    1700000005000000
    """
    _times(row)
    acked, busy, fct_us = number(row, "acked_bytes"), number(row, "busy_us"), number(row, "fct_us")
    if acked is not None and busy:
        row.setdefault("busy_goodput_bps", BITS * acked * MICROSECONDS / busy)
    if row["kind"] == TRANSFER and acked is not None and fct_us:
        row.setdefault("goodput_bps", BITS * acked * MICROSECONDS / fct_us)
    low, high = number(row, "rtt_min_us"), number(row, "rtt_max_us")
    if low and high is not None and high >= low:
        row.setdefault("buffer_bdp", (high - low) / low)
    return row


def number(row: RecordRow, column: str) -> float | None:
    """Return the number in a column; `None` if the row has no number there."""
    value = row.get(column)
    return None if isinstance(value, str) else value


def _times(row: RecordRow) -> None:
    start, end, duration = number(row, "start_us"), number(row, "end_us"), number(row, "duration_us")
    if end is None:
        if start is None or duration is None:
            raise Unread("no time: neither the end, nor the start and the duration")
        row["end_us"] = end = start + duration
    _check("end_us", end)
    if start is not None:
        _check("start_us", start)
        if start > end:
            raise Unread("start_us is after end_us: are their units correct?", f"{start} and {end}")
        if duration is None:
            row["duration_us"] = end - start
    elif duration is not None:
        if duration > end - EARLIEST_US:
            raise Unread("duration_us implies a start before the year 2000: is it in another unit?", str(duration))
        row["start_us"] = end - duration


def _check(name: str, time_us: float) -> None:
    """Reject a time that no live server can have recorded, such as one in another unit."""
    if time_us > LATEST_US:
        raise Unread(f"{name} is after the year 9999: is it in another unit?", f"{time_us} us")
    if time_us < EARLIEST_US:
        raise Unread(f"{name} is before the year 2000: is it in another unit?", f"{time_us} us")
