"""How far the medians of two engines may be apart by chance: what repetitions leave uncertain.

Left out: that the medians are compared, while the interval is one of means; with few repetitions it is a rough guide.
"""

import math

from scipy import stats

from thalweg.analysis import CONFIDENCE, Estimate


def of_difference(a: Estimate, b: Estimate) -> float | None:
    """Give half the width of the 95 % interval of the difference of two means; None where one has no interval.

    Welch's interval (B. L. Welch, Biometrika 34, 1947): the repetitions of both need not vary alike.

    >>> of_difference(Estimate(3, 2.0, 2.0, 2.0, 2.0), Estimate(3, 1.0, 1.0, 1.0, 1.0))
    0.0
    """
    variances = [_variance_of_mean(each) for each in (a, b)]
    if None in variances:
        return None
    first, second = (each or 0.0 for each in variances)
    if first + second == 0:
        return 0.0
    freedom = (first + second) ** 2 / (first**2 / (a.n - 1) + second**2 / (b.n - 1))
    return float(stats.t.ppf(0.5 + CONFIDENCE / 2, freedom)) * math.sqrt(first + second)


def _variance_of_mean(estimate: Estimate) -> float | None:
    """Take it back out of Student's interval."""
    if estimate.high is None:
        return None
    quantile = float(stats.t.ppf(0.5 + CONFIDENCE / 2, estimate.n - 1))
    return ((estimate.high - estimate.mean) / quantile) ** 2
