"""Measures, checked against manually computed results."""

import math
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from synthetic_runs import MS, SyntheticRun, an_id, experiment, flow, link
from thalweg import analysis
from thalweg.results import open_run


def run_of(*experiments: dict[str, Any], directory: Path) -> SyntheticRun:
    return SyntheticRun(directory / "run", experiments or (experiment(),))


def value(synthetic: SyntheticRun, measure: str, flow: str | None = "large", repetition: int = 0) -> float | None:
    values = analysis.repetitions(open_run(synthetic.write()))
    rows = values.filter(
        pl.col("measure") == measure, pl.col("flow").eq_missing(pl.lit(flow)), pl.col("repetition") == repetition
    )
    assert rows.height == 1, f"{measure} of {flow}: {rows}"
    return rows["value"].item()


def test_goodput_of_a_flow_spans_first_start_to_last_end_with_pauses(
    tmp_path: Path,
) -> None:
    synthetic = run_of(directory=tmp_path)
    synthetic.transfer(0, 0, connection=0, start_us=1_000_000, end_us=2_000_000, acked_bytes=1_000_000)
    synthetic.transfer(0, 0, connection=1, start_us=4_000_000, end_us=5_000_000, acked_bytes=1_000_000)
    assert value(synthetic, "goodput") == 2_000_000 * 8 / 4
    assert value(synthetic, "transfer_goodput") == 8_000_000


def test_only_flow_goodput_counts_truncated_transfers(tmp_path: Path) -> None:
    synthetic = run_of(directory=tmp_path)
    synthetic.transfer(0, 0, connection=0, end_us=1_000_000, acked_bytes=1_000_000)
    synthetic.transfer(
        0,
        0,
        connection=1,
        start_us=1_000_000,
        end_us=2_000_000,
        acked_bytes=500_000,
        size_bytes=1_000_000,
        completed=False,
    )
    assert value(synthetic, "goodput") == 6_000_000
    assert value(synthetic, "transfer_goodput") == 8_000_000
    assert value(synthetic, "transfers") == 2
    assert value(synthetic, "completed") == 1


def test_an_unlimited_transfer_has_a_goodput_and_no_completion_time(tmp_path: Path) -> None:
    synthetic = run_of(directory=tmp_path)
    synthetic.transfer(0, 0, size_bytes=None, completed=False, end_us=2_000_000, acked_bytes=1_000_000)
    assert value(synthetic, "transfer_goodput") == 4_000_000
    assert value(synthetic, "completion_time") is None
    assert value(synthetic, "completion_time_p95") is None


def test_completion_times_have_mean_median_and_95th_percentile_over_completed_transfers(tmp_path: Path) -> None:
    synthetic = run_of(directory=tmp_path)
    for connection, seconds in enumerate([1, 2, 3, 10]):
        synthetic.transfer(0, 0, connection=connection, end_us=seconds * 1_000_000)
    synthetic.transfer(0, 0, connection=4, end_us=99_000_000, completed=False)
    assert value(synthetic, "completion_time") == 4.0
    assert value(synthetic, "completion_time_p50") == 2.5
    assert value(synthetic, "completion_time_p95") == pytest.approx(
        3 + 0.85 * 7
    )  # the 95th percentile is at rank 2.85 of 0..3


def test_retransmit_ratio_is_over_all_segments_of_the_flow(tmp_path: Path) -> None:
    synthetic = run_of(directory=tmp_path)
    synthetic.transfer(0, 0, connection=0, segments=900, retransmits=0, timeouts=1)
    synthetic.transfer(0, 0, connection=1, segments=100, retransmits=50, timeouts=2)
    assert value(synthetic, "retransmit_ratio") == 0.05
    assert value(synthetic, "retransmits") == 50
    assert value(synthetic, "timeouts") == 3


def test_retransmissions_that_packets_do_not_show_are_unknown_and_not_zero(tmp_path: Path) -> None:
    made = run_of(directory=tmp_path)
    made.transfer(0, 0, segments=1000, retransmits=None)
    assert value(made, "retransmits") is None
    assert value(made, "retransmit_ratio") is None


