"""Claims are judged on synthetic runs with known results."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats
from synthetic_runs import SyntheticRun, experiment, flow
from thalweg import analysis
from thalweg.engine import Engine
from thalweg.errors import ThalwegError
from thalweg.results import open_run
from thalweg.studies import Judged, judge
from thalweg.studies.claims.models import Claim, Quantity
from thalweg.studies.claims.planned_part import PlannedPart
from thalweg.studies.judging.data import PartData
from thalweg.studies.judging.estimates import Centre, Quantities, Side, Sides
from thalweg.studies.judging.reduce import along

SIM = Engine("sim", "", "1", True, None, {}, frozenset())

CC, BUFFER = "flow.large.cc", "path.buffer"


def synthetic(directory: Path, times_s: Mapping[tuple[str, str], Sequence[float | None]]) -> dict[str, PartData]:
    """Return a part whose large flow takes these times: a list of repetitions per congestion control and buffer.

    The medium flow takes the rest of 10 s. None: the transfer is incomplete.
    """
    experiments = [
        experiment(number, repetition, sweep={CC: cc, BUFFER: buffer}, flows=[flow("large", cc), flow("medium", cc)])
        for number, ((cc, buffer), values) in enumerate(times_s.items())
        for repetition in range(len(values))
    ]
    run = SyntheticRun(directory, experiments)
    for number, values in enumerate(times_s.values()):
        for repetition, seconds in enumerate(values):
            took = {"end_us": int((seconds or 5.0) * 1e6), "completed": seconds is not None}
            run.transfer(number, repetition, "large", **took)
            run.transfer(number, repetition, "medium", end_us=int((10 - (seconds or 5.0)) * 1e6))
    return {"synthetic": PartData(PlannedPart("synthetic", SIM), open_run(run.write()))}


def claim(judge: Mapping[str, Any], where: Mapping[str, Any], **rest: Any) -> Claim:
    value = {"measure": "completion_time", "flow": "large", "where": where}
    return Claim.model_validate({"id": "a", "text": "b", "part": "synthetic", "value": value, "judge": judge} | rest)


def judged(parts: dict[str, PartData], judge_: Mapping[str, Any], where: Mapping[str, Any], **rest: Any) -> Judged:
    return judge(claim(judge_, where, **rest), parts)


@pytest.fixture
def race(tmp_path: Path) -> dict[str, PartData]:
    """Return a part in which BBR takes 2 s with every buffer, and CUBIC 1, 2 and 4 s."""
    calm = (-0.01, 0.0, 0.01)
    return synthetic(
        tmp_path / "race",
        {
            (cc, buffer): [seconds + experiment for experiment in calm]
            for cc, times in (("bbr", (2, 2, 2)), ("cubic", (1, 2, 4)))
            for buffer, seconds in zip(("1bdp", "2bdp", "4bdp"), times, strict=True)
        },
    )


def test_a_mean_has_students_interval(race: dict[str, PartData]) -> None:
    verdict = judged(race, {"at_most": 3}, {CC: "bbr", BUFFER: "1bdp"})
    half = stats.t.ppf(0.975, 2) * 0.01 / math.sqrt(3)
    assert (verdict.verdict, verdict.n) == ("holds", 3)
    assert (verdict.low, verdict.high) == pytest.approx((2 - half, 2 + half))


def test_a_ratio_and_its_inverse_agree(race: dict[str, PartData]) -> None:
    one = judged(race, {"as": "ratio", "at_most": 9}, {CC: "bbr", BUFFER: "4bdp"}, against={"where": {CC: "cubic"}})
    other = judged(race, {"as": "ratio", "at_most": 9}, {CC: "cubic", BUFFER: "4bdp"}, against={"where": {CC: "bbr"}})
    assert one.value == pytest.approx(0.5)
    assert (one.low, one.high) == pytest.approx((1 / other.high, 1 / other.low))  # type: ignore[operator]


def test_sides_are_paired_by_their_common_free_keys(race: dict[str, PartData]) -> None:
    verdict = judged(race, {"as": "ratio", "at_most": 1.2}, {CC: "bbr"}, against={"where": {CC: "cubic"}})
    assert (verdict.verdict, verdict.points, verdict.where) == ("does not hold", 3, "buffer 1bdp")
    assert verdict.value == pytest.approx(2.0)
    assert verdict.note == "2 of 3 points meet the bounds"


def test_an_ambiguous_pairing_is_a_study_error(race: dict[str, PartData]) -> None:
    with pytest.raises(ThalwegError, match=r"does not specify path\.buffer"):
        judged(race, {"as": "ratio", "at_most": 1}, {CC: "bbr", BUFFER: "1bdp"}, against={"where": {BUFFER: "*"}})


def test_gain_and_harm_follow_from_the_ratio(race: dict[str, PartData]) -> None:
    where, against = {CC: "cubic", BUFFER: "4bdp"}, {"where": {CC: "bbr"}}
    assert judged(race, {"as": "gain", "at_most": 9}, where, against=against).value == pytest.approx(1.0)
    # It takes twice as long, so half of the possible throughput is lost.
    harm = judged(race, {"as": "harm", "at_most": 9}, where, against=against)
    assert harm.value == pytest.approx(analysis.harm(4.0, 2.0, more_is_better=False))
    assert harm.value == pytest.approx(0.5)


def test_an_interval_that_spans_a_bound_is_inconclusive(tmp_path: Path) -> None:
    parts = synthetic(tmp_path / "a", {("bbr", "1bdp"): [1.0, 2.0, 3.0]})
    assert judged(parts, {"at_least": 1.5}, {}).verdict == "not settled"
    assert judged(parts, {"at_most": 9}, {}).verdict == "holds"


def test_a_single_repetition_is_judged_by_value_with_a_note(tmp_path: Path) -> None:
    parts = synthetic(tmp_path / "a", {("bbr", "1bdp"): [2.0], ("bbr", "2bdp"): [4.0]})
    verdict = judged(parts, {"at_most": 3}, {})
    assert (verdict.verdict, verdict.n, verdict.low, verdict.high) == ("does not hold", 1, None, None)
    growth = judged(parts, {"along": BUFFER, "take": "growth", "at_least": 1.5}, {})
    assert (growth.verdict, growth.value, growth.n, growth.low) == ("holds", 2.0, 1, None)


def test_bounds_on_many_points_are_corrected_for_multiplicity(tmp_path: Path) -> None:
    # 20 points meet the bound, and one has a 95 % interval just outside: one in 20 such intervals is wrong.
    inside, outside = [1.0, 1.1, 1.2], [2.05, 2.1, 2.15]
    times = {("bbr", f"{size}bdp"): inside for size in range(1, 21)} | {("bbr", "99bdp"): outside}
    verdict = judged(synthetic(tmp_path / "many", times), {"at_most": 1.95}, {})
    assert verdict.low is not None
    assert (verdict.verdict, verdict.where, verdict.low > 1.95) == ("not settled", "buffer 99bdp", True)
    alone = judged(synthetic(tmp_path / "one", {("bbr", "99bdp"): outside}), {"at_most": 1.95}, {})
    assert alone.verdict == "does not hold"


def test_a_missing_value_leaves_a_claim_about_every_point_inconclusive(tmp_path: Path) -> None:
    parts = synthetic(tmp_path / "a", {("bbr", "1bdp"): [2.0, 2.0], ("bbr", "2bdp"): [None, None]})
    verdict = judged(parts, {"at_most": 3}, {})
    assert (verdict.verdict, verdict.note) == ("not settled", "1 of 2 points have no value")
    assert judged(parts, {"at_most": 1}, {}).verdict == "does not hold"


def test_a_missing_value_is_inconclusive_only_if_it_could_change_the_verdict(tmp_path: Path) -> None:
    parts = synthetic(tmp_path / "a", {("bbr", "1bdp"): [2.0], ("bbr", "2bdp"): [3.0], ("bbr", "4bdp"): [None]})
    # The point without a value may have a smaller one, so the minimum is at most that of the other points.
    assert judged(parts, {"over": "min", "at_most": 1}, {}).verdict == "not settled"
    assert judged(parts, {"over": "min", "at_most": 2}, {}).verdict == "holds"
    assert judged(parts, {"over": "min", "at_least": 2}, {}).verdict == "not settled"
    assert judged(parts, {"over": "max", "at_least": 4}, {}).verdict == "not settled"
    assert judged(parts, {"over": "max", "at_least": 3}, {}).verdict == "holds"
    assert judged(parts, {"along": BUFFER, "take": "growth", "at_least": 5}, {}).verdict == "not settled"


def test_two_flows_of_an_experiment_are_not_independent(tmp_path: Path) -> None:
    # One flow's gain is the other's loss, so their difference varies twice as much as one of them, not 1.4 times.
    times = [4.0, 5.0, 6.0, 4.5, 5.5]
    parts = synthetic(tmp_path / "a", {("bbr", "1bdp"): times})
    verdict = judged(parts, {"as": "difference", "at_most": 9}, {}, against={"flow": "medium"})
    half = stats.t.ppf(0.975, 4) * 2 * np.std(times, ddof=1) / math.sqrt(5)
    assert (verdict.low, verdict.high) == pytest.approx((-half, half))


@pytest.mark.parametrize(
    ("take", "expected"),
    [("growth", 4.0), ("spread", 4.0), ("slope", 1.5), ("spearman", 1.0), ("crossing", 2 * 2**0.5)],
)
def test_points_along_a_key_are_aggregated(race: dict[str, PartData], take: str, expected: float) -> None:
    level = {"level": 3.0} if take == "crossing" else {}
    verdict = judged(race, {"along": BUFFER, "take": take, "at_least": -9, **level}, {CC: "cubic"})
    assert verdict.value == pytest.approx(expected, rel=1e-6)
    assert verdict.low is not None
    assert verdict.high is not None
    assert verdict.low <= expected * (1 + 1e-6)
    assert verdict.high >= expected * (1 - 1e-6)


def test_a_derived_key_stands_for_the_keys_of_the_path(race: dict[str, PartData]) -> None:
    verdict = judged(race, {"along": "rtt_s", "take": "spread", "at_most": 1}, {CC: "cubic"})
    assert verdict.note == "there are fewer than two points along rtt_s"
    assert verdict.verdict == "not settled"


def test_a_claim_of_a_missing_crossing_does_not_hold(race: dict[str, PartData]) -> None:
    verdict = judged(race, {"along": BUFFER, "take": "crossing", "level": 9, "at_least": 1}, {CC: "cubic"})
    assert (verdict.verdict, verdict.value) == ("does not hold", None)


def test_a_share_counts_the_points_within_the_bounds(race: dict[str, PartData]) -> None:
    criteria = {"over": "share", "at_most": 2.5, "at_least_share": 0.6}
    verdict = judged(race, criteria, {CC: "cubic"})
    assert (verdict.verdict, verdict.note) == ("holds", "2 of 3 points meet the bounds")
    assert verdict.value == pytest.approx(2 / 3)


def test_an_untested_claim_says_where_it_is_tested(race: dict[str, PartData]) -> None:
    verdict = judged(race, {"at_most": 1}, {BUFFER: "8bdp"})
    assert verdict.verdict == "cannot run here"
    # The earlier condition leaves no points for the condition on the numeric key.
    assert judged(race, {"at_most": 1}, {BUFFER: "8bdp", "buffer_bdp": 8.0}).verdict == "cannot run here"
    assert verdict.note == "`synthetic` is not run at path.buffer = 8bdp here, only at 1bdp, 2bdp, 4bdp"


def test_a_quantity_that_the_engine_does_not_record_is_not_inconclusive(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "a", [experiment(0, 0, flows=[flow("large", "bbr")])])
    run.transfer(0, 0, "large", timeouts=None, completed=False)
    parts = {"synthetic": PartData(PlannedPart("synthetic", SIM), open_run(run.write()))}
    lost = judge(
        claim({"at_most": 3}, {}).model_copy(update={"value": Quantity(measure="timeouts", flow="large")}), parts
    )
    assert (lost.verdict, lost.note) == ("cannot run here", "the engine sim does not record `timeouts`")
    assert judged(parts, {"at_most": 3}, {}).verdict == "not settled", "a transfer that did not end is a finding"


def test_only_inconclusive_points_get_more_repetitions(tmp_path: Path) -> None:
    parts = synthetic(tmp_path / "a", {("bbr", "1bdp"): [2.0, 2.001, 2.0], ("bbr", "2bdp"): [2.0, 2.5, 3.0]})
    verdict = judged(parts, {"at_most": 9, "tolerance": 0.1}, {})
    assert verdict.looked_at == {("synthetic", 0), ("synthetic", 1)}
    assert verdict.unsure == {("synthetic", 1)}


TRIALS = 4000

SPREAD = 0.1
"""Standard deviation of the synthetic values, around means of 1 and 2."""

OFF = 0.012
"""Maximum deviation of the fraction of covering intervals from 95 %: three and a half standard errors of TRIALS."""


def _drawn(mean: float, n: int, seed: int) -> Side:
    values = np.random.default_rng(seed).normal(mean, SPREAD, (TRIALS, n))
    variance = values.var(axis=1, ddof=1) / n
    return Side(np.arange(TRIALS), np.full(TRIALS, n), values.mean(axis=1), variance, f"part {seed}")


@pytest.mark.parametrize("n", [3, 10])
def test_ratio_intervals_have_their_nominal_coverage(n: int) -> None:
    value, against = _drawn(2, n, 1), _drawn(1, n, 2)
    ratio, no = value.mean / against.mean, np.zeros(TRIALS, dtype=bool)
    slopes = 1 / value.mean, 1 / against.mean
    sides = Sides(pl.DataFrame(), value, against, no, np.zeros(TRIALS))
    quantities = Quantities.of(sides, Centre(np.log(ratio), slopes, ~no), lambda quantities_: quantities_)
    low, high = quantities.intervals(0.95)
    # Welch's interval of few values is slightly too wide rather than too narrow.
    assert 0.95 - OFF < np.mean((low <= 2) & (high >= 2)) < 0.985


def test_draws_of_a_mean_follow_students_distribution() -> None:
    mean, zero, no = np.array([2.0]), np.zeros(1), np.zeros(1, dtype=bool)
    side = Side(np.array([0]), np.array([3]), mean, np.array([0.01]), "part")
    centre = Centre(mean, (mean * 0 + 1, zero), no)
    quantities = Quantities.of(Sides.of_one(pl.DataFrame(), side), centre, lambda quantities_: quantities_)
    draws = quantities.draws()
    assert draws is not None
    assert stats.kstest((draws[:, 0] - 2) / 0.1, stats.t(2).cdf).pvalue > 0.01


def test_a_crossing_is_interpolated_over_the_logarithm_of_the_key() -> None:
    key = np.array([0.25, 1.0, 16.0])
    assert along("crossing", key, np.array([0.0, 0.2, 0.8]), level=0.5) == pytest.approx(4.0)
    assert math.isnan(along("crossing", key, np.array([0.6, 0.7, 0.8]), level=0.5))


def test_the_interval_of_a_share_contains_the_share(tmp_path: Path) -> None:
    # Each of eight points meets the bound by less than its noise, so in most draws some do not.
    times = {("bbr", f"{size}bdp"): [0.9, 1.0, 1.09] for size in range(1, 9)}
    criteria = {"over": "share", "at_most": 1.0, "at_least_share": 0.9}
    verdict = judged(synthetic(tmp_path / "a", times), criteria, {})
    assert (verdict.value, verdict.high, verdict.verdict) == (1.0, 1.0, "not settled")
    assert verdict.low is not None
    assert verdict.low < 0.9


# --- points that are a sample ----------------------------------------------------------------------------------------


def sampled(directory: Path, ratios: Sequence[float], weights: Sequence[float]) -> dict[str, PartData]:
    """Return a part with a path per ratio of BBR's time to CUBIC's; CUBIC takes the path's weight in seconds."""
    times = {}
    for number, (ratio, weight) in enumerate(zip(ratios, weights, strict=True)):
        times["cubic", f"{number + 1}bdp"] = [weight]
        times["bbr", f"{number + 1}bdp"] = [weight * ratio]
    return synthetic(directory, times)


