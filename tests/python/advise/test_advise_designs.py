"""Designs that assign algorithms over time: before-after, switchbacks, and spans since the activation."""

import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import synthetic_records as synthetic
from advise_answers import answer, codes, verdicts
from synthetic_traffic import HOUR_US, Traffic
from thalweg.advise import NOT_ENOUGH, Design, Question
from thalweg.errors import ThalwegError


def test_a_ramped_rollout_does_not_confound_hour_and_algorithm(tmp_path: Path) -> None:
    """Late hours are slow and have most of the treatment; without balancing, the treatment would appear worse."""

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
    assert re.search("2[456]% of the samples are left out, because their hours had only one algorithm", caution.text)


@pytest.mark.parametrize(("clients", "by"), [(400, ("retransmits",)), (4, ("prefix",)), (0, ())])
def test_slow_hours_before_a_small_pilot_do_not_count_as_its_control(
    tmp_path: Path, clients: int, by: tuple[str, ...]
) -> None:
    """A tenth of the connections is treated in the second half; the first half, without treatment, was slow. Without
    clients, the records have no addresses.
    """
    pilot = Traffic(rows=60_000, clients=clients or 400, hours=48, share=lambda columns: (columns["hour"] >= 24) * 0.1)
    frame = pilot.frame()
    if not clients:
        frame = frame.with_columns(remote_address=pl.lit(None, pl.String))
    early = (pl.col("start_us") - synthetic.NOON_US) // HOUR_US < 24
    frame = frame.with_columns(fct_us=pl.when(early).then(pl.col("fct_us") * 2).otherwise(pl.col("fct_us")))
    result = answer(tmp_path, frame, Question(segments=by, replicates=300))
    assert "uneven-over-time" in codes(result)
    assert result.parts
    assert "bbr" not in verdicts(result).values()
    naive = dict(frame.group_by("cc").agg(pl.col("fct_us").median()).iter_rows())
    assert naive["bbr"] < 0.8 * naive["cubic"], "negative control: without balancing, BBR looks better"


def test_before_and_after_are_split_at_the_activation(tmp_path: Path) -> None:
    frame = Traffic(hours=96, share=lambda columns: (columns["hour"] >= 48) * 1.0, effect=lambda _: 0.8).frame()
    at_us = synthetic.NOON_US + 48 * HOUR_US
    question = Question(segments=("retransmits",), design=Design("before-after", at_us), replicates=300)
    result = answer(tmp_path, frame, question)
    assert set(verdicts(result).values()) == {"bbr"}
    assert "before-after" in codes(result)


@pytest.mark.parametrize(("hours", "side"), [(-1, "before"), (97, "after")])
def test_an_activation_outside_of_the_records_is_refused_with_their_period(
    tmp_path: Path, hours: int, side: str
) -> None:
    frame = Traffic(hours=96).frame()
    design = Design("before-after", synthetic.NOON_US + hours * HOUR_US)
    with pytest.raises(ThalwegError, match=f"the records have nothing {side} ") as caught:
        answer(tmp_path, frame, Question(design=design))
    assert caught.value.place == "--at"
    assert "a time within the records, 20" in str(caught.value.expected)


@pytest.mark.parametrize(("late_hours", "is_caution"), [(1, False), (12, True)])
def test_rows_that_contradict_the_activation_are_counted(tmp_path: Path, late_hours: int, is_caution: bool) -> None:
    frame = Traffic(hours=96, share=lambda columns: (columns["hour"] >= 48) * 1.0).frame()
    at_us = synthetic.NOON_US + (48 + late_hours) * HOUR_US
    spanning = frame.filter(pl.col("cc") == "cubic").head(30)
    spanning = spanning.with_columns(connection=pl.col("connection") + 1_000_000, end_us=pl.lit(at_us + 1))
    late = frame.filter(pl.col("cc") == "cubic").head(20)
    late = late.with_columns(start_us=pl.lit(at_us), end_us=pl.lit(at_us + 1)).cast(dict(frame.schema))
    changed = frame.filter(pl.col("cc") == "cubic").head(10).with_columns(cc_at_open=pl.lit("bbr"))
    records = pl.concat([frame, spanning.cast(dict(frame.schema)), late, changed])
    question = Question(segments=(), design=Design("before-after", at_us), replicates=300)
    result = answer(tmp_path, records, question)
    early = frame.filter(pl.col("cc") == "bbr", pl.col("start_us") < at_us).height
    assert result.without_arm == {"changed_algorithm": 10, "contradicts_design": early + 20, "spans_change": 30}
    assert result.n + sum(result.without_arm.values()) == records.height
    assert ("contradicts-design" in codes(result)) == is_caution


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


def test_rows_that_span_a_change_of_periods_are_counted(tmp_path: Path) -> None:
    frame = Traffic(hours=96, share=lambda columns: (columns["hour"] % 2) * 1.0).frame()
    spanning = frame.head(30).with_columns(end_us=pl.col("start_us") + HOUR_US)
    records = pl.concat([frame, spanning])
    result = answer(tmp_path, records, Question(segments=(), design=Design("switchback"), replicates=300))
    assert result.without_arm == {"changed_algorithm": 0, "spans_change": 30}
    assert result.n == frame.height


def alternating(every_us: int, order: str = "AB") -> pl.DataFrame:
    """Return traffic whose algorithm is set per period, in a repeated order."""
    frame = Traffic(rows=40_000, hours=48).frame()
    period = (pl.col("start_us") - synthetic.NOON_US) // every_us % len(order)
    is_treatment = period.is_in([number for number, arm in enumerate(order) if arm == "A"])
    return frame.filter(is_treatment == (pl.col("cc") == "bbr"))


@pytest.mark.parametrize("minutes", [30, 20, 12])
def test_too_short_periods_are_reported_with_the_period_of_the_records(tmp_path: Path, minutes: int) -> None:
    design = Design("switchback", every_us=HOUR_US // 60 * minutes)
    result = answer(tmp_path, alternating(HOUR_US), Question(segments=(), design=design, replicates=300))
    (caution,) = [caution for caution in result.cautions if caution.code == "long-turns"]
    assert "Use --every 1h." in caution.text


@pytest.mark.parametrize("order", ["AB", "ABBA", "ABABABABABABABABABABABABBABABABABABABABABABABABA"])
def test_balanced_orders_of_periods_cause_no_warning(tmp_path: Path, order: str) -> None:
    question = Question(segments=(), design=Design("switchback"), replicates=300)
    assert not codes(answer(tmp_path, alternating(HOUR_US, order), question)) & {"long-turns", "mixed-turns"}


def test_a_random_order_of_periods_causes_no_warning(tmp_path: Path) -> None:
    order = "".join(np.random.default_rng(1).choice(["A", "B"], 48))
    question = Question(segments=(), design=Design("switchback"), replicates=300)
    assert "long-turns" not in codes(answer(tmp_path, alternating(HOUR_US, order), question))


def test_mixed_periods_are_not_switchback_periods(tmp_path: Path) -> None:
    result = answer(tmp_path, Traffic().frame(), Question(segments=(), design=Design("switchback"), replicates=300))
    assert "mixed-turns" in codes(result)


def pops(periods: pl.Expr, effect: float) -> pl.DataFrame:
    """Return the traffic of a PoP and of a slower one, which has the other algorithm in each switchback period."""
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
    """The effect exists only on the first day."""

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