def test_a_flow_that_sent_nothing_has_no_retransmit_ratio(tmp_path: Path) -> None:
    synthetic = run_of(directory=tmp_path)
    synthetic.transfer(0, 0, segments=0, acked_bytes=0, completed=False, end_us=0)
    assert value(synthetic, "retransmit_ratio") is None
    assert value(synthetic, "goodput") is None
    assert value(synthetic, "share") is None


def test_share_is_relative_to_all_flows_of_the_experiment(tmp_path: Path) -> None:
    synthetic = run_of(experiment(0, 0), experiment(0, 1), directory=tmp_path)
    for repetition in range(2):
        synthetic.transfer(0, repetition, "large", acked_bytes=3_000_000)
        synthetic.transfer(0, repetition, "medium", acked_bytes=1_000_000)
    assert value(synthetic, "share", "large") == 0.75
    assert value(synthetic, "share", "medium", repetition=1) == 0.25


def test_mean_rtt_weights_transfers_by_segments(tmp_path: Path) -> None:
    synthetic = run_of(directory=tmp_path)
    synthetic.transfer(0, 0, connection=0, segments=300, rtt_mean_us=40_000.0, rtt_min_us=30_000.0)
    synthetic.transfer(0, 0, connection=1, segments=100, rtt_mean_us=80_000.0, rtt_min_us=35_000.0)
    synthetic.transfer(0, 0, connection=2, segments=900, rtt_mean_us=None, rtt_min_us=None)
    assert value(synthetic, "rtt_mean") == pytest.approx(0.050)
    assert value(synthetic, "rtt_min") == pytest.approx(0.030)


def test_utilisation_is_bytes_sent_over_bytes_possible_over_the_whole_experiment(tmp_path: Path) -> None:
    synthetic = run_of(directory=tmp_path)
    synthetic.transfer(0, 0)
    synthetic.queue(0, 0, 0, sent_bytes=100, capacity_bytes=0)
    synthetic.queue(0, 0, 500_000, sent_bytes=100, capacity_bytes=500)
    synthetic.queue(0, 0, 1_000_000, sent_bytes=850, capacity_bytes=1000)
    assert value(synthetic, "utilisation", None) == 0.75


def test_utilisation_while_active_ends_with_the_flow_and_interpolates_between_samples(tmp_path: Path) -> None:
    synthetic = run_of(directory=tmp_path)
    synthetic.transfer(0, 0, "large", start_us=550_000, end_us=2_000_000)
    synthetic.transfer(0, 0, "medium", start_us=0, end_us=4_000_000)
    for t_us in range(0, 4_000_001, 100_000):  # busy for two seconds, then idle
        synthetic.queue(0, 0, t_us, sent_bytes=min(t_us, 2_000_000), capacity_bytes=t_us)
    assert value(synthetic, "utilisation_while_active", "large") == 1.0
    assert value(synthetic, "utilisation_while_active", "medium") == 0.5
    assert value(synthetic, "utilisation", None) == 0.5


def test_the_time_between_samples_is_not_judged(tmp_path: Path) -> None:
    synthetic = run_of(directory=tmp_path)
    # Both transfers keep the link busy; `medium` spans fewer than nine intervals between samples.
    synthetic.transfer(0, 0, "large", start_us=0, end_us=90_000)
    synthetic.transfer(0, 0, "medium", start_us=1_005_000, end_us=1_085_000)
    for t_us in range(0, 2_000_001, 10_000):
        sent = min(t_us, 90_000) + min(max(t_us - 1_005_000, 0), 80_000)
        synthetic.queue(0, 0, t_us, sent_bytes=sent, capacity_bytes=t_us)
    assert value(synthetic, "utilisation_while_active", "large") == 1.0
    assert value(synthetic, "utilisation_while_active", "medium") is None


@pytest.mark.parametrize(("intervals", "delay"), [(9, None), (10, 0.02)])
def test_queueing_delay_needs_traffic_between_ten_samples(tmp_path: Path, intervals: int, delay: float | None) -> None:
    synthetic = run_of(directory=tmp_path)
    synthetic.transfer(0, 0)
    for sample in range(100):
        sent = min(sample, intervals) * 1000
        synthetic.queue(0, 0, sample * 10_000, sent_bytes=sent, backlog_bytes=2000 if 0 < sample <= intervals else 0)
    assert value(synthetic, "queueing_delay", None) == (None if delay is None else pytest.approx(delay))


