"""Cautions appear for planted problems, and rarely otherwise."""

import math
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from thalweg import synth
from thalweg.advise import NO_DIFFERENCE, NOT_COMPARABLE, NOT_ENOUGH, Answer, Comparison, Part, Question, advise
from thalweg.advise.counting import counts
from thalweg.advise.counting.arms import CONTROL, GROUPS, TREATMENT
from thalweg.advise.counting.keys import LOTS
from thalweg.advise.judgement import cautions
from thalweg.advise.question import DEFAULT_SEGMENTS
from thalweg.advise.statistics.balance import imbalances, losses
from thalweg.advise.statistics.effects import Arm, Bootstrap, Difference, Effect

QUICK = Question(replicates=200)
SEEDS = 60
FALSE_AT_MOST = 0.1
"""Maximum fraction of false cautions. With 60 tests at 5 %, more than 6 have a probability of 3 %; seeds are fixed."""

FACTS = {"interference", "loss-without-queues", "few-networks"}
"""Cautions that are correct for these synthetic records: hours are full, queues do not depend on losses, and the
traffic of some classes comes from few networks.
"""


def judged(folder: Path, truth: str, *by: str, seed: int = 1) -> Answer:
    settings = synth.Settings(rows=60_000, seed=seed, days=2, truth=truth)
    synth.write(synth.make(settings), folder)
    question = Question(replicates=200, segments=by or DEFAULT_SEGMENTS)
    return advise([folder / synth.RECORDS], question, table=folder / synth.PREFIXES)


def codes(answer: Answer) -> set[str]:
    return {caution.code for caution in answer.cautions}


def test_equal_arms_rarely_yield_a_warning_or_a_verdict(tmp_path: Path) -> None:
    results = [judged(tmp_path / str(seed), "none", seed=seed) for seed in range(1, 9)]
    reports = [
        (codes(judged_advice) - FACTS) | ({part.verdict for part in judged_advice.parts} - {NO_DIFFERENCE, NOT_ENOUGH})
        for judged_advice in results
    ]
    # Sizes, round-trip times and verdicts have a false-positive rate of 5 % each. More than 2 of 8 have a probability
    # of 10 %.
    assert sum(map(bool, reports)) <= 2, reports


def test_a_planted_simpsons_paradox_is_detected(tmp_path: Path) -> None:
    advice = judged(tmp_path, "paradox", "class")
    assert "paradox" in codes(advice)
    assert advice.overall.verdict == NOT_COMPARABLE


def assigned(chance: np.random.Generator, *, share_of_hour: float) -> pl.DataFrame:
    """Return counts of synthetic samples of two days; each cluster, a client's hour, has ten samples with a
    single arm.
    """
    rows = []
    for hour in range(48):
        lot = chance.integers(0, LOTS, 60)
        share = 0.5 + share_of_hour * (-1) ** hour
        is_treated = chance.random(60) < share
        rows += [(hour, int(is_arm), int(arm), 10) for is_arm, arm in zip(lot, is_treated, strict=True)]
    drawn = pl.DataFrame(rows, schema=["stratum", "lot", "arm", "n"], orient="row")
    return (
        drawn.group_by("stratum", "lot", "arm")
        .agg(pl.col("n").sum(), weight=pl.col("n").sum())
        .with_columns(metric=pl.lit(0))
    )


@pytest.mark.parametrize("are_by_network", [True, False], ids=["by network", "as if by coins"])
def test_an_uneven_distribution_over_hours_is_reported(are_by_network: bool) -> None:
    chance = np.random.default_rng(1)
    for _ in range(5):
        assert counts.factors(assigned(chance, share_of_hour=0.15), (), are_by_network=are_by_network) is not None


def test_random_imbalance_between_clusters_is_not_reported() -> None:
    chance = np.random.default_rng(2)
    drawn = [assigned(chance, share_of_hour=0.0) for _ in range(SEEDS)]
    false = [counts.factors(assignment, (), are_by_network=True) is not None for assignment in drawn]
    assert np.mean(false) <= FALSE_AT_MOST
    coins = [counts.factors(assignment, (), are_by_network=False) is not None for assignment in drawn]
    assert np.mean(coins) > 0.5, "the negative control: as if each connection had its arm by the toss of a coin"


