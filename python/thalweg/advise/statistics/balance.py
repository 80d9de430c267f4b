"""Checks whether both arms got similar work, and whether losses coincide with queues.

Differences are in standard deviations of the values' logarithms. A difference below 0.1 is usually neglected (Austin
2009); above 0.25 no adjustment is reliable (Imbens and Rubin 2015, after Cochran).
"""

import math
from dataclasses import dataclass

import numpy as np
import polars as pl

from thalweg.advise.counting import buckets
from thalweg.advise.counting.arms import CONTROL, GROUPS, TREATMENT
from thalweg.advise.counting.counts import MIXES
from thalweg.advise.statistics.effects import (
    MIN_DEGREES,
    Bootstrap,
    Numbers,
    chance_of,
    equal_groups,
    half_of_interval,
)

ARMS = (TREATMENT, CONTROL)

NOTABLE = 0.1
TOO_MUCH = 0.25

SURE = 0.05
"""Significance level of a difference."""

MIN_LOSSY = 200
"""Minimum number of samples with losses, and of samples without, for a statement about queues."""
SMALL = 0.2
"""Upper end of an effect's interval below which losses count as unrelated to queues, unless the effect exceeds
`NOTABLE`: Cohen's small effect (Cohen 1988).
"""


@dataclass(frozen=True)
class Imbalance:
    """Difference between the arms in a property."""

    of: str
    """The property: `size` or `rtt`."""
    standardized: float
    """Treatment minus control, in standard deviations of the logarithm."""
    ratio: float
    """Ratio of treatment to control, of geometric means."""
    p: float

    @property
    def is_sure(self) -> bool:
        """Return whether the difference is significant in a single test."""
        return self.p <= SURE

    @property
    def is_too_much(self) -> bool:
        """Return whether the difference is too large to compare the arms."""
        return self.is_sure and abs(self.standardized) > TOO_MUCH


@dataclass(frozen=True)
class Losses:
    """Relation of the control's losses to queueing."""

    n_lossy: int
    n_clean: int
    standardized: float
    """Queueing delay of samples with losses minus that of those without, in standard deviations of the logarithm."""
    high: float
    """Upper end of the 95 % interval."""

    @property
    def follow_queues(self) -> bool | None:
        """Return whether losses coincide with queues; None: inconclusive, or too few samples."""
        if min(self.n_lossy, self.n_clean) < MIN_LOSSY:
            return None
        if self.standardized > NOTABLE:
            return True
        return False if self.high < SMALL else None


@dataclass(frozen=True)
class _Compared:
    standardized: float
    """Difference of the means, in standard deviations."""
    half: float
    """Half the width of its 95 % interval, in standard deviations; infinite: it has no interval."""
    log: float
    """Difference of the means, in buckets."""
    p: float


def imbalances(rows: pl.DataFrame, bootstrap: Bootstrap) -> list[Imbalance]:
    """Return the imbalances between the arms, from the rows of `counts.mix` of one part and metric."""
    imbalances_or_none = (_imbalance(rows, name, bootstrap) for name in MIXES)
    return [imbalance for imbalance in imbalances_or_none if imbalance is not None]


def receiver_limited(rows: pl.DataFrame) -> tuple[float | None, float | None]:
    """Return the receiver-limited fractions of the treatment's and of the control's samples, from the rows of
    `counts.mix` of one part and metric; None: unknown.
    """
    sums = {arm: rows.filter(pl.col("arm") == arm).select("limit_n", "limit_sum").sum().row(0) for arm in ARMS}
    treatment, control = ((total - n) / n if n else None for n, total in (sums[arm] for arm in ARMS))
    return treatment, control


def losses(rows: pl.DataFrame, bootstrap: Bootstrap) -> Losses:
    """Compare the control's queueing delays with and without losses, from the rows of `counts.queues` of one part.

    If either has no samples, `high` is infinite.
    """
    is_lossy = pl.col("is_lossy")
    lossy, clean = (_groups(rows.filter(which), "") for which in (is_lossy, ~is_lossy))
    comparison = _compared(lossy, clean, bootstrap)
    n_lossy, n_clean = int(lossy[:, 0].sum()), int(clean[:, 0].sum())
    if comparison is None:
        return Losses(n_lossy, n_clean, 0.0, math.inf)
    return Losses(n_lossy, n_clean, comparison.standardized, comparison.standardized + comparison.half)


def _imbalance(rows: pl.DataFrame, name: str, bootstrap: Bootstrap) -> Imbalance | None:
    treatment, control = (_groups(rows.filter(pl.col("arm") == arm), f"{name}_") for arm in (TREATMENT, CONTROL))
    comparison = _compared(treatment, control, bootstrap)
    if comparison is None:
        return None
    return Imbalance(name, comparison.standardized, 2 ** (comparison.log / buckets.PER_OCTAVE), comparison.p)


def _compared(one: Numbers, other: Numbers, bootstrap: Bootstrap) -> _Compared | None:
    """Compare two means, with the same groups for uncertainty as for effects; None if one has no samples."""
    if not one[:, 0].sum() or not other[:, 0].sum():
        return None
    all_groups = np.ones((1, GROUPS))
    difference = float((_means(one, all_groups) - _means(other, all_groups))[0])
    spread = math.sqrt((_variance(one) + _variance(other)) / 2)
    is_there = (one[:, 0] + other[:, 0]) > 0
    n = int(is_there.sum())
    half, p = math.inf, 1.0
    if n > 1:
        with np.errstate(invalid="ignore"):
            draws = bootstrap.draws(is_there)
            replicates = _means(one, draws) - _means(other, draws)
        replicates = replicates[np.isfinite(replicates)]
        if len(replicates) > 1:
            sd = float(replicates.std(ddof=1)) * math.sqrt(n / (n - 1))
            degrees = max(min(n, equal_groups(one[:, 0]), equal_groups(other[:, 0])) - 1, MIN_DEGREES)
            half, p = half_of_interval(sd, degrees), chance_of(difference, sd, degrees)
    if spread == 0:
        return _Compared(0.0, 0.0, difference, p)
    return _Compared(difference / spread, half / spread, difference, p)


def _groups(rows: pl.DataFrame, of: str) -> Numbers:
    """Return count, sum and sum of squares per group."""
    places = rows["group"].to_numpy().astype(np.int64)
    sums = (rows[f"{of}{name}"].to_numpy() for name in ("n", "sum", "squares"))
    return np.column_stack([np.bincount(places, column, GROUPS) for column in sums])


def _means(groups: Numbers, draws: Numbers) -> Numbers:
    sums = draws @ groups[:, :2]
    means: Numbers = sums[:, 1] / sums[:, 0]
    return means


def _variance(groups: Numbers) -> float:
    n, total, squares = groups.sum(axis=0)
    return max(float(squares / n - (total / n) ** 2), 0.0)