def test_the_reverse_link_does_not_count(tmp_path: Path) -> None:
    synthetic = run_of(directory=tmp_path)
    synthetic.transfer(0, 0)
    for second in range(3):
        synthetic.queue(0, 0, second * 1_000_000, capacity_bytes=second * 10, sent_bytes=second * 5)
        synthetic.queue(0, 0, second * 1_000_000, link="reverse", capacity_bytes=None, sent_bytes=second * 99)
    assert value(synthetic, "utilisation", None) == 0.5


def test_a_link_without_limit_has_no_utilisation(tmp_path: Path) -> None:
    synthetic = run_of(directory=tmp_path)
    synthetic.transfer(0, 0)
    for second in range(3):
        synthetic.queue(0, 0, second * 1_000_000, capacity_bytes=None, sent_bytes=second * 10)
    assert value(synthetic, "utilisation", None) is None
    assert value(synthetic, "utilisation_while_active") is None


def test_queueing_delay_includes_link_outages(tmp_path: Path) -> None:
    synthetic = run_of(directory=tmp_path)
    synthetic.transfer(0, 0)
    # 1000 bytes wait for two seconds; the link is stopped in one of them, and 500 bytes leave in the other: 2000 byte
    # seconds over 500 bytes are 4 s.
    for tenth in range(21):
        sent = max(tenth - 10, 0) * 50
        synthetic.queue(0, 0, tenth * 100_000, backlog_bytes=1000, sent_bytes=sent, dropped_packets=7 * (tenth == 20))
    assert value(synthetic, "queueing_delay", None) == pytest.approx(4.0)
    assert value(synthetic, "drops", None) == 7


def test_the_interval_is_students_t_on_the_repetitions(tmp_path: Path) -> None:
    synthetic = run_of(*(experiment(0, repetition) for repetition in range(3)), directory=tmp_path)
    for repetition, seconds in enumerate([1, 2, 6]):
        synthetic.transfer(0, repetition, end_us=seconds * 1_000_000)
    summary = analysis.summary(open_run(synthetic.write()))
    row = summary.filter(measure="completion_time").row(0, named=True)
    # mean 3, s = sqrt((4 + 1 + 9) / 2) = sqrt(7), t(0.975, 2) = 4.3027 (tables of the t distribution)
    half = 4.302653 * math.sqrt(7) / math.sqrt(3)
    assert (row["n"], row["mean"], row["median"]) == (3, 3.0, 2.0)
    assert row["low"] == pytest.approx(3 - half, rel=1e-6)
    assert row["high"] == pytest.approx(3 + half, rel=1e-6)
    assert row["unit"] == "s"


def test_one_repetition_has_a_mean_and_no_interval(tmp_path: Path) -> None:
    synthetic = run_of(directory=tmp_path)
    synthetic.transfer(0, 0)
    row = analysis.summary(open_run(synthetic.write())).filter(measure="goodput").row(0, named=True)
    assert (row["n"], row["mean"], row["low"], row["high"]) == (1, 8_000_000, None, None)


def test_repetitions_without_a_value_do_not_count(tmp_path: Path) -> None:
    synthetic = run_of(*(experiment(0, repetition) for repetition in range(3)), directory=tmp_path)
    synthetic.transfer(0, 0, end_us=1_000_000)
    synthetic.transfer(0, 1, end_us=3_000_000)
    synthetic.transfer(0, 2, completed=False)
    row = analysis.summary(open_run(synthetic.write())).filter(measure="completion_time").row(0, named=True)
    assert (row["n"], row["mean"]) == (2, 2.0)


