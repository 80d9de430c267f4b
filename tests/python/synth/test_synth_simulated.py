"""The truth from the simulator, and the records that are drawn from its connections."""

from pathlib import Path

import pytest
from synthetic import classes, medians, read
from thalweg import synth
from thalweg.synth.classes import CLASSES
from thalweg.synth.pool import Pool


@pytest.fixture(scope="module")
def pools(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Pool]:
    return synth.simulate(tmp_path_factory.mktemp("runs"), quick=True)


def test_every_cell_has_the_same_number_of_connections(pools: dict[str, Pool]) -> None:
    for kind in CLASSES:
        pool = pools[kind.name]
        assert pool.fct_us.shape[2] == kind.transfers
        assert (pool.fct_us > 0).all()
        assert (pool.rtt_p95_us >= pool.rtt_min_us).all()


def test_the_truth_matches_the_article(pools: dict[str, Pool]) -> None:
    truth = synth.truth(synth.make(synth.Settings(), pools))
    ratio = {(segment["class"], segment["metric"]): segment["ratio_of_means"] for segment in truth["segments"]}
    assert ratio["far-lossy", "goodput_bps"] > 1.5
    assert 1.03 < ratio["wireless", "goodput_bps"] < 1.1
    assert ratio["pop-to-pop", "goodput_bps"] < 0.97
    assert ratio["intra-pop", "goodput_bps"] < 0.97
    assert ratio["far-clean", "goodput_bps"] < 1
    assert ratio["wireline", "fct_us"] < 0.9


def test_the_records_show_the_truth(pools: dict[str, Pool], tmp_path: Path) -> None:
    generated = synth.make(synth.Settings(rows=300_000), pools)
    synth.write(generated, tmp_path)
    truth = {
        (segment["class"], segment["metric"]): segment["ratio_of_medians"]
        for segment in synth.truth(generated)["segments"]
    }
    rows = classes(read(tmp_path))
    for column, is_small in (("fct_us", True), ("goodput_bps", False)):
        for name, ratio in medians(rows, column, is_small=is_small).items():
            assert ratio.is_near(truth[name, column]), (name, column, ratio)
