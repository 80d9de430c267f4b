"""Fairness among parallel copies, and connections that never delivered a byte."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from synthetic_runs import SyntheticRun, experiment, flow, link
from thalweg import analysis
from thalweg.results import Run, open_run

Thalweg = Callable[..., Any]


def measure_of(run: Run, measure: str, name: str = "large") -> float | None:
    rows = analysis.summary(run).filter(measure=measure, flow=name)
    return float(rows["mean"].item()) if rows.height else None


def unfair_run(directory: Path, sweep: dict[str, Any] | None = None) -> SyntheticRun:
    """Return a run with five copies, of which the last three never deliver data, and a flow of one copy that does."""
    flows = [flow("large", size_bytes=None, count=5), flow("medium")]
    synthetic = SyntheticRun(directory, [experiment(0, n, sweep=sweep or {}, flows=flows) for n in range(2)])
    for n in range(2):
        for copy in range(5):
            acked = 1_000_000 if copy < 2 else 0
            synthetic.transfer(0, n, copy=copy, acked_bytes=acked, completed=False, size_bytes=None, segments=10 + n)
        synthetic.transfer(0, n, "medium")
    return synthetic


def test_connections_that_never_delivered_a_byte_are_counted(tmp_path: Path) -> None:
    run = open_run(unfair_run(tmp_path).write())
    assert (measure_of(run, "connections"), measure_of(run, "starved")) == (5.0, 3.0)
    assert (measure_of(run, "connections", "medium"), measure_of(run, "starved", "medium")) == (1.0, 0.0)
    findings = ["3 of 5 connections of the flow large (60 %) never delivered a byte"]
    assert analysis.starved_cautions(run) == findings
    assert analysis.starved_cautions(run, analysis.summary(run)) == findings


def test_evenness_of_copies_is_jains_index_per_flow(tmp_path: Path) -> None:
    run = open_run(unfair_run(tmp_path).write())
    assert measure_of(run, "copies_jain") == pytest.approx(2**2 / (5 * 2))
    assert measure_of(run, "copies_jain", "medium") is None


def test_a_connection_delivers_if_any_of_its_transfers_does(tmp_path: Path) -> None:
    synthetic = SyntheticRun(tmp_path, [experiment()])
    synthetic.transfer(0, 0, transfer=0, acked_bytes=0, completed=False, size_bytes=1000)
    synthetic.transfer(0, 0, transfer=1)
    assert measure_of(open_run(synthetic.write()), "starved") == 0.0


def test_a_connection_truncated_immediately_has_not_starved(tmp_path: Path) -> None:
    synthetic = SyntheticRun(tmp_path, [experiment()])
    synthetic.transfer(0, 0)
    for connection, start_us in ((1, 950_000), (2, 905_000)):  # two round trips are 90 ms
        synthetic.transfer(
            0, 0, connection=connection, start_us=start_us, acked_bytes=0, completed=False, size_bytes=1000
        )
    assert measure_of(open_run(synthetic.write()), "starved") == 1.0


def test_a_connection_without_time_for_the_largest_round_trip_has_not_starved(tmp_path: Path) -> None:
    points = [{"at_ns": 500_000_000, "rate_bps": None, "delay_ns": 300_000_000, "loss": None}]
    planned = experiment(forward=link(profile="p"))
    synthetic = SyntheticRun(tmp_path, [planned], profiles={"p": {"period_ns": None, "points": points}})
    synthetic.transfer(0, 0)
    for connection, start_us in ((1, 370_000), (2, 350_000)):  # two round trips are 645 ms
        synthetic.transfer(
            0, 0, connection=connection, start_us=start_us, acked_bytes=0, completed=False, size_bytes=1000
        )
    assert measure_of(open_run(synthetic.write()), "starved") == 1.0


def test_a_copy_without_duration_is_ignored_in_evenness(tmp_path: Path) -> None:
    synthetic = SyntheticRun(tmp_path, [experiment()])
    for copy, start_us in ((0, 0), (1, 0), (2, 1_000_000)):
        acked = 0 if copy == 2 else 1_000_000
        synthetic.transfer(0, 0, copy=copy, start_us=start_us, acked_bytes=acked, completed=False, size_bytes=None)
    run = open_run(synthetic.write())
    assert measure_of(run, "copies_jain") == 1.0
    (jain,) = analysis.summary(run).filter(measure="jain")["mean"]
    assert jain == 1.0


def test_results_show_evenness_and_starved_connections(thalweg: Thalweg, tmp_path: Path) -> None:
    unfair_run(tmp_path / "run").write()
    done = thalweg("results", "run")
    heading, large, _ = done.stdout.splitlines()
    assert "Jain of copies (%)" in heading
    assert large.endswith("40 [40, 40]")
    sentence = "3 of 5 connections of the flow large (60 %) never delivered a byte"
    assert f"{sentence}.\n" in done.stderr
    as_json = json.loads(thalweg("results", "run", "--json").stdout)
    assert sentence in as_json["cautions"]
    starved = [row["mean"] for row in as_json["rows"] if (row["flow"], row["measure"]) == ("large", "starved")]
    assert starved == [3.0]


def test_the_report_cautions_about_connections_that_starved(tmp_path: Path) -> None:
    from thalweg.report import write

    write([unfair_run(tmp_path / "run").write()], tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "3 of 5 connections of the flow large (60 %) never delivered a byte" in page
    assert "index of the copies" in page


def test_the_sweep_point_with_most_starved_connections_is_reported(tmp_path: Path) -> None:
    counts = {"1bdp": 1, "2bdp": 3, "4bdp": 0}
    synthetic = SyntheticRun(
        tmp_path, [experiment(number, sweep={"path.buffer": buffer}) for number, buffer in enumerate(counts)]
    )
    for number, starved in enumerate(counts.values()):
        for copy in range(4):
            acked = 0 if copy < starved else 1_000_000
            synthetic.transfer(number, 0, copy=copy, acked_bytes=acked, completed=False, size_bytes=None)
    (sentence,) = analysis.starved_cautions(open_run(synthetic.write()))
    assert sentence == (
        "3 of 4 connections of the flow large (75 %) never delivered a byte at path.buffer = 2bdp;"
        " 2 of 3 points have such connections"
    )


def test_a_starved_connection_is_described_with_scenario_values(tmp_path: Path) -> None:
    sweeps: list[dict[str, object]] = [
        {"flow.large.paced": is_paced, "flow.large.count": 1.0} for is_paced in (False, True)
    ]
    synthetic = SyntheticRun(tmp_path, [experiment(number, sweep=sweep) for number, sweep in enumerate(sweeps)])
    synthetic.transfer(0, 0, acked_bytes=0, completed=False, size_bytes=None)
    synthetic.transfer(1, 0, acked_bytes=1_000_000, completed=False, size_bytes=None)
    (sentence,) = analysis.starved_cautions(open_run(synthetic.write()))
    assert sentence == (
        "1 of 1 connection of the flow large (100 %) never delivered a byte"
        " at flow.large.count = 1, flow.large.paced = false"
    )
