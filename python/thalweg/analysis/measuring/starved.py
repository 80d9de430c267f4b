"""Connections that never delivered a byte."""

import polars as pl

from thalweg.analysis.tables.flows import EXPERIMENT, MICROSECONDS

ROUND_TRIPS = 2
"""Minimum round trips of the empty path for the first byte: one for the handshake, one for the data."""


def starved(flows: pl.DataFrame, base_rtts: pl.DataFrame) -> pl.DataFrame:
    """Return `connections` and `starved` per experiment, repetition and flow.

    A connection that lasted for at most two round trips of the empty path does not count as starved.
    """
    lasted_s = (pl.col("end_us").max() - pl.col("start_us").min()) / MICROSECONDS
    connections = flows.group_by(*EXPERIMENT, "flow", "copy", "connection", maintain_order=True).agg(
        (pl.col("acked_bytes").sum() == 0).alias("is_empty"), lasted_s.alias("lasted_s")
    )
    had_time = pl.col("lasted_s") > ROUND_TRIPS * pl.col("max_rtt_s")
    timed = connections.join(base_rtts, on=["experiment", "flow"], how="left", maintain_order="left")
    return timed.group_by(*EXPERIMENT, "flow", maintain_order=True).agg(
        pl.len().cast(pl.Float64).alias("connections"),
        (pl.col("is_empty") & had_time).sum().cast(pl.Float64).alias("starved"),
    )
