"""Significance and size of the difference of two means.

The means are of independent repetitions with possibly different variances, so the difference has Welch's interval and
test (B. L. Welch, Biometrika 34, 1947), and the ratio Fieller's interval (E. C. Fieller, J. Royal Statistical Society B
16, 1954) with degrees of freedom of the same formula. Holm's correction keeps the probability of any false alarm among
many tests at or below 5 %, for any dependence between them (S. Holm, Scandinavian Journal of Statistics 6, 1979).

If the means differ but neither side varies, as with discrete values, the spread is not informative. The p-value is then
the smallest one that a permutation test can have, and the interval is empty.

Limitation: repetitions with the same number share a seed in two runs of one scenario. This correlation usually makes
the true uncertainty smaller than the reported one.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from thalweg.analysis.statistics.intervals import CONFIDENCE, Estimate, t_quantile

SAME = 1e-9
"""Relative difference below which two numbers differ only by rounding."""


@dataclass(frozen=True)
class Difference:
    """Difference of two means, second minus first; unknown values are None."""

    value: float
    low: float | None
    """Lower end of the 95 % interval; None if a side has no interval, or neither varies and they differ."""
    high: float | None
    p: float | None
    ratio: float | None
    """The second over the first; None if the first is not above 0."""
    ratio_low: float | None
    """Lower end of its 95 % interval; None also if the first may be 0."""
    ratio_high: float | None


def difference(first: Estimate, second: Estimate) -> Difference:
    """Compare two means.

    >>> found = difference(Estimate(3, 2.0, 2.0, 2.0, 2.0), Estimate(3, 1.0, 1.0, 1.0, 1.0))
    >>> found.value, found.low, found.high, found.p, found.ratio
    (-1.0, None, None, 0.1, 0.5)
    """
    value = second.mean - first.mean
    ratio = second.mean / first.mean if first.mean > 0 else None
    half = half_width(first, second)
    if half is None:
        return Difference(value, None, None, None, ratio, None, None)
    if half <= SAME * abs(value) and not _is_same(first, second):
        return Difference(value, None, None, _rarest(first.n, second.n), ratio, None, None)
    ratio_low, ratio_high = (None, None) if ratio is None else _fieller(first, second, ratio)
    return Difference(value, value - half, value + half, _p(first, second, value), ratio, ratio_low, ratio_high)


def half_width(first: Estimate, second: Estimate) -> float | None:
    """Return half the width of the 95 % interval of the difference of two means; None if it has no interval.

    >>> half_width(Estimate(3, 2.0, 2.0, 2.0, 2.0), Estimate(3, 1.0, 1.0, 1.0, 1.0))
    0.0
    """
    v, w = _variance_of_mean(first), _variance_of_mean(second)
    if v is None or w is None:
        return None
    return _quantile(first, second, v, w) * math.sqrt(v + w)


def holm(p: Sequence[float]) -> list[float]:
    """Correct the p-values of several tests (Holm): the probability of any false alarm below 0.05 is at most 5 %.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    corrected = [1.0] * len(p)
    worst = 0.0
    for rank, number in enumerate(sorted(range(len(p)), key=lambda index: p[index])):
        worst = max(worst, min(1.0, (len(p) - rank) * p[number]))
        corrected[number] = worst
    return corrected


def _is_same(first: Estimate, second: Estimate) -> bool:
    return abs(second.mean - first.mean) <= SAME * max(abs(first.mean), abs(second.mean))


def _rarest(n: int, m: int) -> float:
    """Return the probability that n and m values separate completely by chance."""
    return min(1.0, 2 / math.comb(n + m, n))


def _p(first: Estimate, second: Estimate, value: float) -> float:
    v, w = _variance_of_mean(first) or 0.0, _variance_of_mean(second) or 0.0
    if _is_same(first, second):
        return 1.0
    from scipy import special  # Importing scipy is slow, and reports of one run need no tests.

    return float(2 * special.stdtr(_freedom(first, second, v, w), -abs(value) / math.sqrt(v + w)))


def _fieller(first: Estimate, second: Estimate, ratio: float) -> tuple[float | None, float | None]:
    v, w = _variance_of_mean(first) or 0.0, _variance_of_mean(second) or 0.0
    t = _quantile(first, second, ratio**2 * v, w)
    g = t**2 * v / first.mean**2
    if g >= 1:
        return None, None
    half = t / first.mean * math.sqrt(max(0.0, w * (1 - g) + ratio**2 * v))
    return (ratio - half) / (1 - g), (ratio + half) / (1 - g)


def _quantile(first: Estimate, second: Estimate, v: float, w: float) -> float:
    if v + w <= 0:
        return 0.0
    from scipy import special

    return float(special.stdtrit(_freedom(first, second, v, w), 0.5 + CONFIDENCE / 2))


def _freedom(first: Estimate, second: Estimate, v: float, w: float) -> float:
    """Return the degrees of freedom (Welch and Satterthwaite); `v` and `w` are the variances of the two means."""
    return (v + w) ** 2 / (v**2 / (first.n - 1) + w**2 / (second.n - 1))


def _variance_of_mean(estimate: Estimate) -> float | None:
    """Return the variance of a mean, derived from its Student interval."""
    quantile = t_quantile(estimate.n)
    if estimate.high is None or quantile is None:
        return None
    return ((estimate.high - estimate.mean) / quantile) ** 2
