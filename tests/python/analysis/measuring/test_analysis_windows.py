"""Measures within a time window, and the time series behind them, checked against manually computed results."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from synthetic_runs import SyntheticRun, experiment, flow
from thalweg import analysis
from thalweg.errors import ThalwegError
from thalweg.results import open_run

SECOND = 1_000_000
"""Microseconds in a second."""


def run_of(*experiments: dict[str, Any], directory: Path) -> SyntheticRun:
    return SyntheticRun(directory / "run", experiments or (experiment(),))


def value(
    synthetic: SyntheticRun, measure: str, window: tuple[float, float] | None, flow: str | None = "large"
) -> float | None:
    rows = analysis.repetitions(open_run(synthetic.write()), window).filter(
        pl.col("measure") == measure, pl.col("flow").eq_missing(pl.lit(flow))
    )
    assert rows.height == 1, f"{measure} of {flow}: {rows}"
    return rows["value"].item()


def two_flows(directory: Path) -> SyntheticRun:
    """Return a run in which `large` gets 1 MB in each of ten seconds, and `late` 0.5 MB in each from second 5 on, with
    samples every second.
    """
    synthetic = run_of(experiment(flows=[flow(), flow("late")]), directory=directory)
    synthetic.transfer(0, 0, end_us=10 * SECOND, acked_bytes=10_000_000, segments=10_000, retransmits=100)
    synthetic.transfer(
        0, 0, "late", cc="bbr", start_us=5 * SECOND, end_us=10 * SECOND, acked_bytes=2_500_000, segments=2500
    )
    for second in range(11):
        counted = {"acked_bytes": second * 1_000_000, "segments": second * 1000, "retransmits": second * 10}
        synthetic.sample(0, 0, second * SECOND, **counted, srtt_us=50_000 + second * 1000, cwnd_packets=second)
        synthetic.queue(0, 0, second * SECOND, sent_bytes=second * 2_500_000, dropped_packets=second)
    for second in range(5, 11):
        synthetic.sample(0, 0, second * SECOND, "late", acked_bytes=(second - 5) * 500_000, segments=(second - 5) * 500)
    return synthetic


def test_a_window_interpolates_between_samples(tmp_path: Path) -> None:
    synthetic = two_flows(tmp_path)
    assert value(synthetic, "goodput", (5.5, 7.25)) == pytest.approx(8e6)
    assert value(synthetic, "goodput", (5.5, 7.25), "late") == pytest.approx(4e6)
    assert value(synthetic, "share", (5.5, 7.25)) == pytest.approx(2 / 3)
    assert value(synthetic, "retransmits", (5.5, 7.5)) == pytest.approx(20)
    assert value(synthetic, "retransmit_ratio", (5.5, 7.5)) == pytest.approx(0.01)
    assert value(synthetic, "utilisation", (5.5, 7.5), None) == pytest.approx(0.5)
    assert value(synthetic, "drops", (5.5, 7.5), None) == pytest.approx(2)
    assert value(synthetic, "jain", (5.5, 7.5), None) == pytest.approx((1 + 0.5) ** 2 / (2 * (1 + 0.25)))


def test_a_window_counts_all_connections_and_copies_of_a_flow(tmp_path: Path) -> None:
    synthetic = run_of(experiment(flows=[flow(count=2)]), directory=tmp_path)
    for copy, connection in ((0, 0), (0, 1), (1, 0)):
        start_us = connection * SECOND
        synthetic.transfer(0, 0, copy=copy, connection=connection, start_us=start_us, end_us=start_us + SECOND)
    synthetic.sample(0, 0, 0)
    assert value(synthetic, "goodput", (0, 2)) == 3_000_000 * 8 / 2
    assert value(synthetic, "goodput", (1, 2)) == 1_000_000 * 8


def test_goodput_in_a_window_uses_the_active_time(tmp_path: Path) -> None:
    synthetic = two_flows(tmp_path)
    assert value(synthetic, "goodput", (0, 9), "late") == pytest.approx(4e6)
    assert value(synthetic, "goodput", (8, 99)) == pytest.approx(8e6)


def test_rtts_and_windows_of_a_time_window_use_only_its_samples(tmp_path: Path) -> None:
    synthetic = two_flows(tmp_path)
    assert value(synthetic, "rtt_p50", (2, 6)) == pytest.approx(0.054)
    assert value(synthetic, "rtt_p95", (2, 6)) == pytest.approx(0.0558)  # at rank 3.8 of 52, 53, ... 56 ms
    assert value(synthetic, "latency_under_load", (2, 6)) == pytest.approx(0.0108)  # the empty path takes 45 ms
    assert value(synthetic, "cwnd_mean", (2, 6)) == 4
    assert value(synthetic, "cwnd_mean", None) == 5


def test_the_largest_delivery_rate_is_that_of_any_connection_within_the_window(tmp_path: Path) -> None:
    synthetic = run_of(experiment(), directory=tmp_path)
    synthetic.transfer(0, 0, end_us=9_000_000)
    for second, connection, rate_bps in ((1, 0, 5_000_000), (2, 1, 7_000_000), (3, 0, None), (4, 0, 9_000_000)):
        synthetic.sample(0, 0, second * 1_000_000, connection=connection, delivery_rate_bps=rate_bps)
    assert value(synthetic, "delivery_rate_max", (0, 3)) == 7e6
    assert value(synthetic, "delivery_rate_max", None) == 9e6


def test_a_flow_that_is_not_active_in_a_window_has_no_row_there(tmp_path: Path) -> None:
    rows = analysis.repetitions(open_run(two_flows(tmp_path).write()), (1, 4))
    assert rows["flow"].drop_nulls().unique().to_list() == ["large"]
    assert rows.filter(measure="jain")["value"].to_list() == [None]


def test_a_window_after_the_end_has_no_values(tmp_path: Path) -> None:
    rows = analysis.repetitions(open_run(two_flows(tmp_path).write()), (20, 30))
    assert rows["value"].drop_nulls().is_empty()


def test_without_samples_only_whole_run_measures_have_values(tmp_path: Path) -> None:
    synthetic = run_of(experiment(sample_interval_ns=0), directory=tmp_path)
    synthetic.transfer(0, 0)
    run = open_run(synthetic.write())
    assert analysis.repetitions(run, (0, 1)).is_empty()
    values = dict(analysis.repetitions(run).select("measure", "value").iter_rows())
    assert (values["goodput"], values["rtt_p95"]) == (8_000_000, pytest.approx(0.06))
    assert [values[name] for name in ("stability", "inflight_bdp", "cwnd_mean")] == [None, None, None]


def test_only_requested_columns_are_read(tmp_path: Path) -> None:
    synthetic = two_flows(tmp_path)
    run = open_run(synthetic.write())
    for file in (*(run.path / "samples").iterdir(), *(run.path / "queue").iterdir()):
        file.write_bytes(b"no table")
    rows = analysis.repetitions(run, measures=["goodput", "jain"])
    assert rows.select("flow", "measure").rows() == [("large", "goodput"), ("late", "goodput"), (None, "jain")]


@pytest.mark.parametrize("window", [(5, 5), (6, 5), (-1, 5)])
def test_a_window_without_length_is_refused(tmp_path: Path, window: tuple[float, float]) -> None:
    with pytest.raises(ThalwegError, match="has no length"):
        analysis.repetitions(open_run(two_flows(tmp_path).write()), window)
