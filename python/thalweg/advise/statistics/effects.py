"""The difference between the arms, with its interval.

An effect is treatment over control: a ratio of medians, of other quantiles, or of means. Its uncertainty comes from a
bootstrap over groups of clusters. Clusters, such as one network's hour, are independent, so groups are as well, and
resampling groups estimates the same variance as resampling clusters (Kott 2001 on the delete-a-group jackknife;
Chamandy et al. 2012); but an engine needs to count only a histogram per group. Both arms of a group are drawn together,
so that common effects cancel.

The interval is that of a normal logarithm, with the standard deviation of the replicates and Student's t: percentiles
of the replicates would be too coarse for p-values that must hold among many parts. If a few groups have most of the
samples, the degrees of freedom of t follow from the effective number of groups (Kish 1965; Carter, Schnepel and
Steigerwald 2017 on clusters of unequal sizes).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import special

from thalweg.advise.counting import buckets
from thalweg.advise.counting.arms import CONTROL, GROUPS, TREATMENT
from thalweg.advise.question import Question

Numbers = NDArray[np.float64]
Hypothesis = TypeVar("Hypothesis")

QUANTILES = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
MEDIAN = QUANTILES.index(0.5)
FASTEST, SLOWEST = QUANTILES.index(0.05), QUANTILES.index(0.95)
CONFIDENCE = 0.95
MIN_DEGREES = 1.0
"""Minimum degrees of freedom: t needs a positive number, and one dominant group would leave zero."""
MIN_GROUPS = 20
"""Minimum number of groups with a sample of an arm, for a verdict."""


@dataclass(frozen=True)
class Effect:
    """Ratio of treatment to control; `low` and `high` are its 95 % interval, `p` is its p-value."""

    ratio: float
    low: float
    high: float
    p: float

    def overlaps(self, ratio: float) -> bool:
        """Return whether a ratio is within the interval."""
        return self.low <= ratio <= self.high


@dataclass(frozen=True)
class Arm:
    """One algorithm's samples of one metric in one part."""

    n: int
    stands_for: float
    mean: float
    quantiles: tuple[float, ...]
    """Values at `QUANTILES`."""
    groups: int
    """Number of groups with a sample."""
    curve: tuple[tuple[float, float], ...]
    """Points of the cumulative distribution: a value, and the fraction below it."""

    @property
    def median(self) -> float:
        """Median of the samples."""
        return self.quantiles[MEDIAN]

    @property
    def jitter(self) -> float:
        """Difference between the 95th and the 5th percentile."""
        return self.quantiles[SLOWEST] - self.quantiles[FASTEST]


@dataclass(frozen=True)
class Difference:
    """Difference between the arms in one metric of one part."""

    treatment: Arm
    control: Arm
    quantiles: Mapping[float, Effect]
    """Effects at the requested quantiles; empty if there are too few groups for an interval."""
    mean: Effect | None

    @property
    def median(self) -> Effect | None:
        """Effect on the median."""
        return self.quantiles.get(0.5)


POINTS = 60


class Bootstrap:
    """Bootstrap draws of groups; parts with samples in the same groups have the same draws."""

    def __init__(self, question: Question) -> None:
        self._question = question
        self._drawn: dict[bytes, Numbers] = {}

    def draws(self, is_there: NDArray[np.bool_]) -> Numbers:
        """Return how often each group is drawn in each replicate; groups without samples are not drawn."""
        key = is_there.tobytes()
        drawn = self._drawn.get(key)
        if drawn is None:
            chance = np.random.default_rng(self._question.seed)
            n = int(is_there.sum())
            drawn = np.zeros((self._question.replicates, len(is_there)))
            drawn[:, is_there] = chance.multinomial(n, np.full(n, 1 / n), size=self._question.replicates)
            if len(self._drawn) > GROUPS:
                self._drawn.clear()
            self._drawn[key] = drawn
        return drawn


