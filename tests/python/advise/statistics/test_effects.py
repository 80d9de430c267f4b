"""Effects and their uncertainty, on counts with known effects."""

import numpy as np
import polars as pl
import pytest
from thalweg.advise import Question
from thalweg.advise.counting import buckets
from thalweg.advise.counting.arms import CONTROL, GROUPS, TREATMENT
from thalweg.advise.statistics.effects import Bootstrap, adjusted, difference, quantiles

QUICK = Question(replicates=400)

FALSE_AT_MOST = 0.09
"""Maximum fraction of false positives. With 200 tests at 5 %, more than 18 have a probability below 1 %."""
FALSE_AT_LEAST = 0.015
"""Minimum fraction of false positives: 3 or fewer also have a probability below 1 %. Intervals that are never wrong are
too wide.
"""


EDGES = buckets.lows(np.arange(40 * buckets.PER_OCTAVE))


def cells(treatment: np.ndarray, control: np.ndarray, groups: tuple[np.ndarray, np.ndarray]) -> pl.DataFrame:
    """Return counts of values in the format of an engine."""
    parts = []
    for arm, values, group in ((TREATMENT, treatment, groups[0]), (CONTROL, control, groups[1])):
        counts = np.maximum(values, 1).astype(np.int64)
        number = np.searchsorted(EDGES, counts, side="right") - 1
        parts.append(pl.DataFrame({"arm": arm, "group": group % GROUPS, "bucket": number, "value": counts}))
    keys = ["arm", "group", "bucket"]
    return (
        pl.concat(parts)
        .group_by(keys)
        .agg(pl.len().alias("n"), pl.len().alias("weight"), pl.col("value").sum().alias("total"))
    )


def clustered(
    chance: np.random.Generator,
    ratio: float,
    n: int = 1500,
    clusters: int = 150,
    spread: float = 0.5,
    *,
    is_by_lot: bool = False,
) -> pl.DataFrame:
    """Draw values in clusters that explain half of their variance, in both arms; `is_by_lot`: each connection was
    assigned at random, so that both arms have the same clusters.
    """
    shared = chance.normal(0, spread, clusters)
    columns, groups = [], []
    weights = chance.dirichlet(np.full(clusters, 0.7))
    for factor in (ratio, 1.0):
        if not is_by_lot:
            # Some clusters have mostly one arm, others the other: the assignment is random, but by cluster.
            weights = chance.dirichlet(np.full(clusters, 0.7))
        cluster = chance.choice(clusters, n, p=weights)
        columns.append(10_000 * factor * np.exp(shared[cluster] + chance.normal(0, spread, n)))
        groups.append(cluster)
    return cells(columns[0], columns[1], (groups[0], groups[1]))


def test_a_median_is_exact_to_the_bucket_width() -> None:
    chance = np.random.default_rng(3)
    values = np.exp(chance.normal(9, 1.5, 20_001))
    effect = difference(cells(values * 2, values, (np.arange(20_001), np.arange(20_001))), Bootstrap(QUICK))
    assert effect
    assert effect.median
    assert effect.control.median == pytest.approx(np.median(values), rel=1 / buckets.PER_OCTAVE)
    assert effect.median.ratio == pytest.approx(2, rel=1 / buckets.PER_OCTAVE)
    assert effect.control.mean == pytest.approx(values.mean(), rel=1e-3)


def test_quantiles_within_a_bucket_are_interpolated() -> None:
    edges = np.log(np.array([[1.0, 2.0], [2.0, 4.0]]))
    values = np.exp(quantiles(np.array([[2.0, 2.0]]), edges, (0.25, 0.5, 0.75)))
    assert values[0] == pytest.approx([2**0.5, 2, 2**1.5])


def test_intervals_have_95_percent_coverage_with_correlated_clients() -> None:
    chance = np.random.default_rng(7)
    bootstrap = Bootstrap(QUICK)
    false = 0
    runs = 200
    for _ in range(runs):
        effect = difference(clustered(chance, 1.0), bootstrap)
        assert effect
        assert effect.median
        false += effect.median.p < 0.05
    assert FALSE_AT_LEAST <= false / runs <= FALSE_AT_MOST