def test_summary_has_the_sweep_in_the_order_of_the_scenario_and_flows_before_the_path(tmp_path: Path) -> None:
    points = [("cubic", "8bdp"), ("cubic", "0.5bdp"), ("bbr", "8bdp"), ("bbr", "0.5bdp")]
    synthetic = run_of(
        *(
            experiment(number, sweep={"flow.a.cc": cc, "path.buffer": buffer}, flows=[flow("z", cc), flow("a", cc)])
            for number, (cc, buffer) in enumerate(points)
        ),
        directory=tmp_path,
    )
    for number, (cc, _) in enumerate(points):
        for name in ("a", "z"):
            synthetic.transfer(number, 0, name, cc=cc)
        synthetic.queue(number, 0, 0)
        synthetic.queue(number, 0, 1_000_000, sent_bytes=1000)
    summary = analysis.summary(open_run(synthetic.write()))
    assert summary.columns == [
        "experiment", "flow.a.cc", "path.buffer", "flow", "cc", "measure", "unit", "n", "mean", "low", "high", "median",
        "copies",
    ]  # fmt: skip
    assert summary["flow"].unique(maintain_order=True).to_list() == ["z", "a", None]
    assert summary.select("flow.a.cc", "path.buffer").unique(maintain_order=True).rows() == points
    assert summary.filter(experiment=2, flow="z")["cc"].unique().to_list() == ["bbr"]
    assert set(summary["measure"]) <= set(analysis.MEASURES)


def test_untrustworthy_experiments_are_excluded_from_the_numbers(tmp_path: Path) -> None:
    synthetic = run_of(experiment(0, 0), experiment(0, 1), directory=tmp_path)
    synthetic.transfer(0, 0, end_us=1_000_000)
    synthetic.transfer(0, 1, end_us=9_000_000, untrustworthy="the host was busy")
    row = analysis.summary(open_run(synthetic.write())).filter(measure="completion_time").row(0, named=True)
    assert (row["n"], row["mean"]) == (1, 1.0)


def test_status_counts_what_is_finished_failed_and_missing(tmp_path: Path) -> None:
    synthetic = run_of(*(experiment(0, repetition) for repetition in range(4)), directory=tmp_path)
    synthetic.transfer(0, 0, untrustworthy="the host was busy")
    synthetic.transfer(0, 1)
    synthetic.events = [
        {"event": "failed", "id": an_id(0, 1), "code": "once", "message": "a later try went well"},
        {"event": "failed", "id": an_id(0, 2), "code": "no-room", "message": "disk full"},
    ]
    status = analysis.status(open_run(synthetic.write()))
    assert (status.expected, status.finished, status.missing) == (4, 2, 1)
    assert [(failure.repetition, failure.code) for failure in status.failures] == [(2, "no-room")]
    assert [mark.reason for mark in status.untrustworthy] == ["the host was busy"]


def test_timeouts_not_reported_by_an_engine_have_no_value(tmp_path: Path) -> None:
    synthetic = run_of(experiment(0, 0), experiment(0, 1), directory=tmp_path)
    synthetic.transfer(0, 0, timeouts=None)
    synthetic.transfer(0, 1, timeouts=2)
    row = analysis.summary(open_run(synthetic.write())).filter(measure="timeouts").row(0, named=True)
    assert (row["n"], row["mean"]) == (1, 2.0)


def test_engine_self_measurements_have_a_median_and_a_maximum(tmp_path: Path) -> None:
    synthetic = run_of(*(experiment(0, repetition) for repetition in range(4)), directory=tmp_path)
    for repetition, late in enumerate((50.0, 90.0, 70.0, 4000.0)):
        synthetic.transfer(0, repetition)
        own = {"late_us": late} | ({"lost_packets": 3} if repetition == 2 else {})
        synthetic.events.append({"event": "finished", "id": an_id(0, repetition), "measured": own})
    assert analysis.measured(open_run(synthetic.write())) == [
        analysis.OwnMeasure("late_us", 4, 80.0, 4000.0),
        analysis.OwnMeasure("lost_packets", 1, 3.0, 3.0),
    ]


