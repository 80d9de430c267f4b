"""Whether both arms got alike work: sizes of transfers, round-trip times of paths, and what losses have to do with
queues.

Differences are standardized: in standard deviations of the values' logarithms. Below 0.1 a difference is usually
neglected (Austin 2009); beyond 0.25 no adjustment is trusted (Imbens and Rubin 2015, after Cochran).
"""

import math
from dataclasses import dataclass

import numpy as np
import polars as pl
from scipy import stats

from thalweg.advise import buckets
from thalweg.advise.arms import CONTROL, GROUPS, TREATMENT
from thalweg.advise.counts import MIXES
from thalweg.advise.effects import Bootstrap, Numbers

NOTABLE = 0.1
TOO_MUCH = 0.25

LEAST_LOSSY = 200
"""Of fewer samples with losses nothing is said about queues."""


@dataclass(frozen=True)
class Imbalance:
    """How a property is spread over the arms."""

    of: str
    """size or rtt."""
    standardized: float
    """Treatment minus control, in standard deviations of the logarithm."""
    ratio: float
    """Treatment over control, of geometric means."""
    is_sure: bool
    """Whether it is more than chance."""

    @property
    def is_notable(self) -> bool:
        """Say whether a reader should know."""
        return self.is_sure and abs(self.standardized) > NOTABLE

    @property
    def is_too_much(self) -> bool:
        """Say whether the arms cannot be compared."""
        return self.is_sure and abs(self.standardized) > TOO_MUCH


@dataclass(frozen=True)
class Losses:
    """What losses of the control have to do with queues."""

    n_lossy: int
    n_clean: int
    standardized: float
    """Queueing delay of samples with losses minus that of those without, in standard deviations of the logarithm."""

    @property
    def follow_queues(self) -> bool | None:
        """Say whether losses come with queues; None: too few to tell."""
        if min(self.n_lossy, self.n_clean) < LEAST_LOSSY:
            return None
        return self.standardized > NOTABLE


def imbalances(rows: pl.DataFrame, bootstrap: Bootstrap) -> list[Imbalance]:
    """Compare the arms' work, from the rows of `counts.mix` of one part and metric."""
    found = (_imbalance(rows, name, bootstrap) for name in MIXES)
    return [each for each in found if each is not None]


def losses(rows: pl.DataFrame) -> Losses:
    """Compare the control's queues with and without losses, from the rows of `counts.queues` of one part."""
    is_lossy = pl.col("is_lossy")
    lossy, clean = (_moments(rows.filter(which)) for which in (is_lossy, ~is_lossy))
    spread = math.sqrt((lossy[2] + clean[2]) / 2)
    difference = (lossy[1] - clean[1]) / spread if spread > 0 else 0.0
    return Losses(lossy[0], clean[0], difference)


def _moments(rows: pl.DataFrame) -> tuple[int, float, float]:
    """Give number, mean and variance."""
    n, total, squares = (int(rows[name].sum()) for name in ("n", "sum", "squares"))
    return (n, total / n, max(squares / n - (total / n) ** 2, 0.0)) if n else (0, 0.0, 0.0)


def _imbalance(rows: pl.DataFrame, name: str, bootstrap: Bootstrap) -> Imbalance | None:
    arms = {arm: _groups(rows.filter(pl.col("arm") == arm), name) for arm in (TREATMENT, CONTROL)}
    treatment, control = arms[TREATMENT], arms[CONTROL]
    if not treatment[:, 0].sum() or not control[:, 0].sum():
        return None
    is_there = (treatment[:, 0] + control[:, 0]) > 0
    whole = np.ones((1, GROUPS))
    difference = float((_means(treatment, whole) - _means(control, whole))[0])
    spread = math.sqrt((_variance(treatment) + _variance(control)) / 2)
    n = int(is_there.sum())
    is_sure = False
    if n > 1:
        with np.errstate(invalid="ignore"):
            draws = bootstrap.draws(is_there)
            replicates = _means(treatment, draws) - _means(control, draws)
        replicates = replicates[np.isfinite(replicates)]
        if len(replicates) > 1:
            sd = float(replicates.std(ddof=1)) * math.sqrt(n / (n - 1))
            is_sure = abs(difference) > float(stats.t.ppf(0.975, n - 1)) * sd
    standardized = difference / spread if spread > 0 else 0.0
    return Imbalance(name, standardized, 2 ** (difference / buckets.PER_OCTAVE), is_sure)


def _groups(rows: pl.DataFrame, name: str) -> Numbers:
    """Give number, sum and squares per group."""
    places = rows["group"].to_numpy().astype(np.int64)
    sums = (rows[f"{name}_{of}"].to_numpy() for of in ("n", "sum", "squares"))
    return np.column_stack([np.bincount(places, each, GROUPS) for each in sums])


def _means(groups: Numbers, draws: Numbers) -> Numbers:
    sums = draws @ groups[:, :2]
    found: Numbers = sums[:, 1] / sums[:, 0]
    return found


def _variance(groups: Numbers) -> float:
    n, total, squares = groups.sum(axis=0)
    return max(float(squares / n - (total / n) ** 2), 0.0)
