"""Verdicts of `advise` on synthetic traffic with known effects."""

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from advise_answers import answer, codes, verdicts
from synthetic_traffic import Traffic
from thalweg.advise import NO_DIFFERENCE, NOT_COMPARABLE, NOT_ENOUGH, Question
from thalweg.advise.answers.headline import headline
from thalweg.errors import ThalwegError


def lossy_gain(columns: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return factors by which the treatment is faster with loss and slower without."""
    return np.where(columns["is_far"], 0.75, 1.2)


def test_planted_effects_of_both_signs_are_detected(tmp_path: Path) -> None:
    result = answer(tmp_path, Traffic(effect=lossy_gain).frame())
    assert verdicts(result) == {"1.5 to 5 %": "bbr", "below 0.1 %": "cubic"}
    gains = {part.title: part.comparisons["completion_time"].gain for part in result.parts}
    lossy, clean = gains["1.5 to 5 %"], gains["below 0.1 %"]
    assert lossy
    assert lossy.low < 0.25 < lossy.high
    assert clean
    assert clean.low < -0.2 < clean.high
    assert "bbr is better in 1 of 2 parts" in result.headline
    assert [step.part.title for step in result.rollout] == ["1.5 to 5 %"]
    assert result.rollout[0].share == 0.5


def test_rows_with_an_externally_chosen_algorithm_are_excluded_and_counted(tmp_path: Path) -> None:
    frame = Traffic(rows=8_000).frame()
    alone = answer(tmp_path / "alone", frame)
    slow = frame.filter(pl.col("cc") == "bbr").with_columns(
        connection=pl.col("connection") + 1_000_000, fct_us=pl.col("fct_us") * 10, assignment=pl.lit("untouched")
    )
    drawn = frame.with_columns(assignment=pl.Series(["treated", "held_out"] * (len(frame) // 2)))
    both = answer(tmp_path / "both", pl.concat([drawn, slow]))
    assert (both.untouched, both.n, alone.untouched) == (len(slow), alone.n, 0)
    with pytest.raises(ThalwegError, match=f"chose the algorithm of all {len(slow):,} rows") as caught:
        answer(tmp_path / "slow", slow)
    assert "record with `thalweg-agent record`" in str(caught.value.hint)
    assert both.overall.comparisons == alone.overall.comparisons


def test_no_effect_is_reported_without_one(tmp_path: Path) -> None:
    result = answer(tmp_path, Traffic(rows=60_000).frame())
    assert set(verdicts(result).values()) == {NO_DIFFERENCE}
    assert not result.rollout
    assert not codes(result) - {"interference"}


def test_too_few_samples_are_inconclusive_with_their_count(tmp_path: Path) -> None:
    result = answer(tmp_path, Traffic(rows=3000, share=lambda _: 0.02).frame(), Question(segments=()))
    (part,) = result.parts
    assert part.verdict == NOT_ENOUGH
    assert "with bbr; 500 are needed" in part.reason


def test_a_wide_interval_is_inconclusive_with_the_required_sample_size(tmp_path: Path) -> None:
    result = answer(tmp_path, Traffic(rows=2400, spread=1.5).frame(), Question(segments=()))
    (part,) = result.parts
    assert part.verdict == NOT_ENOUGH
    assert "times as many records would detect" in part.reason


def test_samples_of_a_few_network_hours_are_inconclusive(tmp_path: Path) -> None:
    result = answer(tmp_path, Traffic(rows=5000, clients=2, hours=3).frame(), Question(segments=("prefix",)))
    assert result.parts[0].verdict == NOT_ENOUGH
    assert "too few independent networks and times" in result.parts[0].reason


def test_assignment_by_client_is_detected_and_resampled_by_client(tmp_path: Path) -> None:
    frame = Traffic(is_by_client=True, clients=100).frame()
    detected_client = answer(tmp_path, frame, Question(segments=(), replicates=300))
    assert "assigned-by-client" in codes(detected_client)
    assert detected_client.question.cluster == "prefix"
    configured = answer(tmp_path, frame, Question(segments=(), cluster="prefix", replicates=300))
    assert "assigned-by-client" not in codes(configured)
    assert configured.parts == detected_client.parts
    assert set(verdicts(configured).values()) <= {NO_DIFFERENCE, NOT_ENOUGH}
    by_hour = answer(tmp_path, frame, Question(segments=(), cluster="prefix-hour", replicates=300))
    assert (by_hour.question.clusters, "assigned-by-client" in codes(by_hour)) == ("prefix-hour", True)
    wide, narrow = (result.overall.comparisons["completion_time"].difference for result in (detected_client, by_hour))
    assert wide
    assert narrow
    assert wide.median
    assert narrow.median
    widths = [math.log(difference.median.high / difference.median.low) for difference in (wide, narrow)]
    assert widths[0] > 3 * widths[1], "hours of one client are not independent"


def test_small_networks_are_not_taken_for_assignment_by_network(tmp_path: Path) -> None:
    """Most networks have one sample and therefore only one arm."""
    result = answer(tmp_path, Traffic(rows=4000, clients=8000).frame(), Question(segments=(), replicates=300))
    assert "assigned-by-client" not in codes(result)
    assert result.question.cluster is None


def test_networks_are_classified_by_the_loss_of_the_control_arm(tmp_path: Path) -> None:
    """An algorithm with many retransmissions does not move its clients into another class."""
    frame = (
        Traffic()
        .frame()
        .with_columns(
            pl.when(pl.col("cc") == "bbr")
            .then(pl.col("segments") // 10)
            .otherwise(pl.col("retransmits"))
            .alias("retransmits")
        )
    )
    assert set(verdicts(answer(tmp_path, frame))) == {"1.5 to 5 %", "below 0.1 %"}


def test_classification_of_networks_is_independent_of_the_arms(tmp_path: Path) -> None:
    """Many networks with few transfers have a single arm; they must not be classified by that arm."""
    frame = Traffic(rows=12_000, clients=4000, size_bytes=(3_000_000, 9_000_000)).frame()
    result = answer(tmp_path, frame, Question(segments=("rtt", "retransmits"), least_samples=50, replicates=100))
    classified = [part for part in result.parts if min(part.values) >= 0]
    assert classified
    for part in result.parts:
        (difference,) = (comparison.difference for comparison in part.comparisons.values())
        assert difference
        assert abs(difference.treatment.n - difference.control.n) < 4 * part.n**0.5, part.title


def test_large_transfers_are_judged_by_throughput(tmp_path: Path) -> None:
    frame = Traffic(size_bytes=(3_000_000, 9_000_000), effect=lambda _: 0.8).frame()
    result = answer(tmp_path, frame, Question(segments=(), replicates=300))
    (comparison,) = result.parts[0].comparisons.values()
    assert comparison.metric == "throughput"
    assert comparison.gain
    assert comparison.gain.low < 0.25 < comparison.gain.high
    assert result.parts[0].verdict == "bbr"


def test_the_size_threshold_is_configurable(tmp_path: Path) -> None:
    result = answer(tmp_path, Traffic().frame(), Question(segments=(), size_limit_bytes=1000))
    assert set(result.overall.comparisons) == {"throughput"}


def test_opposite_effects_by_size_favour_neither_arm(tmp_path: Path) -> None:
    small = Traffic(effect=lambda _: 0.7).frame()
    large = Traffic(effect=lambda _: 1.4, size_bytes=(3_000_000, 9_000_000), seed=2).frame()
    result = answer(tmp_path, pl.concat([small, large]), Question(segments=(), replicates=300))
    assert {comparison.verdict for comparison in result.parts[0].comparisons.values()} == {"bbr", "cubic"}
    assert result.parts[0].verdict == NO_DIFFERENCE
    assert "neither is better for all" in result.parts[0].reason


def test_a_part_with_an_undecided_metric_is_inconclusive(tmp_path: Path) -> None:
    small = Traffic(rows=60_000).frame()
    large = Traffic(rows=2400, spread=1.5, size_bytes=(3_000_000, 9_000_000), seed=2).frame()
    result = answer(tmp_path, pl.concat([small, large]), Question(segments=("machine",), replicates=300))
    (part,) = result.parts
    assert {metric: comparison.verdict for metric, comparison in part.comparisons.items()} == {
        "completion_time": NO_DIFFERENCE,
        "throughput": NOT_ENOUGH,
    }
    assert part.verdict == NOT_ENOUGH
    assert "throughput" in part.reason
    assert part.reason.endswith("; no difference in completion time")
    assert result.headline == "The records are inconclusive in 1 of 1 parts (100% of the samples)."


def test_the_share_of_a_small_part_is_not_zero(tmp_path: Path) -> None:
    result = answer(tmp_path, Traffic(effect=lossy_gain).frame())
    parts = [replace(part, n=20 if part.verdict == "bbr" else part.n) for part in result.parts]
    assert "bbr is better in 1 of 2 parts (below 1% of the samples)" in headline(replace(result, parts=parts))


def test_arms_with_different_size_distributions_are_not_compared(tmp_path: Path) -> None:
    frame = (
        Traffic()
        .frame()
        .with_columns(
            pl.when(pl.col("cc") == "bbr")
            .then(pl.col("acked_bytes") * 3)
            .otherwise(pl.col("acked_bytes"))
            .alias("acked_bytes")
        )
    )
    result = answer(tmp_path, frame, Question(segments=()))
    assert result.parts[0].verdict == NOT_COMPARABLE
    assert "transfers are 3 times as large" in result.parts[0].reason
    assert "unlike-size" in codes(result)


def test_an_overall_effect_opposite_to_its_segments_is_a_paradox(tmp_path: Path) -> None:
    """The treatment is better in every segment but serves mostly the slow one."""
    result = answer(
        tmp_path,
        Traffic(
            rows=40_000,
            of_client=0.1,
            effect=lambda columns: np.where(columns["is_far"], 0.9, 0.9),
            share=lambda columns: np.where(columns["is_far"], 0.85, 0.15),
        ).frame(),
    )
    assert set(verdicts(result).values()) == {"bbr"}
    assert "paradox" in codes(result)
    assert result.overall.verdict == NOT_COMPARABLE


def test_concurrent_algorithms_in_one_network_suggest_a_switchback(tmp_path: Path) -> None:
    assert "interference" in codes(answer(tmp_path, Traffic(clients=20).frame()))
    assert "interference" not in codes(answer(tmp_path / "b", Traffic(clients=4000).frame()))


def test_random_network_variation_does_not_change_its_class(tmp_path: Path) -> None:
    """All networks have a loss of 1.5 %, the limit between two classes; losses increase times, and the algorithms do
    not differ.
    """
    rng = np.random.default_rng(5)
    frame = Traffic(rows=120_000).frame()
    lost = rng.poisson(0.3, len(frame))
    frame = frame.with_columns(segments=pl.lit(20), retransmits=pl.Series(lost)).with_columns(
        fct_us=pl.when(pl.col("retransmits") > 0).then(pl.col("fct_us") * 3).otherwise(pl.col("fct_us"))
    )
    result = answer(tmp_path, frame, Question(segments=("retransmits",), replicates=300))
    assert set(verdicts(result)) == {"0.5 to 1.5 %", "1.5 to 5 %"}
    assert not set(verdicts(result).values()) & {"bbr", "cubic"}


def test_losses_without_queueing_are_reported_as_non_congestive(tmp_path: Path) -> None:
    queued = answer(tmp_path, Traffic().frame())
    assert "loss-without-queues" not in codes(queued)
    frame = Traffic().frame().with_columns(rtt_max_us=pl.col("rtt_min_us") + 3000 + pl.col("connection") % 1000)
    result = answer(tmp_path / "b", frame)
    (caution,) = [caution for caution in result.cautions if caution.code == "loss-without-queues"]
    assert caution.parts == ("1.5 to 5 %",)
