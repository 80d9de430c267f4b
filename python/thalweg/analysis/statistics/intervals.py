"""Means with their uncertainty.

Repetitions are independent draws, so their mean has a Student t interval: mean +- t(0.975, n - 1) * s / sqrt(n), with s
the sample standard deviation. It assumes that the mean is about normal; with few repetitions of a skewed measure it is
a rough guide. It is not clipped, so a ratio's interval may exceed 1.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

CONFIDENCE = 0.95

T_QUANTILES = (
    12.706204736174694, 4.302652729749462, 3.1824463052837078, 2.7764451051977934, 2.5705818356363146,
    2.4469118511449786, 2.364624251592784, 2.306004135204166, 2.262157162798205, 2.228138851986274,
    2.200985160091639, 2.1788128296672284, 2.1603686564627913, 2.144786687917804, 2.131449545559776,
    2.1199052992212546, 2.1098155778333156, 2.1009220402410382, 2.0930240544083087, 2.085963447265864,
    2.0796138447276795, 2.0738730679040254, 2.0686576104190486, 2.0638985616280245, 2.0595385527532972,
    2.0555294386428735, 2.0518305164802846, 2.0484071417952454, 2.045229642132703, 2.0422724563012378,
)  # fmt: skip
"""Student t quantiles at 0.975 for 1, 2, ... degrees of freedom, because importing scipy is slow."""

METHOD = "mean over repetitions with its 95 % confidence interval (Student t on the repetitions' values)"


@dataclass(frozen=True)
class Estimate:
    """A mean over `n` values; `low` and `high` are None if there is no interval."""

    n: int
    mean: float
    low: float | None
    high: float | None
    median: float


def t_quantile(n: int) -> float | None:
    """Half-width of the interval in standard errors; None for fewer than two values."""
    if n <= 1:
        return None
    if n - 1 <= len(T_QUANTILES):
        return T_QUANTILES[n - 2]
    from scipy import special

    return float(special.stdtrit(n - 1, 0.5 + CONFIDENCE / 2))


def estimate(values: Sequence[float]) -> Estimate:
    """Estimate the mean of at least one value.

    >>> estimate([1.0, 2.0, 3.0])
    Estimate(n=3, mean=2.0, low=-0.484..., high=4.484..., median=2.0)
    >>> estimate([7.0])
    Estimate(n=1, mean=7.0, low=None, high=None, median=7.0)
    """
    row = summarise(pl.DataFrame({"value": list(values)}, schema={"value": pl.Float64}), by=[]).row(0, named=True)
    return Estimate(**row)


def summarise(values: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """Return n, mean, low, high and median of the column `value` for each group, without null values."""
    present = values.drop_nulls("value")
    aggregates = [
        pl.len().alias("n"),
        pl.col("value").mean().alias("mean"),
        pl.col("value").std().alias("_std"),
        pl.col("value").median().alias("median"),
    ]
    groups = present.group_by(*by, maintain_order=True).agg(aggregates) if by else present.select(aggregates)
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
    """Return whether two intervals overlap; None if one of them is missing."""
    if a.low is None or a.high is None or b.low is None or b.high is None:
        return None
    return max(a.low, b.low) <= min(a.high, b.high)
