"""Advice on records with planted truths: false verdicts are as rare as documented, and real differences are found.

The stored results of a hundred seeds of each truth (tools/planted_truths.py) are checked against the documented bounds;
a few seeds of `correlated` are run again.
"""

import statistics
from typing import Any

import planted_truths
import pytest
from scipy import stats
from thalweg.advise.counting import arms

TRUTHS = planted_truths.read()
FALSE = 0.05
"""Maximum fraction of false verdicts among those for an algorithm."""
POWER = 0.8
SEEDS = range(1, 5)
ROWS = 120_000
"""Number of rows; with fewer, clusters are so small that ignoring them has little effect."""


@pytest.mark.parametrize("truth", TRUTHS)
def test_the_false_discovery_rate_is_at_most_the_promised_one(truth: str) -> None:
    shares = TRUTHS[truth]["false_shares"]
    assert len(shares) == planted_truths.SEEDS
    error = statistics.stdev(shares) / len(shares) ** 0.5
    # This fails if the mean of a hundred fractions exceeds the bound by more than random variation.
    assert statistics.mean(shares) - stats.t.ppf(0.99, len(shares) - 1) * error <= FALSE


def test_equal_arms_rarely_yield_a_recommendation() -> None:
    for truth in ("none", "none-by-path", "correlated"):
        named = sum(share > 0 for share in TRUTHS[truth]["false_shares"])
        assert named <= stats.binom.ppf(0.99, planted_truths.SEEDS, FALSE), truth


def test_a_5_percent_effect_is_detected_with_100000_transfers_per_algorithm() -> None:
    tiny = TRUTHS["tiny"]
    assert tiny["least"] == pytest.approx(100_000, rel=0.05)
    assert planted_truths.at_least(tiny["whole"].get("bbr", 0), planted_truths.SEEDS) >= POWER


def test_a_simpsons_paradox_is_never_reported_as_an_effect() -> None:
    paradox = TRUTHS["paradox"]
    assert paradox["whole"] == {"not comparable": planted_truths.SEEDS}
    assert not paradox["false"]


def test_the_page_matches_the_recorded_numbers() -> None:
    page = planted_truths.PAGE.read_text(encoding="utf-8")
    assert planted_truths.with_table(page, TRUTHS) == page


def false(tried: list[planted_truths.Trial]) -> int:
    """Return the number of verdicts for an algorithm if the algorithms do not differ."""
    return sum(look.is_false for trial in tried for look in trial.looks)


def test_correlated_clients_mislead_only_an_analysis_without_clusters(monkeypatch: pytest.MonkeyPatch) -> None:
    assert false(planted_truths.trials("correlated", SEEDS, ROWS)) <= 1

    def by_lot(time_us: Any, code: Any, question: Any, unit: Any) -> Any:
        """Return a random group for each transfer, from the microsecond of its start."""
        return time_us % arms.GROUPS

    monkeypatch.setattr(arms, "group", by_lot)
    # Verdicts of classes that few networks dominate are withheld, so one seed may yield no verdict.
    assert false(planted_truths.trials("correlated", SEEDS, ROWS)) >= len(SEEDS) - 1
