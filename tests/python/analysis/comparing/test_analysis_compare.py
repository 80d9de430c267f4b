"""Comparisons of runs: pairs, intervals and verdicts, checked against manually computed results."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from synthetic_runs import SyntheticRun, experiment, flow
from thalweg import analysis
from thalweg.analysis import Estimate, estimate
from thalweg.errors import ThalwegError
from thalweg.results import Run, open_run

Point = Mapping[str, Any]


def a_run(directory: Path, points: Sequence[tuple[Point, Sequence[float]]], name: str = "large") -> Run:
    """Return a run whose flow takes the given seconds at each point, by repetition, for 1 MB each."""
    synthetic = SyntheticRun(
        directory,
        [
            experiment(number, repetition, sweep=dict(point), flows=[flow(name)])
            for number, (point, seconds) in enumerate(points)
            for repetition in range(len(seconds))
        ],
    )
    for number, (point, seconds) in enumerate(points):
        for repetition, took in enumerate(seconds):
            cc = str(point.get(f"flow.{name}.cc", "cubic"))
            synthetic.transfer(number, repetition, name, cc=cc, end_us=round(took * 1e6))
    return open_run(synthetic.write())


def only(comparison: analysis.Comparison, measure: str = "completion_time") -> analysis.Compared:
    (row,) = [row for row in comparison.rows if row.measure == measure]
    return row


def test_the_interval_of_a_difference_is_welchs() -> None:
    a, b = [10.0, 12.0, 11.0, 13.0], [20.0, 26.0, 23.0]
    difference = analysis.difference(estimate(a), estimate(b))
    expected = stats.ttest_ind(b, a, equal_var=False)
    interval = expected.confidence_interval(0.95)
    assert (difference.low, difference.high) == (pytest.approx(interval.low), pytest.approx(interval.high))
    assert difference.p == pytest.approx(expected.pvalue)
    assert difference.value == pytest.approx(11.5)


def test_the_interval_of_a_ratio_is_fiellers() -> None:
    a, b = [10.0, 12.0, 11.0, 13.0], [20.0, 26.0, 23.0]
    difference = analysis.difference(estimate(a), estimate(b))
    assert difference.ratio == pytest.approx(2.0)
    v, w = np.var(a, ddof=1) / 4, np.var(b, ddof=1) / 3
    freedom = (4 * v + w) ** 2 / ((4 * v) ** 2 / 3 + w**2 / 2)  # Welch's degrees of freedom of b - 2 a
    for bound in (difference.ratio_low, difference.ratio_high):
        assert bound is not None
        t = abs(np.mean(b) - bound * np.mean(a)) / math.sqrt(bound**2 * v + w)  # of b - bound * a
        assert t == pytest.approx(stats.t.ppf(0.975, freedom))


def test_a_reference_near_zero_leaves_the_ratio_without_an_interval() -> None:
    difference = analysis.difference(estimate([0.0, 1.0]), estimate([5.0, 6.0]))
    assert (difference.ratio, difference.ratio_low, difference.ratio_high) == (11.0, None, None)
    assert analysis.difference(estimate([0.0, 0.0]), estimate([5.0, 6.0])).ratio is None
    assert analysis.difference(estimate([-1.0, -1.1]), estimate([5.0, 6.0])).ratio is None


def test_a_single_repetition_on_a_side_has_no_interval() -> None:
    difference = analysis.difference(estimate([1.0]), estimate([2.0, 2.1]))
    assert (difference.value, difference.low, difference.p, difference.ratio) == (
        pytest.approx(1.05),
        None,
        None,
        pytest.approx(2.05),
    )


def test_values_without_spread_do_not_prove_a_difference() -> None:
    sums = [Estimate(3, value, value, value, value) for value in (0.1 + 0.2, 0.3, 0.4)]
    assert analysis.difference(sums[0], sums[1]).p == 1.0
    apart = analysis.difference(sums[0], sums[2])
    # Of the 20 ways to divide six values into two groups of three, two separate them completely.
    assert (apart.p, apart.low) == (0.1, None)
    rounded = analysis.difference(estimate([0.1 + 0.2, 0.3, 0.3]), estimate([0.4, 0.4, 0.4]))
    assert (rounded.p, rounded.low) == (0.1, None), "rounding errors are not a spread"


def test_points_of_two_runs_are_paired_by_sweep_values_in_any_order(tmp_path: Path) -> None:
    small, large, other = ({"path.buffer": size} for size in ("1bdp", "2bdp", "8bdp"))
    first = a_run(tmp_path / "a", [(small, [1, 1.1]), (large, [2, 2.1]), (other, [9, 9])])
    second = a_run(tmp_path / "b", [(large, [4, 4.1]), (small, [1, 1.1])])
    comparison = analysis.compare(first, second, measures=["completion_time"])
    means = {row.pair.point["path.buffer"]: (row.first.mean, row.second.mean) for row in comparison.rows}
    assert means == {"1bdp": pytest.approx((1.05, 1.05)), "2bdp": pytest.approx((2.05, 4.05))}
    assert comparison.alone == ["only A has path.buffer = 8bdp"]


def test_a_key_that_only_one_run_sweeps_cannot_be_paired(tmp_path: Path) -> None:
    first = a_run(tmp_path / "a", [({"path.rtt": rtt}, [1, 1]) for rtt in ("10ms", "20ms")])
    second = a_run(tmp_path / "b", [({}, [1, 1])])
    with pytest.raises(ThalwegError, match=r"only A sweeps `path\.rtt`"):
        analysis.compare(first, second)
    with pytest.raises(ThalwegError, match=r"only B sweeps `path\.rtt`"):
        analysis.compare(second, first)


def test_runs_without_a_common_point_cannot_be_compared(tmp_path: Path) -> None:
    first = a_run(tmp_path / "a", [({"path.rtt": "10ms"}, [1, 1])])
    second = a_run(tmp_path / "b", [({"path.rtt": "20ms"}, [1, 1])])
    with pytest.raises(ThalwegError, match=r"only A has path\.rtt = 10ms; only B has path\.rtt = 20ms"):
        analysis.compare(first, second)


def test_runs_of_one_point_each_can_always_be_compared(tmp_path: Path) -> None:
    first, second = (a_run(tmp_path / name, [({}, seconds)]) for name, seconds in (("a", [1, 1.1]), ("b", [2, 2.1])))
    row = only(analysis.compare(first, second))
    assert (row.change[0], row.verdict) == (pytest.approx(1 / 1.05), "real")


def test_within_a_run_the_first_value_of_a_key_is_the_reference(tmp_path: Path) -> None:
    points = [
        ({"flow.large.cc": cc, "path.rtt": rtt}, [seconds, seconds + 0.01])
        for cc, seconds in (("cubic", 1), ("bbr", 2), ("reno", 3))
        for rtt in ("10ms", "20ms")
    ]
    comparison = analysis.compare(a_run(tmp_path, points), by="flow.large.cc", measures=["completion_time"])
    pairs = {
        (row.pair.values, row.pair.point["path.rtt"]): (row.ccs, round(row.second.mean)) for row in comparison.rows
    }
    assert pairs == {
        (("cubic", other), rtt): (("cubic", other), seconds)
        for other, seconds in (("bbr", 2), ("reno", 3))
        for rtt in ("10ms", "20ms")
    }


def test_a_key_that_is_not_swept_is_reported_with_the_swept_ones(tmp_path: Path) -> None:
    run = a_run(tmp_path, [({"flow.large.cc": cc}, [1, 1]) for cc in ("cubic", "bbr")])
    with pytest.raises(ThalwegError, match=r"does not vary `flow\.large\.c`") as raised:
        analysis.compare(run, by="flow.large.c")
    assert "`flow.large.cc`" in raised.value.text()


def test_a_difference_within_the_tolerance_is_too_small(tmp_path: Path) -> None:
    first = a_run(tmp_path / "a", [({}, [1.00, 1.001, 0.999])])
    second = a_run(tmp_path / "b", [({}, [1.03, 1.031, 1.029])])
    assert only(analysis.compare(first, second)).verdict == "real"
    assert only(analysis.compare(first, second, tolerance=0.05)).verdict == "too small"
    assert only(analysis.compare(first, second, tolerance=0.02)).verdict == "real"


def test_an_inconclusive_difference_is_not_called_equal(tmp_path: Path) -> None:
    wide = a_run(tmp_path / "a", [({}, [1.0, 1.5, 0.5])])
    narrow = a_run(tmp_path / "b", [({}, [1.0, 1.01, 0.99])])
    same = a_run(tmp_path / "c", [({}, [1.01, 1.0, 0.99])])
    once = a_run(tmp_path / "d", [({}, [1.0])])
    assert only(analysis.compare(wide, narrow)).verdict == "not seen"
    assert only(analysis.compare(wide, narrow, tolerance=0.05)).verdict == "too few"
    assert only(analysis.compare(narrow, same, tolerance=0.05)).verdict == "not seen"
    assert only(analysis.compare(once, narrow)).verdict == "too few"
    runs, faster = (a_run(tmp_path / str(mean), [({}, [mean - 0.1, mean, mean + 0.1])]) for mean in (1.0, 0.8))
    # The interval is 39 % less to 4 % more.
    assert only(analysis.compare(runs, faster, tolerance=0.05)).verdict == "too few"


def test_significance_is_corrected_for_the_number_of_rows(tmp_path: Path) -> None:
    first = [({"path.rtt": f"{ms}ms"}, [1.0, 1.1, 1.2]) for ms in range(20)]
    second = [(first[0][0], [1.3, 1.4, 1.5]), *first[1:]]
    alone = [a_run(tmp_path / name, points[:1]) for name, points in (("a", first), ("b", second))]
    assert only(analysis.compare(*alone, measures=["completion_time"])).verdict == "real"
    runs = [a_run(tmp_path / name, points) for name, points in (("c", first), ("d", second))]
    comparison = analysis.compare(*runs, measures=["completion_time"])
    row = next(row for row in comparison.rows if row.pair.point["path.rtt"] == "0ms")
    assert row.difference.p is not None
    assert row.difference.p < 0.05
    assert row.p == pytest.approx(20 * row.difference.p)
    assert (row.verdict, comparison.real) == ("too few", [])


def test_a_run_is_not_different_from_itself(tmp_path: Path) -> None:
    run = a_run(tmp_path, [({}, [1.0, 1.1, 1.2])])
    comparison = analysis.compare(run, run, tolerance=0.5)
    assert {row.verdict for row in comparison.rows if row.change[1] is not None} == {"not seen"}


def test_the_largest_significant_difference_comes_first(tmp_path: Path) -> None:
    runs = []
    for name, lost in (("a", 0), ("b", 300)):
        synthetic = SyntheticRun(tmp_path / name, [experiment(0, repetition) for repetition in range(3)])
        for repetition in range(3):
            end_us = (1_000_000 if lost == 0 else 3_000_000) + repetition
            synthetic.transfer(0, repetition, end_us=end_us, retransmits=lost + repetition)
        runs.append(open_run(synthetic.write()))
    comparison = analysis.compare(*runs)
    assert [row.measure for row in comparison.real] == ["completion_time", "goodput", "retransmit_ratio"]
    ratio = only(comparison, "retransmit_ratio")
    assert ratio.change[0] == pytest.approx(0.3)
    assert not ratio.is_relative


def test_a_difference_from_zero_exceeds_any_ratio(tmp_path: Path) -> None:
    runs = []
    for name, timeouts in (("a", 0), ("b", 7)):
        synthetic = SyntheticRun(tmp_path / name, [experiment(0, repetition) for repetition in range(2)])
        for repetition in range(2):
            synthetic.transfer(0, repetition, timeouts=timeouts * (100 + repetition), segments=1000 + repetition)
        runs.append(open_run(synthetic.write()))
    row = only(analysis.compare(*runs, measures=["timeouts"]), "timeouts")
    assert (row.change[0], row.size, row.verdict) == (None, math.inf, "real")


def test_quantised_values_do_not_make_a_difference_significant(tmp_path: Path) -> None:
    runs = {}
    for name, timeouts, repetitions in (("a", 1, 2), ("b", 2, 2), ("c", 1, 4), ("d", 2, 4)):
        synthetic = SyntheticRun(tmp_path / name, [experiment(0, n) for n in range(repetitions)])
        for n in range(repetitions):
            synthetic.transfer(0, n, timeouts=timeouts, segments=1000 + n)
        runs[name] = open_run(synthetic.write())
    assert only(analysis.compare(runs["a"], runs["b"], measures=["timeouts"]), "timeouts").verdict == "too few"
    assert only(analysis.compare(runs["c"], runs["d"], measures=["timeouts"]), "timeouts").verdict == "real"
    assert only(analysis.compare(runs["a"], runs["c"], measures=["timeouts"]), "timeouts").verdict == "not seen"


def test_rows_of_only_one_side_are_listed(tmp_path: Path) -> None:
    first = a_run(tmp_path / "a", [({}, [1, 1.1])])
    second = a_run(tmp_path / "b", [({}, [1, 1.1])], name="other")
    comparison = analysis.compare(first, second, measures=["goodput"])
    assert comparison.rows == []
    assert comparison.alone == ["only A has goodput of large", "only B has goodput of other"]


@pytest.mark.parametrize("options", [{"measures": ["godput"]}, {"flows": ["larg"]}])
def test_unknown_names_are_refused_with_a_suggestion(tmp_path: Path, options: dict[str, Any]) -> None:
    run = a_run(tmp_path, [({}, [1, 1.1])])
    with pytest.raises(ThalwegError, match="unknown") as raised:
        analysis.compare(run, run, **options)
    assert "did you mean" in raised.value.text()


def test_a_share_differs_in_points(tmp_path: Path) -> None:
    runs = []
    for name, took in (("a", 1_000_000), ("b", 4_000_000)):
        synthetic = SyntheticRun(
            tmp_path / name, [experiment(0, n, flows=[flow("large"), flow("medium")]) for n in range(2)]
        )
        for n in range(2):
            synthetic.transfer(0, n, "large", end_us=1_000_000, acked_bytes=1_000_000)
            synthetic.transfer(0, n, "medium", end_us=took, acked_bytes=1_000_000 + took // 4 - 250_000 + n)
        runs.append(open_run(synthetic.write()))
    comparison = analysis.compare(*runs, measures=["share"], flows=["large"])
    assert only(comparison, "share").change[0] == pytest.approx(1 / 2.75 - 1 / 2, abs=1e-4), "from 50 % to 36 %"


def test_only_the_selected_flows_are_compared(tmp_path: Path) -> None:
    run = a_run(tmp_path, [({}, [1, 1.1])])
    assert {row.flow for row in analysis.compare(run, run, flows=["large"]).rows} == {"large"}


def test_both_directions_of_a_measure_change_alike() -> None:
    in_points = {name for name, measure in analysis.MEASURES.items() if measure.is_in_points}
    assert in_points >= {"share", "max_min_share", "jain", "utilisation"}
    both = [name for name in analysis.MEASURES if f"{name}_up" in analysis.MEASURES]
    assert [name for name in both if (name in in_points) != (f"{name}_up" in in_points)] == []
