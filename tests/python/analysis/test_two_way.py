"""A download beside an upload: shares, fairness and utilisation are computed within one direction."""

from pathlib import Path

import polars as pl
import pytest
from thalweg import analysis, engine, plan, report, results, run, scenario
from thalweg.analysis import series

SCENARIO = """\
name = "two-way"
duration = "10s"
[path]
rate = "10Mbps"
rtt = "40ms"
[path.reverse]
rate = "2Mbps"
buffer = "30packets"
[[flow]]
name = "down"
cc = "cubic"
count = 2
[[flow]]
name = "up"
cc = "cubic"
count = 2
direction = "up"
[[background]]
rate = "500kbps"
direction = "up"
"""


def run_scenario(folder: Path, text: str) -> results.Run:
    file = folder / "two-way.toml"
    file.write_text(text)
    engines = engine.capabilities().engines
    made_plan = plan.make(scenario.load(file), engines["sim"], engines)
    run.execute(made_plan, folder / "run", binary=engine.find())
    return results.open_run(folder / "run")


@pytest.fixture(scope="module")
def two_way(tmp_path_factory: pytest.TempPathFactory) -> results.Run:
    return run_scenario(tmp_path_factory.mktemp("two-way"), SCENARIO)


def values(measured_run: results.Run, window: tuple[float, float] | None = None) -> dict[tuple[str | None, str], float]:
    rows = analysis.repetitions(measured_run, window=window).iter_rows(named=True)
    return {(row["flow"], row["measure"]): row["value"] for row in rows}


@pytest.mark.parametrize("window", [None, (2.0, 8.0)])
def test_shares_and_fairness_are_those_of_one_direction(
    two_way: results.Run, window: tuple[float, float] | None
) -> None:
    run = values(two_way, window)
    assert (run["down", "share"], run["up", "share"]) == (1.0, 1.0)
    # Two copies share each link; an index over all four copies would be below 0.7.
    assert run[None, "jain"] > 0.7
    assert run[None, "jain_up"] > 0.7


def test_each_direction_has_its_own_utilisation_and_queue(two_way: results.Run) -> None:
    run = values(two_way)
    assert run[None, "utilisation_up"] > 0.95
    assert run["up", "utilisation_while_active"] == pytest.approx(run[None, "utilisation_up"], abs=0.05)
    assert run["down", "utilisation_while_active"] == pytest.approx(run[None, "utilisation"], abs=0.05)
    assert run[None, "queueing_delay_up"] > 0.02
    assert run[None, "drops_up"] > 0
    # Data in flight is relative to the BDP of the flow's own link: 2 Mbit/s are a fifth of 10 Mbit/s.
    assert run["up", "inflight_bdp"] > 1.5


def test_the_reverse_queue_has_time_series(two_way: results.Run) -> None:
    lines = series(two_way, [(0, 0)])[0].lines
    assert max(lines["queue_up"][0].value) > 20 * 1500
    assert lines["queue_up"][0].value != lines["queue"][0].value


def test_tables_name_the_direction(two_way: results.Run) -> None:
    directions = two_way.flows().group_by("flow").agg(pl.col("direction").first()).sort("flow")
    assert directions.rows() == [("down", "down"), ("up", "up")]


def test_the_report_shows_flow_directions(two_way: results.Run, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    report.write([two_way.path], page)
    text = page.read_text()
    assert "goes up, on the reverse path" in text
    assert "its queue holds 30 packets" in text
    assert "Utilisation, up" in text
    assert "Queue of path.reverse" in text


def test_one_way_runs_show_no_direction(tmp_path: Path) -> None:
    down = run_scenario(tmp_path, SCENARIO.replace('direction = "up"\n', ""))
    assert not [measure for _, measure in values(down) if measure.endswith("_up")]
    assert series(down, [(0, 0)])[0].lines["queue_up"] == []
    file = next((tmp_path / "run" / "flows").glob("*.parquet"))
    assert "direction" not in pl.read_parquet_schema(file)


def test_the_link_of_uploads_is_compared_by_default(two_way: results.Run) -> None:
    measures = {row.measure for row in analysis.compare(two_way, two_way).rows}
    assert {"utilisation_up", "queueing_delay_up"} <= measures
