"""Synchronised ProbeRTT of BBR flows, on synthetic windows."""

from pathlib import Path

import polars as pl
import pytest
from synthetic_runs import SyntheticRun, experiment, flow
from thalweg import analysis
from thalweg.results import open_run

SECOND = 1_000_000
"""Microseconds in a second."""


def in_step(synthetic: SyntheticRun) -> float | None:
    rows = analysis.repetitions(open_run(synthetic.write()), measures=["probe_rtt_sync"])
    assert rows.select("flow", "measure").rows() == [(None, "probe_rtt_sync")]
    return rows["value"].item()


def two_bbr_flows(directory: Path, windows: dict[str, dict[int, int]], *, second_cc: str = "bbr") -> SyntheticRun:
    """Return a run in which flow `a` starts immediately and `b` at 3 s; `windows` has their windows by second, 50
    packets otherwise.
    """
    synthetic = SyntheticRun(directory / "run", (experiment(flows=[flow("a"), flow("b")]),))
    for name, start, cc in (("a", 0, "bbr"), ("b", 3, second_cc)):
        synthetic.transfer(0, 0, name, cc=cc, start_us=start * SECOND, end_us=60 * SECOND)
        for second in range(start, 60):
            synthetic.sample(0, 0, second * SECOND, name, cwnd_packets=windows[name].get(second, 50))
    return synthetic


def test_synchronisation_is_the_first_sample_with_all_flows_in_probe_rtt(tmp_path: Path) -> None:
    synthetic = two_bbr_flows(tmp_path, {"a": {10: 4, 20: 4, 33: 4}, "b": {13: 4, 20: 4, 33: 4}})
    assert in_step(synthetic) == pytest.approx(17)


def test_synchronisation_counts_from_the_start_of_connections_not_of_their_later_transfers(tmp_path: Path) -> None:
    synthetic = two_bbr_flows(tmp_path, {"a": {20: 4}, "b": {20: 4}})
    synthetic.transfer(0, 0, "b", cc="bbr", transfer=1, start_us=40 * SECOND, end_us=60 * SECOND)
    assert in_step(synthetic) == pytest.approx(17)


def test_flows_that_never_coincide_are_not_synchronised(tmp_path: Path) -> None:
    assert in_step(two_bbr_flows(tmp_path, {"a": {10: 4, 20: 4}, "b": {13: 4, 23: 4}})) is None


def test_a_small_window_after_a_timeout_is_not_probe_rtt(tmp_path: Path) -> None:
    synthetic = two_bbr_flows(tmp_path, {"a": {10: 4}, "b": {}})
    synthetic.sample(0, 0, 10 * SECOND + 1, "b", cwnd_packets=1, ca_state="loss")
    synthetic.sample(0, 0, 10 * SECOND + 1, "a", cwnd_packets=4)
    assert in_step(synthetic) is None


def test_other_algorithms_do_not_count_and_one_bbr_flow_has_no_synchronisation(tmp_path: Path) -> None:
    assert in_step(two_bbr_flows(tmp_path, {"a": {10: 4}, "b": {10: 4}}, second_cc="cubic")) is None


def test_synchronisation_has_no_value_without_samples(tmp_path: Path) -> None:
    synthetic = SyntheticRun(tmp_path / "run", (experiment(sample_interval_ns=0),))
    synthetic.transfer(0, 0, cc="bbr")
    rows = analysis.repetitions(open_run(synthetic.write()))
    assert rows.filter(pl.col("measure") == "probe_rtt_sync")["value"].to_list() == [None]