SAMPLE_RATIOS = [0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.4, 1.5]
SAMPLE_WEIGHTS = [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 4.0]


@pytest.mark.parametrize(
    ("over", "value", "rest"),
    [("median", 1.15, {}), ("mean", 1.15, {}), ("total", 13.7 / 11, {}), ("share", 0.25, {"at_least_share": 0.1})],
)
def test_a_sample_of_single_repetitions_has_an_interval_over_its_points(
    tmp_path: Path, over: str, value: float, rest: dict[str, float]
) -> None:
    parts = sampled(tmp_path / "run", SAMPLE_RATIOS, SAMPLE_WEIGHTS)
    verdict = judged(
        parts,
        {"as": "ratio", "over": over, "sample": True, "at_most": 0.95, **rest},
        {CC: "bbr"},
        against={"where": {CC: "cubic"}},
    )
    assert verdict.value == pytest.approx(value, abs=1e-3)
    assert verdict.n == verdict.points == 8
    assert verdict.low is not None
    assert verdict.high is not None
    assert verdict.low < value < verdict.high


def test_the_interval_of_a_sampled_mean_is_that_of_its_standard_error(tmp_path: Path) -> None:
    chance = np.random.default_rng(1)
    ratios = list(chance.normal(1.0, 0.1, 200))
    parts = sampled(tmp_path / "run", ratios, [1.0] * 200)
    verdict = judged(
        parts,
        {"as": "ratio", "over": "mean", "sample": True, "at_most": 1.1},
        {CC: "bbr"},
        against={"where": {CC: "cubic"}},
    )
    half = 1.96 * np.std(ratios, ddof=1) / math.sqrt(200)
    assert verdict.low == pytest.approx(np.mean(ratios) - half, abs=0.1 * half)
    assert verdict.high == pytest.approx(np.mean(ratios) + half, abs=0.1 * half)
    assert verdict.verdict == "holds"


def test_a_sample_with_a_missing_value_is_inconclusive(tmp_path: Path) -> None:
    parts = synthetic(tmp_path / "run", {("bbr", "1bdp"): [1.0], ("bbr", "2bdp"): [1.0], ("bbr", "3bdp"): [None]})
    verdict = judged(parts, {"over": "mean", "sample": True, "at_most": 2}, {CC: "bbr"})
    assert (verdict.verdict, verdict.value, verdict.note) == ("not settled", 1.0, "1 of 3 points have no value")


def test_a_share_of_zero_has_an_interval(tmp_path: Path) -> None:
    parts = sampled(tmp_path / "run", [1.0] * 12, [1.0] * 12)
    criteria = {"as": "ratio", "over": "share", "sample": True, "at_most": 0.95, "at_least_share": 0.2}
    verdict = judged(parts, criteria, {CC: "bbr"}, against={"where": {CC: "cubic"}})
    assert (verdict.verdict, verdict.value) == ("not settled", 0.0)
    assert verdict.low == pytest.approx(0, abs=1e-9)
    assert verdict.high == pytest.approx(0.2425, abs=1e-4)
