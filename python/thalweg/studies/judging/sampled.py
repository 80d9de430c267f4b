"""Judges a claim whose points are a sample of paths from a population.

Every point is one observation, so a path must not have several points. The interval of a share is Wilson's (Journal of
the American Statistical Association 22, 1927), which has a nonzero width at 0 and 1. Other intervals are a percentile
bootstrap over the points (Efron and Tibshirani, An Introduction to the Bootstrap, 1993, section 13.3), which includes
the variation between paths and between repetitions.
"""

import math

import numpy as np
import numpy.typing as npt
from scipy import special

from thalweg.analysis import CONFIDENCE
from thalweg.analysis.tables.thin import Numbers
from thalweg.studies.claims.models import Judge
from thalweg.studies.judging import reduce
from thalweg.studies.judging.bounds import Bounds
from thalweg.studies.judging.estimates import DRAWS, SEED, Quantities
from thalweg.studies.judging.judged import Judged, experiments_of, finite_or_none, quantiles

BATCH = 200
"""Number of resamples that are computed together, which bounds the memory."""


def judge(estimated: Quantities, judge: Judge) -> Judged:
    """Judge a quantity over a sample of points."""
    experiments = frozenset[tuple[str, int]]().union(*experiments_of(estimated, range(len(estimated.centre))))
    columns = _columns(estimated, judge)
    has_value = np.asarray(~np.isnan(columns).any(axis=0))
    points, count = columns.shape[-1], int(has_value.sum())
    missing = points - count
    if not count:
        return Judged("not settled", note="no point has a value", looked_at=experiments, unsure=experiments)
    columns = columns[:, has_value]
    centre = _reduced(columns, judge).item()
    if judge.over == "share":
        low, high = _wilson(centre, count)
    else:
        low, high = quantiles(_bootstrap(columns, judge), centre, CONFIDENCE)
    bounds = Bounds.between(judge.at_least_share, None) if judge.over == "share" else Bounds.of(judge)
    verdict = bounds.verdict(centre, low, high) if count > 1 and not missing else "not settled"
    note = f"{missing} of {points} points have no value" if missing else ""
    is_sure = high - low <= (judge.tolerance or 0)
    return Judged(
        verdict,
        finite_or_none(centre),
        *((finite_or_none(low), finite_or_none(high)) if count > 1 else (None, None)),
        count,
        count,
        note=note,
        looked_at=experiments,
        unsure=frozenset() if is_sure else experiments,
    )


def _columns(estimated: Quantities, judge: Judge) -> Numbers:
    """Return the values of each point: its number, or for a total both sides."""
    if judge.over == "total" and estimated.against is not None:
        return np.stack([estimated.value.mean, estimated.against.mean])
    return estimated.estimate[np.newaxis]


def _reduced(columns: Numbers, judge: Judge) -> Numbers:
    """Reduce the points on the last axis to one number; the other axes are resamples."""
    if judge.over == "share":
        return np.asarray(Bounds.of(judge).inside(columns[0], columns[0]).mean(axis=-1))
    if judge.over != "total":
        return reduce.over(judge.over, columns[0])
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = columns[0].sum(axis=-1) / columns[1].sum(axis=-1)
    return np.asarray(ratio - 1 if judge.kind == "gain" else ratio)


def _wilson(share: float, count: int) -> tuple[float, float]:
    """Return the score interval of a share of independent points.

    >>> [round(end, 3) for end in _wilson(0.0, 12)], [round(end, 3) for end in _wilson(0.5, 100)]
    ([0.0, 0.242], [0.404, 0.596])
    """
    z = float(special.ndtri(0.5 + CONFIDENCE / 2))
    middle = (share + z**2 / (2 * count)) / (1 + z**2 / count)
    half = z / (1 + z**2 / count) * math.sqrt(share * (1 - share) / count + z**2 / (4 * count**2))
    return max(middle - half, 0.0), min(middle + half, 1.0)


def _bootstrap(columns: Numbers, judge: Judge) -> Numbers:
    rng = np.random.default_rng(SEED)
    count = columns.shape[-1]

    def batch() -> Numbers:
        rows: npt.NDArray[np.int64] = rng.integers(0, count, (BATCH, count))
        return _reduced(columns[:, rows], judge)

    return np.concatenate([batch() for _ in range(DRAWS // BATCH)])