def mixed(chance: np.random.Generator, *, more: float = 0.0) -> pl.DataFrame:
    """Return counts of sizes of 600 samples per arm, in clusters of ten with the same size."""
    rows = []
    for arm in (TREATMENT, CONTROL):
        for _ in range(60):
            value = round(chance.normal(1000 + more * 100 * (arm == TREATMENT), 100))
            rows.append((0, arm, int(chance.integers(0, GROUPS)), 10, 10 * value, 10 * value**2))
    columns = ["metric", "arm", "group", "size_n", "size_sum", "size_squares"]
    sizes = pl.DataFrame(rows, schema=columns, orient="row")
    return sizes.with_columns(rtt_n=pl.lit(0), rtt_sum=pl.lit(0), rtt_squares=pl.lit(0))


def part(number: int, rows: pl.DataFrame) -> Part:
    compared = Comparison("completion_time", None, imbalances(rows, Bootstrap(QUICK)), None, "", "")
    return Part((str(number),), (number,), {"completion_time": compared}, 1200, "", "")


def test_random_variation_among_many_segments_is_not_reported() -> None:
    chance = np.random.default_rng(3)
    false = alone = 0
    for _ in range(SEEDS):
        parts = [part(number, mixed(chance)) for number in range(20)]
        false += bool(list(cautions.of_parts(parts, parts[0], QUICK)))
        alone += any(
            imbalance.is_sure and abs(imbalance.standardized) > 0.1
            for one in parts
            for imbalance in one.comparisons["completion_time"].imbalances
        )
    assert false / SEEDS <= FALSE_AT_MOST
    assert alone / SEEDS > 0.5, "the negative control: parts looked at one by one"


def test_a_deviating_segment_among_many_is_reported() -> None:
    chance = np.random.default_rng(4)
    parts = [part(number, mixed(chance, more=1.0 if number == 7 else 0.0)) for number in range(20)]
    (caution,) = cautions.of_parts(parts, parts[0], QUICK)
    assert (caution.code, caution.parts) == ("unlike-size", ("7",))


def compared(title: str, low: float, high: float, n: int = 1000) -> Part:
    """Return a part whose medians differ by a ratio with a known interval."""
    arm = Arm(n, float(n), 1.0, (1.0,) * 7, GROUPS, ())
    difference = Difference(arm, arm, {0.5: Effect(math.sqrt(low * high), low, high, 0.5)}, None)
    compared = Comparison("completion_time", difference, [], None, "", "")
    return Part((title,), (title,), {"completion_time": compared}, 2 * n, "", "")


def test_a_paradox_needs_significant_overall_and_segment_effects() -> None:
    parts = [compared("a", 0.8, 0.9), compared("b", 0.85, 0.95)]
    unsure = [compared("a", 0.7, 1.2), compared("b", 0.75, 1.3)]
    assert cautions.is_paradox("completion_time", parts, compared("all", 1.05, 1.2))
    assert not cautions.is_paradox("completion_time", parts, compared("all", 0.95, 1.2))
    assert not cautions.is_paradox("completion_time", unsure, compared("all", 1.05, 1.2))
    assert not cautions.is_paradox("completion_time", parts, compared("all", 0.8, 0.9))


def queued(chance: np.random.Generator, n_lossy: int, longer: float) -> pl.DataFrame:
    """Return sums of queueing delays with and without losses."""
    rows = []
    for is_lossy, n in ((True, n_lossy), (False, 20_000)):
        group = chance.integers(0, GROUPS, n)
        value = np.round(chance.normal(1000 + 100 * longer * is_lossy, 100, n)).astype(np.int64)
        drawn = pl.DataFrame({"group": group, "value": value, "is_lossy": is_lossy})
        rows.append(drawn)
    value = pl.col("value")
    return pl.concat(rows).group_by("group", "is_lossy").agg(n=pl.len(), sum=value.sum(), squares=(value**2).sum())


def test_non_congestive_loss_is_reported_only_with_enough_losses() -> None:
    chance = np.random.default_rng(5)
    bootstrap = Bootstrap(QUICK)
    assert losses(queued(chance, 10_000, longer=0.0), bootstrap).follow_queues is False
    assert losses(queued(chance, 10_000, longer=0.5), bootstrap).follow_queues is True
    assert losses(queued(chance, 100, longer=0.0), bootstrap).follow_queues is None
    few = [losses(queued(chance, 250, longer=0.25), bootstrap).follow_queues for _ in range(SEEDS)]
    assert few.count(False) <= FALSE_AT_MOST * SEEDS
