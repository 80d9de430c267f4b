"""Time series, thinning and distributions."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from synthetic_runs import SyntheticRun, experiment
from thalweg import analysis
from thalweg.analysis.tables.thin import peaks
from thalweg.results import open_run


def test_a_spike_of_one_sample_survives_thinning() -> None:
    t = np.arange(10_000.0)
    y = np.zeros(10_000)
    y[6_543] = 9
    keep = peaks(t, y, 100)
    assert len(keep) <= 100
    assert 6_543 in keep
    assert keep[0] == 0
    assert keep[-1] == 9_999


@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=400), st.integers(4, 60))
def test_thinning_keeps_extremes_ends_and_order_and_never_exceeds_the_limit(values: list[float], limit: int) -> None:
    y = np.array(values)
    keep = peaks(np.arange(len(y), dtype=float), y, limit)
    assert len(keep) <= max(limit, 4)
    assert list(keep) == sorted(set(keep.tolist()))
    assert {0, len(y) - 1} <= set(keep.tolist())
    assert y[keep].max() == y.max()
    assert y[keep].min() == y.min()


def two_connections(directory: Path) -> SyntheticRun:
    synthetic = SyntheticRun(directory / "run", [experiment()])
    synthetic.transfer(0, 0)
    for t_ms in range(0, 1001, 10):  # 1 MB in a second
        synthetic.sample(0, 0, t_ms * 1000, acked_bytes=t_ms * 1000, cwnd_packets=20)
    for t_ms in range(1500, 2001, 10):  # 1 MB in half a second
        synthetic.sample(0, 0, t_ms * 1000, connection=1, acked_bytes=(t_ms - 1500) * 2000, cwnd_packets=40)
    return synthetic


def test_rate_is_that_of_the_acknowledged_bytes_and_zero_between_connections(tmp_path: Path) -> None:
    (series,) = analysis.series(open_run(two_connections(tmp_path).write()), [(0, 0)], limit=8)
    (line,) = series.lines["rate"]
    assert line.t_s == [0.125, 0.375, 0.625, 0.875, 1.125, 1.375, 1.625, 1.875]
    assert line.value == pytest.approx([8e6, 8e6, 8e6, 8e6, 0, 0, 16e6, 16e6])


def test_an_unlimited_pacing_rate_is_empty(tmp_path: Path) -> None:
    synthetic = SyntheticRun(tmp_path / "run", [experiment()])
    synthetic.transfer(0, 0)
    for t_us, rate_bps in ((0, 2**64 - 1), (1000, 5_000_000), (2000, None), (3000, 6_000_000)):
        synthetic.sample(0, 0, t_us, pacing_rate_bps=rate_bps)
    (series,) = analysis.series(open_run(synthetic.write()), [(0, 0)], quantities=["pacing_rate"])
    (line,) = series.lines["pacing_rate"]
    assert (line.t_s, line.value) == ([0.001, 0.003], [5e6, 6e6])


def test_windows_have_a_line_per_connection_up_to_a_maximum(tmp_path: Path) -> None:
    run = open_run(two_connections(tmp_path).write())
    (series,) = analysis.series(run, [(0, 0)])
    assert [set(line.value) for line in series.lines["cwnd"]] == [{20}, {40}]
    assert (series.connections, series.connections_drawn) == (2, 2)
    (cut,) = analysis.series(run, [(0, 0)], max_connections=1)
    assert [set(line.value) for line in cut.lines["cwnd"]] == [{20}]
    assert (cut.connections, cut.connections_drawn) == (2, 1)


def test_queue_series_has_backlog_and_drop_times(tmp_path: Path) -> None:
    synthetic = two_connections(tmp_path)
    for t_ms, backlog, dropped in [(0, 0, 0), (100, 3000, 0), (200, 6000, 4), (300, 0, 4)]:
        synthetic.queue(0, 0, t_ms * 1000, backlog_bytes=backlog, dropped_packets=dropped)
        synthetic.queue(0, 0, t_ms * 1000, link="reverse", backlog_bytes=77)
    (series,) = analysis.series(open_run(synthetic.write()), [(0, 0)])
    assert series.lines["queue"][0].value == [0, 3000, 6000, 0]
    assert series.drops_s == [0.2]


def test_connection_series_have_units_for_every_quantity(tmp_path: Path) -> None:
    synthetic = SyntheticRun(tmp_path / "run", [experiment()])  # 40 Mbit/s and 45 ms: a BDP of 225 kB, 150 packets
    synthetic.transfer(0, 0)
    for t_us in (0, 100_000):
        synthetic.sample(0, 0, t_us, inflight_packets=300, pacing_rate_bps=50_000_000, srtt_us=60_000)
        synthetic.state(0, 0, t_us, "bw_bps", 38e6)
        synthetic.state(0, 0, t_us, "pacing_gain", 1.25)
        synthetic.state(0, 0, t_us, "round", 7)
    (series,) = analysis.series(open_run(synthetic.write()), [(0, 0)])
    of = {name: [line.value for line in lines] for name, lines in series.lines.items()}
    assert of["inflight_bdp"] == [[2, 2]]
    assert of["pacing_rate"] == [[50e6, 50e6]]
    assert of["rtt"] == [[0.06, 0.06]]
    assert of["bandwidth"] == [[38e6, 38e6]]
    assert of["gain"] == [[1.25, 1.25]]


def test_sparse_recording_yields_the_same_curve(
    tmp_path: Path,
) -> None:
    steps = [(5, 2.9), (8, 1.0), (15, 1.25), (18, 1.0)]

    def gain(directory: Path, state_s: list[int]) -> list[analysis.Line]:
        synthetic = SyntheticRun(directory, [experiment()])
        synthetic.transfer(0, 0)
        for t_s in range(20):
            synthetic.sample(0, 0, t_s * 1_000_000)
            synthetic.sample(0, 0, t_s * 1_000_000, connection=1)
        for t_s in state_s:
            synthetic.state(0, 0, t_s * 1_000_000, "pacing_gain", [value for since, value in steps if since <= t_s][-1])
        (series,) = analysis.series(open_run(synthetic.write()), [(0, 0)], quantities=["gain"])
        return series.lines["gain"]

    (line,) = of_changes = gain(tmp_path / "changes", [since for since, _ in steps])
    assert line.t_s == list(range(5, 20)), "until the last sample, and not before the first value"
    assert line.value == [2.9] * 3 + [1.0] * 7 + [1.25] * 3 + [1.0] * 2
    assert of_changes == gain(tmp_path / "samples", list(range(5, 20))), "runs of older engines"


def test_only_requested_columns_are_read(tmp_path: Path) -> None:
    run = open_run(two_connections(tmp_path).write())
    (series,) = analysis.series(run, [(0, 0)], quantities=["cwnd"])
    assert list(series.lines) == ["cwnd"]


def test_a_run_without_time_series_has_empty_ones(tmp_path: Path) -> None:
    synthetic = SyntheticRun(tmp_path / "run", [experiment(sample_interval_ns=0)])
    synthetic.transfer(0, 0)
    run = open_run(synthetic.write())
    (series,) = analysis.series(run, [(0, 0)])
    assert set(series.lines) == set(analysis.QUANTITIES)
    assert not any(series.lines.values())
    assert analysis.rtt_distributions(run).height == 0


def test_the_typical_repetition_has_the_median_goodput(tmp_path: Path) -> None:
    synthetic = SyntheticRun(tmp_path / "run", [experiment(0, repetition) for repetition in range(3)])
    for repetition, seconds in enumerate([5, 1, 3]):
        synthetic.transfer(0, repetition, end_us=seconds * 1_000_000)
    assert analysis.typical_repetitions(analysis.repetitions(open_run(synthetic.write())), "large") == {0: 2}


def test_distributions_pool_the_transfers_of_all_repetitions_sorted(tmp_path: Path) -> None:
    synthetic = SyntheticRun(tmp_path / "run", [experiment(0, 0), experiment(0, 1)])
    synthetic.transfer(0, 0, end_us=3_000_000, connection=0)
    synthetic.transfer(0, 0, end_us=1_000_000, connection=1)
    synthetic.transfer(0, 1, end_us=2_000_000)
    synthetic.transfer(0, 1, connection=1, completed=False)
    synthetic.sample(0, 0, 0, srtt_us=60_000)
    synthetic.sample(0, 1, 0, srtt_us=50_000)
    run = open_run(synthetic.write())
    transfers = {row[2]: row[3] for row in analysis.transfer_distributions(run).iter_rows()}
    assert transfers == {"completion_time": [1.0, 2.0, 3.0], "transfer_goodput": pytest.approx([8e6 / 3, 4e6, 8e6])}
    assert analysis.rtt_distributions(run)["values"].to_list() == [[0.05, 0.06]]


def test_a_thinned_distribution_keeps_its_percentiles_and_both_ends(tmp_path: Path) -> None:
    synthetic = SyntheticRun(tmp_path / "run", [experiment()])
    for connection in range(1001):
        synthetic.transfer(0, 0, connection=connection, end_us=1_000_000 + 1000 * connection)
    transfers = analysis.transfer_distributions(open_run(synthetic.write())).filter(measure="completion_time")
    values = transfers["values"][0].to_list()
    assert len(values) == 101
    assert (values[0], values[50], values[100]) == pytest.approx((1.0, 1.5, 2.0))
