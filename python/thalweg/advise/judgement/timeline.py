"""Medians of both arms over time, to show changes."""

import polars as pl

from thalweg.advise.counting import keys
from thalweg.advise.counting.arms import TREATMENT
from thalweg.advise.judgement.samples import METRICS


def medians(counted: pl.DataFrame, step_us: int) -> pl.DataFrame:
    """Return the median of each arm and time step, as the mean of its bucket, from the rows of `counts.over_time`."""
    cells = keys.unpacked(counted, "key", {"metric": 0, "arm": keys.ARMS, "bucket": keys.BUCKETS})
    names = ["step", "metric", "arm"]
    below = pl.col("weight").cum_sum().over(names) - pl.col("weight")
    total = pl.col("weight").sum().over(names)
    # The median is in the last bucket with less than half of the weight below it.
    halves = (
        cells.sort([*names, "bucket"])
        .with_columns(n=pl.col("n").sum().over(names), is_first_half=below < total / 2)
        .filter("is_first_half")
        .group_by(names, maintain_order=True)
        .last()
    )
    metrics = dict(enumerate(METRICS))
    return halves.select(
        start_us=pl.col("step") * step_us,
        metric=pl.col("metric").replace_strict(metrics, return_dtype=pl.String),
        arm=pl.when(pl.col("arm") == TREATMENT).then(pl.lit("treatment")).otherwise(pl.lit("control")),
        n=pl.col("n"),
        median=pl.col("total") / pl.col("weight"),
    )
