"""What follows from other columns by their definition, where a source has only those."""

from typing import Any

from thalweg.records.imports.items import Unread
from thalweg.records.schema import LATEST_US, TRANSFER

BITS = 8
"""In a byte."""
MICROSECONDS = 1_000_000
"""In a second."""
EARLIEST_US = 946_684_800_000_000
"""The first moment of the year 2000 as UNIX time: before it, a unit is wrong or a clock was not set."""


def complete(row: dict[str, Any]) -> dict[str, Any]:
    """Fill in what follows from the rest; what is there stays as it is.

    Raises `Unread` if the time of its end neither is there nor follows.

    >>> complete({"kind": "close", "end_us": 1_700_000_009_000_000, "duration_us": 4_000_000})["start_us"]
    1700000005000000
    """
    _times(row)
    acked, busy = row.get("acked_bytes"), row.get("busy_us")
    if acked is not None and busy:
        row.setdefault("busy_goodput_bps", BITS * acked * MICROSECONDS / busy)
    if row["kind"] == TRANSFER and acked is not None and row.get("fct_us"):
        row.setdefault("goodput_bps", BITS * acked * MICROSECONDS / row["fct_us"])
    low, high = row.get("rtt_min_us"), row.get("rtt_max_us")
    if low and high is not None and high >= low:
        row.setdefault("buffer_bdp", (high - low) / low)
    return row


def _times(row: dict[str, Any]) -> None:
    start, end, duration = row.get("start_us"), row.get("end_us"), row.get("duration_us")
    if end is None:
        if start is None or duration is None:
            raise Unread("no time: neither its end, nor its start and duration")
        row["end_us"] = end = start + duration
    _check("end_us", end)
    if start is not None:
        _check("start_us", start)
        if start > end:
            raise Unread("start_us is after end_us: is the unit of each right?", f"{start} and {end}")
        if duration is None:
            row["duration_us"] = end - start
    elif duration is not None:
        if duration > end - EARLIEST_US:
            raise Unread("duration_us goes back to before the year 2000: is it in another unit?", str(duration))
        row["start_us"] = end - duration


def _check(name: str, time_us: int) -> None:
    """Reject a time that no live server can have recorded: its unit is another one, or it is not a time."""
    if time_us > LATEST_US:
        raise Unread(f"{name} is after the year 9999: is it in another unit?", f"{time_us} us")
    if time_us < EARLIEST_US:
        raise Unread(f"{name} is before the year 2000: is it in another unit?", f"{time_us} us")