def difference(cells: pl.DataFrame, bootstrap: Bootstrap, at: Sequence[float] = (0.5,)) -> Difference | None:
    """Compare the arms, from the rows of `counts.histogram` of one part and metric; None if an arm is missing."""
    numbers = np.sort(cells["bucket"].unique().to_numpy()).astype(np.int64)
    arms = {arm: _table(cells.filter(pl.col("arm") == arm), numbers) for arm in (TREATMENT, CONTROL)}
    if any(not table.weights.any() for table in arms.values()):
        return None
    treatment, control = arms[TREATMENT], arms[CONTROL]
    edges = np.log(np.column_stack([buckets.lows(numbers), buckets.lows(numbers + 1)]))
    summaries = {arm: table.summary(edges) for arm, table in arms.items()}
    return Difference(summaries[TREATMENT], summaries[CONTROL], *_effects(treatment, control, edges, bootstrap, at))


def _effects(
    treatment: "_Table", control: "_Table", edges: Numbers, bootstrap: Bootstrap, at: Sequence[float]
) -> tuple[dict[float, Effect], Effect | None]:
    """Estimate the effects on quantiles and on the mean; empty and None if groups or finite replicates are too few."""
    is_there = treatment.is_there | control.is_there
    n = int(is_there.sum())
    if n < 2:
        return {}, None
    draws = bootstrap.draws(is_there)
    with np.errstate(divide="ignore", invalid="ignore"):
        replicates = treatment.statistics(edges, draws, at) - control.statistics(edges, draws, at)
    replicates = replicates[np.isfinite(replicates).all(axis=1)]
    if len(replicates) < 2:
        return {}, None
    spread = replicates.std(axis=0, ddof=1) * math.sqrt(n / (n - 1))
    all_groups = np.ones((1, GROUPS))
    logs = (treatment.statistics(edges, all_groups, at) - control.statistics(edges, all_groups, at))[0]
    degrees = min(n, equal_groups(treatment.rows), equal_groups(control.rows)) - 1
    effects = [_effect(float(log), float(sd), degrees) for log, sd in zip(logs, spread, strict=True)]
    return dict(zip(at, effects, strict=False)), effects[-1]


def _effect(log: float, sd: float, degrees: float) -> Effect:
    degrees = max(degrees, MIN_DEGREES)
    half = half_of_interval(sd, degrees)
    p = chance_of(log, sd, degrees)
    return Effect(math.exp(log), math.exp(log - half), math.exp(log + half), p)


@dataclass(frozen=True)
class _Table:
    """Counts of one arm: weights by group and bucket, sums of value times weight by group (`totals`), rows by group."""

    weights: Numbers
    totals: Numbers
    rows: Numbers

    @property
    def is_there(self) -> NDArray[np.bool_]:
        present: NDArray[np.bool_] = self.rows > 0
        return present

    def statistics(self, edges: Numbers, draws: Numbers, at: Sequence[float]) -> Numbers:
        """Return the logarithms of the quantiles and of the mean of each replicate."""
        means = np.log((draws @ self.totals) / (draws @ self.weights.sum(axis=1)))
        return np.column_stack([quantiles(self.weights, edges, at, draws), means])

    def summary(self, edges: Numbers) -> Arm:
        weights = self.weights.sum(axis=0)
        shares = np.concatenate([[0.0], np.cumsum(weights) / weights.sum()])
        places = np.unique(np.searchsorted(shares, np.linspace(0, 1, POINTS)).clip(0, len(shares) - 1))
        ends = np.exp(np.concatenate([edges[:1, 0], edges[:, 1]]))
        return Arm(
            n=int(self.rows.sum()),
            stands_for=float(weights.sum()),
            mean=float(self.totals.sum() / weights.sum()),
            quantiles=tuple(float(quantile) for quantile in np.exp(quantiles(weights[None, :], edges)[0])),
            groups=int(self.is_there.sum()),
            curve=tuple((float(ends[place]), float(shares[place])) for place in places),
        )


