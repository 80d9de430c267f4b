"""Distributions of values, as counts in narrow classes, so that memory does not grow with the number of rows.

A class is a 200th of a power of ten, so its largest value is 1.2 % above its smallest. A quantile is the mean of its
class: at most 1.2 % from the exact one, and exact if all values of the class are equal.
"""

import math
from dataclasses import dataclass

import numpy as np
import polars as pl

from thalweg.records.schema import weight

PER_POWER = 200
ZERO = -(2**31)
"""Class of the value zero."""
LIMIT = 300
"""Maximum number of points of a curve after the first."""


def classed(rows: pl.LazyFrame, value: pl.Expr, *by: pl.Expr) -> pl.LazyFrame:
    """Count values by class, per group of `by`; null, negative, infinite and NaN values are ignored."""
    class_number = (pl.col("value").log10() * PER_POWER).floor()
    number = pl.when(pl.col("value") > 0).then(class_number.clip(lower_bound=ZERO + 1)).otherwise(ZERO).cast(pl.Int64)
    groups = [expression.meta.output_name() for expression in by]
    values = rows.select(*by, value.cast(pl.Float64).alias("value"), weight().cast(pl.Float64).alias("weight"))
    return (
        values.filter(pl.col("value").is_finite() & (pl.col("value") >= 0))
        .group_by(*groups, number.alias("class"))
        .agg(
            pl.len().alias("n"),
            pl.col("weight").sum(),
            (pl.col("value") * pl.col("weight")).sum().alias("total"),
            pl.col("value").min().alias("low"),
            pl.col("value").max().alias("high"),
        )
        .sort(*groups, "class")
    )


@dataclass(frozen=True)
class Spread:
    """Distribution of one measure in one group: one row per class, in ascending order."""

    classes: pl.DataFrame

    @property
    def n(self) -> int:
        """Number of rows with a value."""
        return int(self.classes["n"].sum())

    @property
    def stands_for(self) -> float:
        """Sum of the weights: the number of connections or transfers that these rows represent."""
        return float(self.classes["weight"].sum())

    @property
    def mean(self) -> float:
        """Weighted mean of all values."""
        return float(self.classes["total"].sum()) / self.stands_for if self.n else math.nan

    @property
    def low(self) -> float:
        """Smallest value."""
        return float(self.classes["low"].min()) if self.n else math.nan  # type: ignore[arg-type]

    @property
    def high(self) -> float:
        """Largest value."""
        return float(self.classes["high"].max()) if self.n else math.nan  # type: ignore[arg-type]

    def quantile(self, share: float) -> float:
        """Return the quantile at a fraction `share` of the weight: the mean of the first class that reaches it.

        NaN without values.
        """
        if not self.n:
            return math.nan
        sums = np.cumsum(self.classes["weight"].to_numpy())
        # The fraction is reduced slightly, because a product is rarely exact in binary: 0.07 * 100 is more than 7.
        row = min(int(np.searchsorted(sums, share * sums[-1] * (1 - 1e-12))), len(sums) - 1)
        return float(self.classes["total"][row]) / float(self.classes["weight"][row])

    def curve(self) -> list[tuple[float, float]]:
        """Return points of the cumulative distribution: a value, and the fraction of the weight of values that are at
        most as large.
        """
        if not self.n:
            return []
        sums = np.cumsum(self.classes["weight"].to_numpy())
        shares = sums / sums[-1]
        values = self.classes["high"].to_numpy()
        points = [(float(self.classes["low"][0]), 0.0)]
        if len(values) <= LIMIT:
            return points + [(float(v), float(s)) for v, s in zip(values, shares, strict=True)]
        # Half of the points are evenly spaced in the fraction, for the bulk, and half over the classes, for the tails.
        even = np.searchsorted(shares, np.linspace(0, 1, LIMIT // 2)).clip(0, len(values) - 1)
        kept = np.unique(np.concatenate([even, np.linspace(0, len(values) - 1, LIMIT // 2).astype(int)]))
        return points + [(float(values[i]), float(shares[i])) for i in kept]
