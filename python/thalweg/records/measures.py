"""Measures of the connections and transfers in records."""

from dataclasses import dataclass
from typing import Literal

import polars as pl

Of = Literal["transfers", "connections"]

MICROSECONDS = 1e6


@dataclass(frozen=True)
class Measure:
    """A measure of a row, which may be null."""

    title: str
    unit: str
    """Unit, as in the analysis of runs: bit/s, s or ratio; empty for a number of BDPs."""
    of: Of
    value: pl.Expr
    columns: tuple[str, ...]
    """Main input columns; `value`, which may use others, determines which rows count."""
    about: str


def _seconds(column: str) -> pl.Expr:
    return pl.col(column) / MICROSECONDS


def _ratio(part: str, total: str) -> pl.Expr:
    return pl.when(pl.col(total) > 0).then(pl.col(part) / pl.col(total))


MEASURES: dict[str, Measure] = {
    "goodput": Measure(
        "Goodput of transfers", "bit/s", "transfers", pl.col("goodput_bps"), ("goodput_bps",),
        "Bytes of an object over its completion time. Small objects end before the path is full: compare equal sizes.",
    ),
    "completion_time": Measure(
        "Completion time of transfers", "s", "transfers", _seconds("fct_us"), ("fct_us",),
        "From the first byte queued to the last byte acknowledged, of completed transfers.",
    ),
    "serving_time": Measure(
        "Time that the server took", "s", "transfers",
        pl.when(pl.col("fct_us").is_null()).then(_seconds("duration_us")), ("duration_us",),
        "By the server's own clock, of transfers whose completion was not observed. It ends when the last byte is in"
        " the send buffer, which can be long before the client has it.",
    ),
    "busy_goodput": Measure(
        "Goodput while sending", "bit/s", "connections", pl.col("busy_goodput_bps"), ("busy_goodput_bps",),
        "Bytes acknowledged, over the time with unsent or unacknowledged data.",
    ),
    "rtt_min": Measure(
        "Smallest RTT", "s", "connections", _seconds("rtt_min_us"), ("rtt_min_us",),
        "The smallest RTT of a connection is that of the path without queues.",
    ),
    "rtt_p95": Measure(
        "95th percentile of the RTT", "s", "connections", _seconds("rtt_p95_us"), ("rtt_p95_us",),
        "If the 95th percentile of a connection's samples is far above the smallest, its packets waited in a queue.",
    ),
    "rtt_smoothed": Measure(
        "Smoothed RTT", "s", "connections", _seconds("rtt_smoothed_us"), ("rtt_smoothed_us",),
        "The kernel's average at the end of the row's time.",
    ),
    "transfer_rtt_smoothed": Measure(
        "Smoothed RTT at the end of a transfer", "s", "transfers", _seconds("rtt_smoothed_us"), ("rtt_smoothed_us",),
        "The kernel's average when the transfer ended, or when the server wrote its log.",
    ),
    "retransmit_ratio": Measure(
        "Retransmitted", "ratio", "connections",
        pl.coalesce(_ratio("retransmits", "segments"), _ratio("retransmitted_bytes", "sent_bytes")),
        ("segments", "retransmits"),
        "Retransmissions among the data segments of a connection; among its bytes, where segments were not counted.",
    ),
    "buffer": Measure(
        "Largest queue", "", "connections", pl.col("buffer_bdp"), ("buffer_bdp",),
        "Largest minus smallest RTT, in smallest RTTs: the buffer of the bottleneck holds at least this many BDPs,"
        " if the connection filled it.",
    ),
    "app_limited": Measure(
        "Limited by the application", "ratio", "connections", pl.col("app_limited_share"), ("app_limited_share",),
        "Share of the RTT samples that were taken while the application had no more data to send.",
    ),
    "rwnd_limited": Measure(
        "Limited by the receive window", "ratio", "connections", _ratio("rwnd_limited_us", "busy_us"),
        ("rwnd_limited_us", "busy_us"),
        "Share of the time with unsent or unacknowledged data in which the peer's receive window limited sending.",
    ),
    "sndbuf_limited": Measure(
        "Limited by the send buffer", "ratio", "connections", _ratio("sndbuf_limited_us", "busy_us"),
        ("sndbuf_limited_us", "busy_us"),
        "Share of the time with unsent or unacknowledged data in which the local send buffer limited sending.",
    ),
}  # fmt: skip