def quantiles(
    weights: Numbers, edges: Numbers, at: Sequence[float] = QUANTILES, draws: Numbers | None = None
) -> Numbers:
    """Return logarithms of quantiles, interpolated within a bucket.

    Bisection finds each quantile's bucket, so that replicates need the sums of a few buckets instead of all.

    Args:
        weights: A row per group, a column per bucket.
        edges: Logarithms of the lower and the upper bound of each bucket: a row per bucket, two columns.
        at: Fractions of the weight below the quantiles.
        draws: A row per replicate: the number of times that each group is drawn. None: each group is a replicate.

    Returns:
        A row per replicate, a column per quantile.
    """
    draws = np.eye(len(weights)) if draws is None else draws
    # Weights are integers, so their sums are exact in any order.
    sums = np.ascontiguousarray(weights.cumsum(axis=1).T)
    totals = draws @ sums[-1]
    columns = []
    for share in at:
        wanted = share * totals
        low, high = np.zeros(len(draws), dtype=np.int64), np.full(len(draws), len(sums) - 1)
        while (is_open := low < high).any():
            middle = (low + high) // 2
            is_below = _drawn(draws, sums, middle) < wanted
            low = np.where(is_open & is_below, middle + 1, low)
            high = np.where(is_open & ~is_below, middle, high)
        reached = _drawn(draws, sums, low)
        inside = reached - np.where(low > 0, _drawn(draws, sums, low - 1), 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            part = 1 - (reached - wanted) / inside
            columns.append(edges[low, 0] + np.clip(part, 0, 1) * (edges[low, 1] - edges[low, 0]))
    return np.column_stack(columns)


def _drawn(draws: Numbers, sums: Numbers, places: NDArray[np.int64]) -> Numbers:
    """Return the weight of each replicate's drawn groups up to and including its bucket in `places`.

    `sums` are cumulative weights: a row per bucket, a column per group.
    """
    drawn: Numbers = np.einsum("rg,rg->r", draws, sums[places])
    return drawn


def _table(cells: pl.DataFrame, numbers: NDArray[np.int64]) -> _Table:
    groups = cells["group"].to_numpy().astype(np.int64)
    places = groups * len(numbers) + np.searchsorted(numbers, cells["bucket"].to_numpy())
    weights = _summed(places, cells["weight"], GROUPS * len(numbers))
    totals, rows = (_summed(groups, cells[name], GROUPS) for name in ("total", "n"))
    return _Table(weights.reshape(GROUPS, len(numbers)), totals, rows)


def _summed(places: NDArray[np.int64], values: pl.Series, count: int) -> Numbers:
    return np.asarray(np.bincount(places, values.to_numpy(), count), dtype=np.float64)


def half_of_interval(sd: float, degrees: float) -> float:
    """Return half the width of an interval, from the standard deviation and the degrees of freedom."""
    # `scipy.stats` returns the same, but is slow to import.
    return float(special.stdtrit(degrees, 0.5 + CONFIDENCE / 2)) * sd


def chance_of(value: float, sd: float, degrees: float) -> float:
    """Return the two-sided p-value of an estimate under the hypothesis that it is 0."""
    if sd > 0:
        return 2 * float(special.stdtr(degrees, -abs(value) / sd))
    return 1.0 if value == 0 else 0.0


def equal_groups(rows: Numbers) -> float:
    """Return the effective number of groups: the number of equal-sized groups with the same sum of squared shares.

    >>> equal_groups(np.array([10.0, 10.0, 0.0]))
    2.0
    """
    return float(rows.sum() ** 2 / (rows**2).sum())


def adjusted(p_values: Mapping[Hypothesis, float]) -> dict[Hypothesis, float]:
    """Return the p-values adjusted for multiple tests (Benjamini and Hochberg 1995): of those that are at most q, the
    expected fraction of false ones is at most q.

    >>> {name: round(value, 3) for name, value in adjusted({"a": 0.01, "b": 0.04, "c": 0.5}).items()}
    {'a': 0.03, 'b': 0.06, 'c': 0.5}
    """
    names = list(p_values)
    order = sorted(range(len(names)), key=lambda place: p_values[names[place]], reverse=True)
    p_adjusted: dict[Hypothesis, float] = {}
    smallest = 1.0
    for rank, place in zip(range(len(names), 0, -1), order, strict=True):
        smallest = min(smallest, p_values[names[place]] * len(names) / rank)
        p_adjusted[names[place]] = smallest
    return {name: p_adjusted[name] for name in names}
