"""Measures of the flows, one value per experiment and flow, from the table of transfers."""

import polars as pl

from thalweg.analysis.tables.directions import with_direction

EXPERIMENT = ["experiment", "repetition"]
MICROSECONDS = 1e6
"""Microseconds in a second."""
BITS = 8

MIN_FOR_QUARTILES = 4


def flow_measures(flows: pl.DataFrame) -> pl.DataFrame:
    """Return one row per experiment, repetition and flow, with a column per measure, null where undefined.

    `start_us` and `end_us` bound the time in which the flow was active.
    """
    flows = with_direction(flows)
    active_s = (pl.col("end_us").max() - pl.col("start_us").min()) / MICROSECONDS
    completed_s = pl.col("fct_us").filter("completed") / MICROSECONDS
    has_rate = (pl.col("completed") | pl.col("size_bytes").is_null()) & (pl.col("end_us") > pl.col("start_us"))
    complete_goodput = pl.col("goodput_bps").filter(has_rate)
    measures = flows.group_by(*EXPERIMENT, "flow", maintain_order=True).agg(
        pl.col("cc").first(),
        pl.col("direction").first(),
        pl.col("start_us").min(),
        pl.col("end_us").max(),
        pl.when(active_s > 0).then(pl.col("acked_bytes").sum() * BITS / active_s).alias("goodput"),
        complete_goodput.mean().alias("transfer_goodput"),
        completed_s.mean().alias("completion_time"),
        completed_s.quantile(0.5, "linear").alias("completion_time_p50"),
        completed_s.quantile(0.95, "linear").alias("completion_time_p95"),
        pl.when(completed_s.count() >= MIN_FOR_QUARTILES)
        .then(_ratio(completed_s.quantile(0.75, "linear") - completed_s.quantile(0.25, "linear"), completed_s.median()))
        .alias("jitter"),
        pl.len().cast(pl.Float64).alias("transfers"),
        pl.col("completed").sum().cast(pl.Float64).alias("completed"),
        _ratio(_known_sum("retransmits"), pl.col("segments").sum()).alias("retransmit_ratio"),
        _known_sum("retransmits").alias("retransmits"),
        _known_sum("timeouts").alias("timeouts"),
        pl.col("acked_bytes").sum().alias("_acked"),
        _weighted("rtt_mean_us").alias("rtt_mean"),
        (pl.col("rtt_min_us").min() / MICROSECONDS).alias("rtt_min"),
        _weighted("rtt_p50_us").alias("rtt_p50"),
        _weighted("rtt_p95_us").alias("rtt_p95"),
    )
    share = _ratio(pl.col("_acked"), pl.col("_acked").sum().over(*EXPERIMENT, "direction"))
    return measures.with_columns(share.alias("share")).drop("_acked")


def _known_sum(column: str) -> pl.Expr:
    """Return the sum; null if a transfer has no value, such as the retransmissions of programs over UDP."""
    return pl.when(pl.col(column).null_count() == 0).then(pl.col(column).sum().cast(pl.Float64))


def _weighted(column: str) -> pl.Expr:
    """Return the mean of the transfers' values in s, weighted by the segments sent."""
    is_known = pl.col(column).is_not_null() & (pl.col("segments") > 0)
    weight = pl.col("segments").filter(is_known)
    return _ratio((pl.col(column).filter(is_known) * weight).sum(), weight.sum() * MICROSECONDS)


def _ratio(part: pl.Expr, total: pl.Expr) -> pl.Expr:
    return pl.when(total > 0).then(part / total)
