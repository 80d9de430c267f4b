"""What follows from other columns by their definition, where a source has only those."""

from typing import Any

from thalweg.records.imports.items import Unread
from thalweg.records.schema import LATEST_US, TRANSFER

BITS = 8
"""In a byte."""
MICROSECONDS = 1_000_000
"""In a second."""


def complete(row: dict[str, Any]) -> dict[str, Any]:
    """Fill in what follows from the rest; what is there stays as it is.

    Raises `Unread` if the time of its end neither is there nor follows.

    >>> complete({"kind": "close", "end_us": 9_000_000, "duration_us": 4_000_000})["start_us"]
    5000000
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
            raise Unread("it has no time")
        row["end_us"] = end = start + duration
    if end > LATEST_US:
        raise Unread("its time is beyond the year 9999: is it in another unit?")
    if start is None:
        if duration is not None and duration <= end:
            row["start_us"] = end - duration
    elif duration is None and start <= end:
        row["duration_us"] = end - start
