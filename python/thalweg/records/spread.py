"""Distributions of values, from counts in narrow classes: memory does not grow with the number of rows.

A class is a 200th of a power of ten, so its largest value is 1.2 % above its smallest. A quantile is the mean of its
class: at most 1.2 % from the exact one, and exact where all values of the class are equal. Classes of several parts of
the records merge into those of the whole.
"""

import math
from dataclasses import dataclass

import numpy as np
import polars as pl

from thalweg.records.schema import weight

PER_POWER = 200
"""Classes in a power of ten."""
ZERO = -(2**31)
"""The class of zero."""
LIMIT = 300
"""Maximum number of points of a curve: more are not visible."""


def classed(rows: pl.LazyFrame, value: pl.Expr, *by: pl.Expr) -> pl.LazyFrame:
    """Count values in classes, per group of `by`; empty ones do not count."""
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
    """The values of one measure in one group: a row per class, from small to large."""

    classes: pl.DataFrame

    @property
    def n(self) -> int:
        """Rows that have a value."""
        return int(self.classes["n"].sum())

    @property
    def stands_for(self) -> float:
        """Number of connections or transfers that these rows represent."""
        return float(self.classes["weight"].sum())

    @property
    def mean(self) -> float:
        """Mean of all values."""
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
        """Return the smallest value that at least `share` of all do not exceed."""
        if not self.n:
            return math.nan
        sums = np.cumsum(self.classes["weight"].to_numpy())
        # A share of a sum is rarely exact in binary: 0.07 of 100 is more than 7.
        row = min(int(np.searchsorted(sums, share * sums[-1] * (1 - 1e-12))), len(sums) - 1)
        return float(self.classes["total"][row]) / float(self.classes["weight"][row])

    def curve(self) -> list[tuple[float, float]]:
        """Return points of the cumulative distribution: a value, and the share of all that do not exceed it."""
        if not self.n:
            return []
        sums = np.cumsum(self.classes["weight"].to_numpy())
        shares = sums / sums[-1]
        values = self.classes["high"].to_numpy()
        points = [(float(self.classes["low"][0]), 0.0)]
        if len(values) <= LIMIT:
            return points + [(float(v), float(s)) for v, s in zip(values, shares, strict=True)]
        # Half of the points are even in height, for the bulk, and half even in width, for the tails.
        even = np.searchsorted(shares, np.linspace(0, 1, LIMIT // 2)).clip(0, len(values) - 1)
        kept = np.unique(np.concatenate([even, np.linspace(0, len(values) - 1, LIMIT // 2).astype(int)]))
        return points + [(float(values[i]), float(shares[i])) for i in kept]