def test_identical_repetitions_are_detected(tmp_path: Path) -> None:
    synthetic = run_of(experiment(0, 0), experiment(0, 1), directory=tmp_path)
    synthetic.transfer(0, 0)
    synthetic.transfer(0, 1)
    copies = open_run(synthetic.write())
    assert analysis.copied(copies) == {0}
    row = analysis.summary(copies).row(0, named=True)
    assert (row["n"], row["low"], row["high"], row["copies"]) == (2, None, None, True)
    synthetic.transfer(0, 1, connection=1, retransmits=1)
    assert not analysis.copied(open_run(synthetic.write()))


def test_equal_repetitions_are_not_called_deterministic(tmp_path: Path) -> None:
    """Random loss can miss short transfers, and a random start only shifts them."""
    lossy = link(loss={"kind": "bernoulli", "ratio": 1e-6})
    synthetic = run_of(*(experiment(0, n, forward=lossy, start_jitter_ns=MS) for n in (0, 1)), directory=tmp_path)
    synthetic.transfer(0, 0)
    synthetic.transfer(0, 1)
    assert analysis.copies_caution(open_run(synthetic.write())) == (
        "the repetitions are copies of one another: no random event changed them, so there is no interval"
        " (start_jitter alone only shifts them; use path.jitter, or more random loss)"
    )


@pytest.mark.parametrize(
    ("values", "order", "is_ordered"),
    [
        (["10bdp", "0.5bdp", "2bdp"], ["0.5bdp", "2bdp", "10bdp"], True),
        (["1Gbps", "5Mbps", "40Mbps"], ["5Mbps", "40Mbps", "1Gbps"], True),
        (["1MiB", "1MB", "100kB"], ["100kB", "1MB", "1MiB"], True),
        (["1s", "45ms"], ["45ms", "1s"], True),
        ([0.5, 0.1], [0.1, 0.5], True),
        (["cubic", "bbr"], ["cubic", "bbr"], False),
        (["1bdp", "100kB"], ["1bdp", "100kB"], False),
        ([True, False], [True, False], False),
    ],
)
def test_axes_sort_quantities_of_one_kind_and_leave_the_rest_as_written(
    values: list[Any], order: list[Any], is_ordered: bool
) -> None:
    (axis,) = analysis.axes(pl.DataFrame({"key": values}), ["key"])
    assert (list(axis.values), axis.is_ordered) == (order, is_ordered)


def test_a_key_with_one_value_is_not_an_axis() -> None:
    assert analysis.axes(pl.DataFrame({"key": ["1bdp", "1bdp"]}), ["key"]) == []


def test_every_measure_is_documented_with_its_unit_and_definition() -> None:
    page = (Path(__file__).parents[3] / "docs/reference/analysis.md").read_text()
    text = " ".join(page.split())
    for measure in analysis.MEASURES.values():
        if measure.name.endswith("_up"):
            assert f"`{measure.name}`" in text, f"docs/reference/analysis.md: {measure.name} is missing"
            continue
        assert f"| `{measure.name}` | {measure.unit} |" in text, (
            f"docs/reference/analysis.md: no row for {measure.name}"
        )
        assert measure.about in text, f"docs/reference/analysis.md: definition of {measure.name} differs"


def test_the_page_lists_the_measures_available_in_windows() -> None:
    page = (Path(__file__).parents[3] / "docs/reference/analysis.md").read_text()
    sentence = re.sub(r"\s+", " ", page.split("## Within a window")[1].split("Times count from")[0])
    named = set(re.findall(r"`([a-z_0-9]+)`", sentence))
    expected = {measure.name for measure in analysis.MEASURES.values() if measure.in_window}
    assert expected <= named | {"queueing_delay_p50", "queueing_delay_p95"}  # documented as "with its quantiles"
    assert named <= expected


def test_start_jitter_does_not_affect_path_measures(tmp_path: Path) -> None:
    synthetic = run_of(experiment(0, 0, start_jitter_ns=45 * MS), directory=tmp_path)
    synthetic.transfer(0, 0, start_us=40_000, end_us=1_040_000)
    for t_us in range(0, 1_040_001, 40_000):
        synthetic.queue(0, 0, t_us, sent_bytes=max(0, t_us - 40_000) * 5)
    assert value(synthetic, "utilisation_while_active") == pytest.approx(1.0, abs=0.05)