def test_an_interval_without_clusters_would_undercover() -> None:
    """Negative control of the coverage with correlated clients: the same values, with random groups."""
    chance = np.random.default_rng(7)
    bootstrap = Bootstrap(QUICK)
    false = 0
    runs = 100
    for _ in range(runs):
        counted = clustered(chance, 1.0)
        lot = pl.Series(chance.integers(0, GROUPS, counted.height))
        effect = difference(counted.with_columns(lot.alias("group")), bootstrap)
        assert effect
        assert effect.median
        false += effect.median.p < 0.05
    assert false / runs > 3 * 0.05


def test_an_effect_lies_in_its_interval() -> None:
    chance = np.random.default_rng(11)
    bootstrap = Bootstrap(QUICK)
    runs = 100
    inside = 0
    for _ in range(runs):
        effect = difference(clustered(chance, 0.8), bootstrap)
        assert effect
        assert effect.median
        inside += effect.median.overlaps(0.8)
    assert inside / runs >= 1 - FALSE_AT_MOST - 0.01


def test_the_interval_depends_on_the_seed_only_slightly() -> None:
    counted = clustered(np.random.default_rng(5), 0.9)
    one, again, other = (difference(counted, Bootstrap(Question(seed=seed))) for seed in (1, 1, 2))
    assert one
    assert again
    assert other
    assert one.median
    assert other.median
    assert one == again
    assert one.median.low != other.median.low
    assert one.median.low == pytest.approx(other.median.low, rel=0.02)


def test_a_dominant_cluster_widens_the_interval() -> None:
    chance = np.random.default_rng(5)
    values = np.exp(chance.normal(9, 0.5, 40_000))
    even = chance.integers(0, GROUPS, values.size)
    heavy = np.where(chance.random(values.size) < 0.95, 0, even)
    wide, narrow = (
        difference(cells(values[::2] * 0.97, values[1::2], (group[::2], group[1::2])), Bootstrap(QUICK))
        for group in (heavy, even)
    )
    assert wide
    assert narrow
    assert wide.median
    assert narrow.median
    assert wide.control.groups == narrow.control.groups == GROUPS
    assert wide.median.p > 100 * narrow.median.p


def test_a_missing_arm_has_no_comparison() -> None:
    counted = clustered(np.random.default_rng(5), 0.9).filter(pl.col("arm") == CONTROL)
    assert difference(counted, Bootstrap(QUICK)) is None


def test_many_null_tests_yield_no_discovery() -> None:
    p_values = {n: (n + 1) / 100 for n in range(100)}
    assert min(adjusted(p_values).values()) == pytest.approx(1.0)


def test_true_effects_among_many_tests_are_discovered() -> None:
    p_values = {**dict.fromkeys(range(5), 0.0001), **{n: 0.2 + n / 200 for n in range(5, 100)}}
    adjusted_p = adjusted(p_values)
    assert {name for name, p in adjusted_p.items() if p <= 0.05} == set(range(5))


def test_a_5_percent_effect_is_detected_in_100000_transfers() -> None:
    """Documented power: at least 80 %. Sizes and clients vary completion times over two powers of ten."""
    chance = np.random.default_rng(17)
    bootstrap = Bootstrap(QUICK)
    runs = 20
    effect = 0
    for _ in range(runs):
        detected = difference(clustered(chance, 0.95, n=100_000, clusters=4000, spread=1.2, is_by_lot=True), bootstrap)
        assert detected
        assert detected.median
        effect += detected.median.p < 0.05 and detected.median.ratio < 1
    assert effect / runs >= 0.8


def test_false_discoveries_stay_below_the_promised_rate() -> None:
    """In each of many data sets, half of the parts have an effect, and half have none."""
    chance = np.random.default_rng(23)
    bootstrap = Bootstrap(QUICK)
    shares = []
    for _ in range(40):
        ratios = [1.0] * 5 + [0.7] * 5
        parts = [difference(clustered(chance, ratio), bootstrap) for ratio in ratios]
        p_values = {n: part.median.p for n, part in enumerate(parts) if part and part.median}
        named = [n for n, p in adjusted(p_values).items() if p <= 0.05]
        shares.append(sum(ratios[n] == 1.0 for n in named) / max(len(named), 1))
    assert np.mean(shares) <= 0.05 + 2 * np.std(shares) / np.sqrt(len(shares))
