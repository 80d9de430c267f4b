"""Tests of `advise` on synthetic traffic with known effects."""

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import synthetic_records as synthetic
from synthetic_traffic import HOUR_US, Traffic, whole, write
from thalweg.advise import NO_DIFFERENCE, NOT_COMPARABLE, NOT_ENOUGH, Answer, Design, Question, advise
from thalweg.errors import ThalwegError
from thalweg.records.schema import SCHEMA

BY_PREFIX = Question(segments=("retransmits",), replicates=300)


def answer(folder: Path, frame: pl.DataFrame, question: Question = BY_PREFIX, **options: Any) -> Answer:
    write(folder / "some.parquet", frame)
    return advise([folder], question, **options)


def verdicts(result: Answer) -> dict[str, str]:
    return {part.title: part.verdict for part in result.parts}


def codes(result: Answer) -> set[str]:
    return {caution.code for caution in result.cautions}


def spoil(file: Path) -> None:
    """Damage the rows of a file but not its footer, which names the columns."""
    content = bytearray(file.read_bytes())
    content[1000 : len(content) // 2] = bytes(len(content) // 2 - 1000)
    file.write_bytes(content)


def lossy_gain(columns: Mapping[str, np.ndarray]) -> np.ndarray:
    """The treatment takes less time with loss and more time without loss."""
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
    assert "times as many records would tell" in part.reason


def test_samples_of_a_few_network_hours_are_inconclusive(tmp_path: Path) -> None:
    result = answer(tmp_path, Traffic(rows=5000, clients=2, hours=3).frame(), Question(segments=("prefix",)))
    assert result.parts[0].verdict == NOT_ENOUGH
    assert "too few independent places and times" in result.parts[0].reason


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
    """Most networks have one sample and therefore one arm."""
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
    """All networks lose 1.5 %, the limit between two classes; losses take time; the algorithms do not differ."""
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


def test_a_ramped_rollout_does_not_confound_hour_and_algorithm(tmp_path: Path) -> None:
    """Late hours are slow and have most of the treatment: without balancing, the treatment would seem worse."""

    def share(columns: Mapping[str, np.ndarray]) -> np.ndarray:
        return np.where(columns["hour"] < 12, 0.1, 0.8)

    frame = Traffic(rows=60_000, share=share, effect=lambda _: 0.9).frame()
    late = (pl.col("start_us") - synthetic.NOON_US) // HOUR_US >= 12
    frame = frame.with_columns(fct_us=pl.when(late).then(pl.col("fct_us") * 2).otherwise(pl.col("fct_us")))
    result = answer(tmp_path, frame)
    assert "uneven-over-time" in codes(result)
    assert set(verdicts(result).values()) == {"bbr"}
    naive = frame.group_by("cc").agg(pl.col("fct_us").median())
    medians = dict(naive.iter_rows())
    assert medians["bbr"] > medians["cubic"], "negative control: without balancing, BBR looks worse"


def test_hours_with_one_algorithm_are_excluded_from_an_ab_comparison(tmp_path: Path) -> None:
    frame = Traffic(share=lambda columns: np.where(columns["hour"] < 6, 0.0, 0.5)).frame()
    (caution,) = [caution for caution in answer(tmp_path, frame).cautions if caution.code == "uneven-over-time"]
    assert re.search("2[456]% of the samples, in hours of one algorithm alone, are left out", caution.text)


def test_before_and_after_are_split_at_the_activation(tmp_path: Path) -> None:
    frame = Traffic(hours=96, share=lambda columns: (columns["hour"] >= 48) * 1.0, effect=lambda _: 0.8).frame()
    at_us = synthetic.NOON_US + 48 * HOUR_US
    question = Question(segments=("retransmits",), design=Design("before-after", at_us), replicates=300)
    result = answer(tmp_path, frame, question)
    assert set(verdicts(result).values()) == {"bbr"}
    assert "before-after" in codes(result)


def test_hourly_periods_are_a_switchback(tmp_path: Path) -> None:
    frame = Traffic(hours=98, share=lambda columns: (columns["hour"] // 1 % 2 == columns["hour"] // 24 % 2) * 1.0,
                    effect=lambda _: 0.8).frame()  # fmt: skip
    result = answer(tmp_path, frame, Question(segments=(), design=Design("switchback"), replicates=300))
    assert result.parts[0].verdict == "bbr"
    assert "same-hours" not in codes(result)
    assert "interference" not in codes(result)


def test_periods_aligned_with_hours_of_the_day_cause_a_warning(tmp_path: Path) -> None:
    frame = Traffic(hours=96, share=lambda columns: (columns["hour"] % 2) * 1.0).frame()
    result = answer(tmp_path, frame, Question(segments=(), design=Design("switchback")))
    assert "same-hours" in codes(result)


def test_mixed_periods_are_not_switchback_periods(tmp_path: Path) -> None:
    result = answer(tmp_path, Traffic().frame(), Question(segments=(), design=Design("switchback"), replicates=300))
    assert "mixed-turns" in codes(result)


def pops(periods: pl.Expr, effect: float) -> pl.DataFrame:
    """Traffic of a PoP and a slower one, which has the other algorithm in each switchback period."""
    frame = Traffic(rows=80_000, hours=98, effect=lambda _: effect).frame()
    is_second = pl.col("connection") % 2 == 1
    has_treatment = (periods % 2 == 1) != is_second
    frame = frame.filter(pl.when(has_treatment).then(pl.col("cc") == "bbr").otherwise(pl.col("cc") == "cubic"))
    return frame.with_columns(
        machine=pl.when(is_second).then(pl.lit("fra")).otherwise(pl.lit("lon")),
        fct_us=pl.when(is_second).then(pl.col("fct_us") * 4).otherwise(pl.col("fct_us")),
    )


def test_pops_alternating_independently_are_a_switchback(tmp_path: Path) -> None:
    hour = (pl.col("start_us") - synthetic.NOON_US) // HOUR_US
    frame = pops(hour + hour // 24, 0.8)
    design = Design("switchback", unit="machine")
    result = answer(tmp_path, frame, Question(segments=(), design=design, replicates=300))
    assert result.parts[0].verdict == "bbr"
    assert not codes(result) & {"mixed-turns", "same-hours"}
    together = answer(tmp_path / "b", frame, Question(segments=(), design=Design("switchback"), replicates=300))
    assert "mixed-turns" in codes(together), "without the unit, both algorithms run in every period"


def test_a_pop_with_one_algorithm_is_excluded(tmp_path: Path) -> None:
    hour = (pl.col("start_us") - synthetic.NOON_US) // HOUR_US
    alternating = pops(hour + hour // 24, 0.8)
    stuck = pops(pl.lit(0), 0.8).filter(pl.col("cc") == "bbr")
    stuck = stuck.with_columns(machine=pl.lit("ams"), fct_us=pl.col("fct_us") * 20)
    frame = pl.concat([alternating, stuck])
    result = answer(tmp_path, frame, Question(segments=(), design=Design("switchback", unit="machine"), replicates=300))
    assert "no-turns" in codes(result)
    assert result.parts[0].verdict == "bbr"
    medians = dict(frame.group_by("cc").agg(pl.col("fct_us").median()).iter_rows())
    assert medians["bbr"] > medians["cubic"], "negative control: with that PoP, BBR looks worse"
    both_stuck = pops(pl.lit(0), 0.8)
    alone = answer(
        tmp_path / "b", both_stuck, Question(segments=(), design=Design("switchback", unit="machine"), replicates=300)
    )
    assert alone.parts[0].verdict == NOT_ENOUGH


def test_ages_of_connections_count_period_pairs_per_pop(tmp_path: Path) -> None:
    hour = (pl.col("start_us") - synthetic.NOON_US) // HOUR_US
    frame = pops(hour + hour // 24, 0.8).with_columns(kind=pl.lit("close"), busy_goodput_bps=pl.col("goodput_bps"))
    frame = frame.with_columns(
        fct_us=pl.lit(None, dtype=pl.Int64),
        **{f"acked_{end}s_bytes": pl.col("acked_bytes") * end for end in (1, 3, 10)},
    )
    result = answer(tmp_path, frame, Question(segments=(), design=Design("switchback", unit="machine"), replicates=300))
    first, *_ = result.ages
    assert min(first.treatment.groups, first.control.groups) > 49, (
        "each PoP has 49 pairs of periods, and both are counted"
    )


def test_periods_shorter_than_an_hour_are_detected_within_the_hour(tmp_path: Path) -> None:
    """One algorithm in the first half of each hour, the other in the second half."""
    frame = Traffic(rows=40_000, effect=lambda _: 0.8, hours=48).frame()
    of_hour = (pl.col("start_us") - synthetic.NOON_US) % HOUR_US
    is_first = of_hour < HOUR_US // 2
    periods = frame.filter(pl.when(is_first).then(pl.col("cc") == "bbr").otherwise(pl.col("cc") == "cubic"))
    half = Design("switchback", every_us=HOUR_US // 2)
    result = answer(tmp_path, periods, Question(segments=(), design=half, replicates=300))
    assert result.parts[0].verdict == "bbr"
    assert not codes(result) & {"mixed-turns", "interference"}


def test_the_gain_is_reported_by_days_since_activation(tmp_path: Path) -> None:
    """The effect exists on the first day only."""

    def fades(columns: Mapping[str, np.ndarray]) -> np.ndarray:
        return np.where(columns["hour"] < 96 + 24, 0.7, 1.0)

    frame = Traffic(rows=60_000, hours=240, share=lambda columns: (columns["hour"] >= 96) * 1.0, effect=fades).frame()
    design = Design("before-after", synthetic.NOON_US + 96 * HOUR_US)
    result = answer(tmp_path, frame, Question(segments=(), design=design, replicates=300))
    ratios = {days.title: days.difference.median.ratio for days in result.since if days.difference.median}
    assert list(ratios) == ["day 1", "days 2 and 3", "days 4 to 7"]
    assert ratios["day 1"] == pytest.approx(0.7, rel=0.08)
    assert ratios["days 2 and 3"] == pytest.approx(1.0, rel=0.08)
    assert ratios["days 4 to 7"] == pytest.approx(1.0, rel=0.08)


def test_a_one_day_ab_test_has_no_days_since_activation(tmp_path: Path) -> None:
    assert not answer(tmp_path, Traffic().frame()).since
    assert [days.title for days in answer(tmp_path, Traffic(hours=60).frame()).since] == ["day 1", "days 2 and 3"]


def test_a_connection_that_changed_its_algorithm_is_in_neither_arm(tmp_path: Path) -> None:
    frame = Traffic().frame()
    changed = Traffic(seed=2, effect=lambda _: 9.0).frame().with_columns(cc_at_open=pl.lit("reno"))
    result = answer(tmp_path, pl.concat([frame, changed]))
    assert result.n == frame.height


def test_connections_count_if_their_source_has_no_transfers(tmp_path: Path) -> None:
    connections = pl.DataFrame(
        [
            synthetic.closed(n, cc=("bbr", "cubic")[n % 2], start_us=synthetic.NOON_US + n * 60 * synthetic.SECOND)
            for n in range(2000)
        ]
    )
    result = answer(tmp_path, whole(connections), Question(segments=()))
    assert (result.n, set(result.overall.comparisons)) == (2000, {"throughput"})
    both = pl.concat([whole(connections), whole(pl.DataFrame([synthetic.transfer(n, cc="bbr") for n in range(7)]))])
    assert answer(tmp_path, both, Question(segments=())).n == 7


def test_open_connections_do_not_count(tmp_path: Path) -> None:
    rows = [
        synthetic.closed(1),
        synthetic.closed(2, cc="bbr"),
        synthetic.interim(3, 1),
        synthetic.interim(4, 2, cc="bbr"),
    ]
    result = answer(tmp_path, whole(pl.DataFrame(rows)), Question(segments=()))
    assert result.n == 2


def test_sampled_connections_are_weighted_by_the_sampling_ratio(tmp_path: Path) -> None:
    rows = [synthetic.transfer(n, cc=cc, fct_us=fct, acked_bytes=1000, sampled_one_in=weight)
            for cc in ("bbr", "cubic") for n, (fct, weight) in enumerate([(1000, 1), (8000, 3)])]  # fmt: skip
    result = answer(tmp_path, whole(pl.DataFrame(rows)), Question(segments=()))
    difference = result.overall.comparisons["completion_time"].difference
    assert difference
    assert difference.control.mean == pytest.approx((1000 + 3 * 8000) / 4)
    assert difference.control.n == 2


def test_full_addresses_are_grouped_by_network(tmp_path: Path) -> None:
    addresses = {
        "198.51.100.7": "198.51.100.0/24", "198.51.100.99": "198.51.100.0/24", "198.51.100.0/24": "198.51.100.0/24",
        "2001:db8:1:2::7": "2001:db8:1::/48", "2001:db8::9": "2001:db8::/48", "2001:db8:0:5::9": "2001:db8::/48",
        "2001:db8::/48": "2001:db8::/48", "h:49904e588c3b5db3": "h:49904e588c3b5db3",
    }  # fmt: skip
    rows = [synthetic.transfer(n, cc=cc, remote_address=address, acked_bytes=1000)
            for n, address in enumerate(addresses) for cc in ("bbr", "cubic")]  # fmt: skip
    result = answer(tmp_path, whole(pl.DataFrame(rows)), Question(segments=("prefix",), least_samples=1))
    assert {part.title: part.n for part in result.parts} == {
        name: 2 * list(addresses.values()).count(name) for name in set(addresses.values())
    }


def test_columns_without_values_do_not_affect_the_others(tmp_path: Path) -> None:
    frame = Traffic(rows=60_000).frame()
    largest = 2**64 - 1
    absurd = pl.DataFrame(
        [
            synthetic.transfer(n, cc=cc, **{name: largest}, sampled_one_in=2**63)
            for n, name in enumerate(["end_us", "start_us", "fct_us", "acked_bytes", "rtt_min_us", "segments"])
            for cc in ("bbr", "cubic")
        ]
        + [synthetic.transfer(n, cc="bbr", acked_bytes=10**8, goodput_bps=rate)
           for n, rate in enumerate([float("nan"), float("inf"), -1.0])],
        schema=SCHEMA,
    )  # fmt: skip
    result = answer(tmp_path, pl.concat([frame, whole(absurd)]))
    assert frame.height <= result.n <= frame.height + absurd.height
    assert set(verdicts(result).values()) == {NO_DIFFERENCE}


def test_hours_and_sizes_per_network_are_segments(tmp_path: Path) -> None:
    frame = Traffic(rows=30_000, clients=40).frame()
    question = Question(segments=("hour", "retransmits", "size", "machine"), least_samples=20, replicates=100)
    result = answer(tmp_path, frame, question)
    hour = (pl.col("start_us") // HOUR_US % 24).cast(pl.String).str.zfill(2)
    size = pl.when(pl.col("acked_bytes") < 100_000).then(pl.lit("10 to 100 kB")).otherwise(pl.lit("100 kB to 1 MB"))
    is_far = pl.col("rtt_min_us") > 100_000
    loss = pl.when(is_far).then(pl.lit("1.5 to 5 %")).otherwise(pl.lit("below 0.1 %"))
    expected = frame.group_by(hour.alias("a"), loss.alias("b"), size.alias("c"), "machine").len()
    assert {part.names: part.n for part in result.parts} == {row[:4]: row[4] for row in expected.iter_rows()}


@pytest.mark.parametrize("names", [("rtt",), ("retransmits",), ("retransmits", "rtt")], ids=",".join)
def test_a_map_axis_is_judged_separately_with_weighted_hours(tmp_path: Path, names: tuple[str, ...]) -> None:
    titles = {"rtt": {"10 to 30 ms", "100 to 200 ms"}, "retransmits": {"below 0.1 %", "1.5 to 5 %"}}

    def late(columns: Mapping[str, np.ndarray]) -> np.ndarray:
        return np.where(columns["hour"] < 12, 0.2, 0.8)

    for share in (lambda _: 0.5, late):
        result = answer(tmp_path, Traffic(share=share).frame(), Question(segments=names, replicates=100))
        assert len(result.parts) == 2
        assert sum(part.n for part in result.parts) + result.too_small_n == 20_000
        for place, name in enumerate(names):
            assert {part.names[place] for part in result.parts} == titles[name]


def test_folders_name_the_point_of_presence(tmp_path: Path) -> None:
    for pop, effect in (("lon", 0.75), ("fra", 1.0)):
        frame = Traffic(effect=lambda _, effect=effect: effect, rows=40_000).frame()
        write(tmp_path / "day=2026-11-21" / f"pop={pop}" / "some.parquet", frame)
    result = advise([tmp_path], Question(segments=("pop",), replicates=300))
    assert verdicts(result) == {"lon": "bbr", "fra": NO_DIFFERENCE}


def test_files_of_an_older_format_count_and_damaged_ones_are_reported(tmp_path: Path) -> None:
    frame = Traffic().frame()
    write(tmp_path / "new.parquet", frame)
    write(tmp_path / "old.parquet", frame.drop("rtt_max_us", "cc_at_open", "sampled_one_in"))
    half = write(tmp_path / "half.parquet", frame).read_bytes()
    (tmp_path / "half.parquet").write_bytes(half[: len(half) // 2])
    result = advise([tmp_path], BY_PREFIX)
    assert result.n == 2 * frame.height
    assert [file.file.name for file in result.left_out] == ["half.parquet"]


def test_a_file_with_damaged_pages_is_reported_and_the_others_count(tmp_path: Path) -> None:
    frame = Traffic().frame()
    write(tmp_path / "good.parquet", frame)
    spoil(write(tmp_path / "bad.parquet", frame))
    result = advise([tmp_path], BY_PREFIX)
    assert result.n == frame.height
    assert [file.file.name for file in result.left_out] == ["bad.parquet"]


def test_if_every_file_is_damaged_the_error_names_the_first(tmp_path: Path) -> None:
    spoil(write(tmp_path / "bad.parquet", Traffic().frame()))
    with pytest.raises(ThalwegError, match=r"there are no records in .*bad\.parquet: it is damaged where its rows are"):
        advise([tmp_path], BY_PREFIX)


@pytest.mark.parametrize("unit_us", [1, 1000, synthetic.SECOND], ids=["microseconds", "milliseconds", "seconds"])
def test_arm_balance_of_many_rows_is_tested_on_a_quarter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unit_us: int
) -> None:
    """The sample does not depend on the resolution of the timestamps."""
    monkeypatch.setattr("thalweg.advise.judgement.samples.LOOKED_AT", 1000)
    larger = pl.when(pl.col("cc") == "bbr").then(pl.col("acked_bytes") * 1.2).otherwise(pl.col("acked_bytes"))
    frame = Traffic().frame().with_columns(larger.cast(pl.UInt64), start_us=pl.col("start_us") // unit_us * unit_us)
    result = answer(tmp_path, frame, Question(segments=()))
    (size, _) = result.overall.comparisons["completion_time"].imbalances
    assert size.ratio == pytest.approx(1.2, rel=0.05)
    assert result.overall.losses
    n = result.overall.losses.n_lossy + result.overall.losses.n_clean
    assert n == pytest.approx(frame.filter(pl.col("cc") == "cubic").height / 4, rel=0.1)
    assert result.over_time["n"].sum() == pytest.approx(frame.height / 4, rel=0.1)
    assert result.n == frame.height, "all are judged"


def test_connection_lifetimes_of_many_files_are_estimated_from_a_quarter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sample does not depend on the directory of the files."""
    frame = Traffic(changes={"kind": "close", "busy_goodput_bps": 1e6, "acked_1s_bytes": 1000}).frame()
    for number in range(80):
        for folder in ("here", "some where/else"):
            write(tmp_path / folder / f"pop={number % 5}" / f"{number}.parquet", frame.gather_every(80, number))
    question = Question(segments=())
    complete = advise([tmp_path / "here"], question)
    monkeypatch.setattr("thalweg.advise.judgement.samples.LOOKED_AT", 1000)
    sampled, again = (advise([tmp_path / folder], question) for folder in ("here", "some where/else"))
    assert sum(age.treatment.n + age.control.n for age in complete.ages) == frame.height
    counted = sum(age.treatment.n + age.control.n for age in sampled.ages)
    assert counted == pytest.approx(frame.height / 4, rel=0.1)
    assert sampled.ages == again.ages


def test_judging_segments_in_batches_does_not_change_the_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = Traffic(clients=30, rows=30_000).frame()
    question = Question(segments=("prefix",), least_samples=100, replicates=200)
    single = answer(tmp_path, frame, question)
    monkeypatch.setattr("thalweg.advise.judging.MAX_CELLS", 10_000)
    batched = answer(tmp_path, frame, question)
    assert len(single.parts) == 30
    assert single.parts == batched.parts


def test_segments_with_few_samples_are_counted(tmp_path: Path) -> None:
    result = answer(tmp_path, Traffic(clients=3000).frame(), Question(segments=("prefix",)))
    assert not result.parts
    assert result.too_small_n == 20_000
    assert "No part of the records has enough" in result.headline


def test_an_unknown_segment_column_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ThalwegError, match="nothing in these records is called `colour`"):
        answer(tmp_path, Traffic(rows=100).frame(), Question(segments=("colour",)))
    with pytest.raises(ThalwegError, match="a table of prefixes tells it"):
        answer(tmp_path, Traffic(rows=100).frame(), Question(segments=("as",)))


def test_an_absent_algorithm_is_refused_with_the_available_ones(tmp_path: Path) -> None:
    with pytest.raises(ThalwegError, match="`bbr3`") as error:
        answer(tmp_path, Traffic(rows=1000).frame(), Question(treatment="bbr3"))
    assert "cubic (" in (error.value.hint or "")


def test_ages_compare_intervals_of_a_connections_lifetime(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    rows = []
    for n in range(2000):
        cc = ("bbr", "cubic")[n % 2]
        first = 1_000_000 * rng.lognormal(0, 0.3) * (1.5 if cc == "bbr" else 1)
        then = 2_000_000 * rng.lognormal(0, 0.3)
        moved = {"acked_1s_bytes": round(first), "acked_3s_bytes": round(first + then)}
        rows.append(synthetic.closed(n, cc=cc, start_us=synthetic.NOON_US + n % 40 * HOUR_US) | moved)
    result = answer(tmp_path, whole(pl.DataFrame(rows)), Question(segments=()))
    ratios = {age.title: age.effect.ratio for age in result.ages if age.effect}
    assert ratios["0 to 1 s"] == pytest.approx(1.5, rel=0.05)
    assert ratios["1 to 3 s"] == pytest.approx(1.0, rel=0.05)


def test_results_over_time_have_a_value_per_step_and_arm(tmp_path: Path) -> None:
    result = answer(tmp_path, Traffic(hours=24).frame())
    assert result.step_us == 900 * synthetic.SECOND
    arms = result.over_time.group_by("arm").agg(pl.col("n").sum()).sort("arm")
    assert arms["n"].sum() == result.n
    assert result.over_time["start_us"].n_unique() > 90


NOT_FINITE = [float("nan"), float("inf"), float("-inf")]


@pytest.mark.parametrize("value", NOT_FINITE)
@pytest.mark.parametrize("dtype", [pl.Float64, pl.Float32])
def test_a_non_finite_throughput_is_unknown(tmp_path: Path, value: float, dtype: type[pl.DataType]) -> None:
    frame = Traffic(size_bytes=(4_000_000, 9_000_000)).frame()
    bad = pl.when(pl.col("cc") == "bbr").then(pl.lit(value)).otherwise(pl.col("goodput_bps")).cast(dtype)
    result = answer(tmp_path, frame.with_columns(goodput_bps=bad))
    assert result.n == frame.filter(pl.col("cc") == "cubic").height
    assert result.overall.verdict == NOT_ENOUGH
    assert not result.parts


@pytest.mark.parametrize("value", NOT_FINITE)
def test_a_non_finite_connection_throughput_is_unknown(tmp_path: Path, value: float) -> None:
    rows = [
        synthetic.closed(n, cc=("bbr", "cubic")[n % 2], remote_address=f"198.51.{n % 100}.0/24") for n in range(2000)
    ]
    frame = whole(pl.DataFrame(rows))
    bad = pl.when(pl.col("connection") < 400).then(pl.lit(value)).otherwise(pl.col("busy_goodput_bps"))
    result = answer(tmp_path, frame.with_columns(busy_goodput_bps=bad))
    assert result.n == 1600
    compared = result.overall.comparisons["throughput"].difference
    assert compared
    assert compared.treatment.mean < 1e12
    assert compared.control.mean < 1e12


def test_a_nan_bucket_is_unknown(tmp_path: Path) -> None:
    bad = [float("nan"), float("inf"), float("-inf"), None]
    frame = Traffic().frame()
    frame = frame.with_columns(app_limited_share=pl.Series([bad[n % 4] for n in range(frame.height)], dtype=pl.Float64))
    result = answer(tmp_path, frame, Question(segments=("app_limited_share",), replicates=300))
    assert [part.title for part in result.parts] == ["unknown"]


@pytest.mark.parametrize("end", [0, None])
def test_rows_without_an_end_time_are_counted_but_not_judged(tmp_path: Path, end: int | None) -> None:
    frame = Traffic().frame()
    with pytest.raises(ThalwegError, match="none of 20,000 rows is of a closed connection or a transfer whose end"):
        answer(tmp_path, frame.with_columns(end_us=pl.lit(end, pl.Int64)))


def test_negative_numbers_are_unknown(tmp_path: Path) -> None:
    frame = Traffic().frame()
    result = answer(tmp_path, frame.with_columns(rtt_min_us=pl.lit(-(2**63))), Question(replicates=300))
    assert {part.names[0] for part in result.parts} == {"unknown"}
    with pytest.raises(ThalwegError, match="none of 20,000 rows"):
        answer(tmp_path, frame.with_columns(fct_us=pl.lit(-5)))
