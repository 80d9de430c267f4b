"""The stored quantiles, which avoid an import, are equal to those of scipy."""

from scipy import special
from thalweg.analysis.statistics.intervals import CONFIDENCE, T_QUANTILES, t_quantile


def test_t_quantiles_match_scipy_within_and_beyond_the_table() -> None:
    last = len(T_QUANTILES) + 1
    for n in range(2, last + 3):
        assert t_quantile(n) == float(special.stdtrit(n - 1, 0.5 + CONFIDENCE / 2)), n
    assert t_quantile(1) is None
