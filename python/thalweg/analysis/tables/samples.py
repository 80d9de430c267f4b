"""Measures of the sampled state of connections."""

import polars as pl

from thalweg.analysis.tables.derived import PACKET_BYTES
from thalweg.analysis.tables.flows import BITS, EXPERIMENT, MICROSECONDS
from thalweg.analysis.tables.window import Window


def sample_measures(samples: pl.DataFrame, rates: pl.DataFrame, rtts: pl.DataFrame, window: Window) -> pl.DataFrame:
    """Return a row per experiment, repetition and flow that was sampled within the window.

    `rates` and `rtts` are the results of `derived.rates` and `derived.base_rtts`.
    """
    by = [*EXPERIMENT, "flow"]
    inside = samples.lazy().filter(pl.col("t_us").is_between(window.from_us, window.to_us))
    rtt_s = pl.col("srtt_us") / MICROSECONDS
    states = inside.group_by(by).agg(
        pl.col("cwnd_packets").mean().alias("cwnd_mean"),
        pl.col("delivery_rate_bps").max().alias("delivery_rate_max"),
        rtt_s.mean().alias("rtt_mean"),
        rtt_s.quantile(0.5, "linear").alias("rtt_p50"),
        rtt_s.quantile(0.95, "linear").alias("rtt_p95"),
    )
    bdp_bytes = pl.col("rate_bps") * pl.col("base_rtt_s") / BITS
    inflight = (
        inside.group_by(*by, "t_us")
        .agg(pl.col("inflight_packets").sum() * PACKET_BYTES)
        .join(rtts.lazy(), on=["experiment", "flow"])
        .sort("t_us")
        .join_asof(rates.lazy().sort("t_us"), on="t_us", by=["experiment", "direction"], check_sortedness=False)
        .filter(bdp_bytes > 0)
        .group_by(by)
        .agg((pl.col("inflight_packets") / bdp_bytes).mean().alias("inflight_bdp"))
    )
    return states.join(inflight, on=by, how="left").collect()
