"""Means with their uncertainty.

The repetitions of an experiment are independent draws (each has its own seed), so their mean has a Student t interval:
mean +- t(0.975, n - 1) * s / sqrt(n), with s the sample standard deviation (n - 1). It assumes that the mean of n
repetitions is about normal; with few repetitions of a skewed measure it is a rough guide. It is not clipped: a ratio's
interval may pass 1. One repetition has no interval.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl
from scipy import special

CONFIDENCE = 0.95
"""Probability that the interval covers the true mean."""

METHOD = "mean over repetitions with its 95 % confidence interval (Student t on the repetitions' values)"
"""The method in words, for reports."""


@dataclass(frozen=True)
class Estimate:
    """A mean over `n` values; `low` and `high` are None when there is no interval."""

    n: int
    mean: float
    low: float | None
    high: float | None
    median: float


def t_quantile(n: int) -> float | None:
    """Half-width of the interval in standard errors; None for fewer than two values."""
    return float(special.stdtrit(n - 1, 0.5 + CONFIDENCE / 2)) if n > 1 else None


def estimate(values: Sequence[float]) -> Estimate:
    """Estimate the mean of one value or more.

    >>> estimate([1.0, 2.0, 3.0])
    Estimate(n=3, mean=2.0, low=-0.484..., high=4.484..., median=2.0)
    >>> estimate([7.0])
    Estimate(n=1, mean=7.0, low=None, high=None, median=7.0)
    """
    row = summarise(pl.DataFrame({"value": list(values)}, schema={"value": pl.Float64}), by=[]).row(0, named=True)
    return Estimate(**row)


def summarise(values: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """Give n, mean, low, high and median of the column `value` for each group; empty values are left out."""
    known = values.drop_nulls("value")
    aggregates = [
        pl.len().alias("n"),
        pl.col("value").mean().alias("mean"),
        pl.col("value").std().alias("_std"),
        pl.col("value").median().alias("median"),
    ]
    groups = known.group_by(*by, maintain_order=True).agg(aggregates) if by else known.select(aggregates)
    quantiles = {n: t_quantile(n) for n in groups["n"].unique()}
    half = pl.col("n").replace_strict(quantiles, return_dtype=pl.Float64) * pl.col("_std") / pl.col("n").sqrt()
    return groups.with_columns(pl.col("n").cast(pl.Int64), half.alias("_half")).select(
        *by,
        "n",
        "mean",
        (pl.col("mean") - pl.col("_half")).alias("low"),
        (pl.col("mean") + pl.col("_half")).alias("high"),
        "median",
    )


def overlap(a: Estimate, b: Estimate) -> bool | None:
    """Say whether two intervals overlap; None if one of them is missing."""
    if a.low is None or a.high is None or b.low is None or b.high is None:
        return None
    return max(a.low, b.low) <= min(a.high, b.high)
