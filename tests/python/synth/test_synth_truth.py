"""The computed truth of synthetic records, compared with the records."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from synthetic import classes, medians, read, world, written
from thalweg import synth
from thalweg.synth.planted import PLANTED
from thalweg.synth.truths import Mixture

HOUR_US = 3_600_000_000

NOISE = 0.06
"""Relative tolerance for the median of some thousand transfers."""


def truths(folder: Path) -> dict[tuple[str, str], dict[str, float]]:
    document = json.loads((folder / synth.TRUTH).read_text())
    return {(segment["class"], segment["metric"]): segment for segment in document["segments"]}


@pytest.mark.parametrize(("name", "ratio"), [("none", 1.0), ("tiny", 0.95), ("paradox", 0.9), ("correlated", 1.0)])
def test_a_planted_truth_is_exact(name: str, ratio: float) -> None:
    truth = synth.truth(world(truth=name))
    for segment in truth["segments"]:
        wanted = ratio if segment["metric"] == "fct_us" else 1 / ratio
        assert segment["ratio_of_means"] == pytest.approx(wanted, rel=1e-9)
        assert segment["ratio_of_medians"] == pytest.approx(wanted, rel=1e-9)


def test_the_reversed_truth_differs_by_class() -> None:
    truth = {
        segment["class"]: segment
        for segment in synth.truth(world(truth="reversed"))["segments"]
        if segment["metric"] == "fct_us"
    }
    for kind in synth.CLASSES:
        wanted = PLANTED["reversed"].ratios.get(kind.name, 1.0)
        assert truth[kind.name]["ratio_of_medians"] == pytest.approx(wanted)


def test_the_paradox_is_a_simpsons_paradox() -> None:
    together = {segment["metric"]: segment for segment in synth.truth(world(truth="paradox"))["all"]}
    assert together["fct_us"]["ratio_of_medians"] == pytest.approx(0.9)
    assert together["fct_us"]["seen"]["ratio_of_medians"] > 1.2


def test_the_records_show_the_truth(tmp_path: Path) -> None:
    written(tmp_path, rows=200_000, truth="reversed")
    rows, truth = classes(read(tmp_path)), truths(tmp_path)
    for column, is_small in (("fct_us", True), ("goodput_bps", False)):
        for name, ratio in medians(rows, column, is_small=is_small).items():
            assert ratio.is_near(truth[name, column]["ratio_of_medians"]), (name, ratio)


def test_the_records_show_the_medians_themselves(tmp_path: Path) -> None:
    written(tmp_path, rows=200_000)
    rows, truth = classes(read(tmp_path)), truths(tmp_path)
    small = rows.filter((pl.col("kind") == "transfer") & (pl.col("acked_bytes") < 3_000_000))
    for name, median in small.group_by("class").agg(pl.col("fct_us").median()).iter_rows():
        assert median == pytest.approx(truth[name, "fct_us"]["control_median"], rel=NOISE), name


def test_the_records_show_the_paradox(tmp_path: Path) -> None:
    written(tmp_path, rows=100_000, truth="paradox")
    rows = classes(read(tmp_path))
    together = medians(rows.with_columns(pl.lit("all").alias("class")), "fct_us", is_small=True)
    assert together["all"].value > 1.2
    within = medians(rows, "fct_us", is_small=True)
    assert sum(ratio.value < 1 for ratio in within.values()) >= 5


def test_correlated_clients_have_one_arm_per_hour(tmp_path: Path) -> None:
    written(tmp_path, rows=50_000, truth="correlated")
    closed = read(tmp_path).filter((pl.col("kind") == "close") & pl.col("cc").is_not_null())
    hours = closed.group_by("remote_address", pl.col("start_us") // HOUR_US).agg(
        pl.col("cc").n_unique().alias("arms"), pl.len()
    )
    assert (hours["arms"] == 1).all()
    assert hours["len"].max() > 20
    assert 0.4 < (closed["cc"] == "bbr").mean() < 0.6


def test_before_and_after_arms_are_consecutive(tmp_path: Path) -> None:
    generated = written(tmp_path, rows=5_000, design="before-after", days=4)
    at_us = int(generated.settings.activation.timestamp()) * 1_000_000
    closed = read(tmp_path).filter((pl.col("kind") == "close") & pl.col("cc").is_not_null())
    assert set(closed.filter(pl.col("start_us") < at_us)["cc"]) == {"cubic"}
    assert set(closed.filter(pl.col("start_us") >= at_us)["cc"]) == {"bbr"}


def test_a_switchback_covers_every_hour_of_the_day_with_both_arms(tmp_path: Path) -> None:
    written(tmp_path, rows=20_000, design="switchback")
    closed = read(tmp_path).filter((pl.col("kind") == "close") & pl.col("cc").is_not_null())
    hour = pl.col("start_us") // HOUR_US
    assert (closed.group_by(hour).agg(pl.col("cc").n_unique())["cc"] == 1).all()
    assert (closed.group_by(hour % 24).agg(pl.col("cc").n_unique())["cc"] == 2).all()


def test_the_median_of_a_mixture_matches_its_samples() -> None:
    chance = np.random.default_rng(1)
    mixture = Mixture(np.array([1.0, 3.0, 2.0]), np.array([1.0, 5.0, 40.0]), 0.5)
    which = chance.choice(3, 400_000, p=mixture.weights / 6)
    draws = mixture.medians[which] * np.exp(0.5 * chance.standard_normal(400_000))
    assert mixture.median == pytest.approx(np.median(draws), rel=0.01)
    assert mixture.mean == pytest.approx(draws.mean(), rel=0.01)
