"""`thalweg validate` on the command line, with the real simulator on both sides."""

import csv
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from thalweg.errors import Exit
from thalweg.validate import goals

Thalweg = Callable[..., Any]

GRID = """\
name = "small"
about = "Two flows on a small path."
duration = "4s"
repetitions = 2
start_jitter = "1rtt"
[path]
rate = "5Mbps"
rtt = "40ms"
[[flow]]
name = "large"
cc = "cubic"
[[flow]]
name = "short"
cc = "bbr"
size = "100kB"
repeat = {gap = "0.1s", count = 5}
[sweep]
"path.buffer" = ["0.5bdp", "1bdp", "4bdp"]
"""


@pytest.fixture(autouse=True)
def _grid(tmp_path: Path) -> None:
    (tmp_path / "grid.toml").write_text(GRID)


def test_an_engine_agrees_with_itself(thalweg: Thalweg) -> None:
    done = thalweg("validate", "sim", "sim", "--grid", "grid.toml")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "errors of sim, with sim as the reference"
    assert lines[2] == "small: Two flows on a small path."
    words = [" ".join(line.split()) for line in lines]
    assert words[3] == "buffer flow cc goodput retransmits RTT completion"
    assert words[4] == "0.5bdp large cubic 0.0 % x1.00 0.0 % -"
    assert words[5] == "0.5bdp short bbr - x1.00 0.0 % 0.0 %"
    overall = done.stdout.partition("overall sizes of the errors\n")[2].splitlines()
    assert " ".join(overall[1].split()) == "goodput 3 0.0 % 0.0 %"
    assert "small on sim: 6 experiments" in done.stderr


def test_the_printed_report_command_works(thalweg: Thalweg, tmp_path: Path) -> None:
    stdout = thalweg("validate", "sim", "sim", "--grid", "grid.toml").stdout
    command = stdout.partition("with time series\n")[2].splitlines()[0].split()
    assert command[:2] == ["thalweg", "report"]
    assert thalweg(*command[1:]).returncode == 0
    assert "<html" in (tmp_path / "small.html").read_text()


def test_json_has_both_values_and_the_error_of_every_cell(thalweg: Thalweg) -> None:
    document = json.loads(thalweg("validate", "sim", "sim", "--grid", "grid.toml", "--json").stdout)
    assert (document["engines"], document["reference"], document["interrupted"]) == (["sim", "sim"], "sim", False)
    assert (document["points"], len(document["cells"]), len(document["runs"])) == (3, 6, 1)
    cell = document["cells"][0]
    assert (cell["point"], cell["flow"], cell["state"]) == ({"path.buffer": "0.5bdp"}, "large", "compared")
    goodput = cell["measures"]["goodput"]
    assert goodput["first"] == goodput["second"] > 1e6
    assert goodput["error"] == 0.0


def test_finished_cells_are_not_run_again_and_quick_lists_what_it_omits(thalweg: Thalweg) -> None:
    first = thalweg("validate", "sim", "sim", "--grid", "grid.toml", "--quick", "--out", "here")
    assert "points left out: 1 (only the ends" in first.stderr
    assert "small on sim: 2 experiments" in first.stderr
    again = thalweg("validate", "sim", "sim", "--grid", "grid.toml", "--quick", "--out", "here")
    assert "2 are already finished" in again.stderr
    assert again.stdout == first.stdout


def test_untrustworthy_cells_are_shown_and_can_be_run_again(thalweg: Thalweg, tmp_path: Path) -> None:
    words = ["validate", "sim", "sim", "--grid", "grid.toml"]
    assert thalweg(*words).returncode == 0
    for file in (tmp_path / "runs").glob("validate/*/flows/*"):
        frame = pl.read_parquet(file)
        if frame["experiment"][0] == 1:
            frame.with_columns(untrustworthy=pl.lit("the host was busy")).write_parquet(file)
    done = thalweg(*words)
    assert "sim: 2 of 2 repetitions untrustworthy: the host was busy (2 rows)\n" in done.stdout
    assert done.returncode == Exit.INCOMPLETE
    assert "2 of 6 experiments are untrustworthy, and left out of the numbers" in done.stderr
    assert json.loads(thalweg(*words, "--json").stdout)["evidence"] == "part"
    assert f"to run them again: thalweg {' '.join(words)} --retry-untrustworthy\n" in done.stderr
    again = thalweg(*words, "--retry-untrustworthy")
    assert "4 are already finished" in again.stderr
    assert "untrustworthy" not in again.stdout


def test_a_terminal_gets_a_table(thalweg: Thalweg, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    done = thalweg("validate", "sim", "sim", "--grid", "grid.toml", "--quick", COLUMNS="120")
    assert done.returncode == 0, done.stderr
    assert "0.0 %" in done.stdout
    assert "90th percentile" in done.stdout


def test_after_ctrl_c_finished_cells_are_compared_and_the_command_can_resume(thalweg: Thalweg, tmp_path: Path) -> None:
    (tmp_path / "grid.toml").write_text(GRID.replace("repetitions = 2", "repetitions = 40"))
    words = ["validate", "sim", "sim", "--grid", "grid.toml", "--threads", "1"]
    process = subprocess.Popen(
        [sys.executable, "-m", "thalweg", *words],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr
    while "on sim: 120 experiments" not in process.stderr.readline():
        pass
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=120)
    assert process.returncode == Exit.INTERRUPTED, stderr
    assert "Traceback" not in stderr
    assert f"to resume: thalweg {' '.join(words)}" in stderr
    assert "sim: not run yet" in stdout
    done = thalweg(*words)
    assert done.returncode == 0, done.stderr
    assert "not run" not in done.stdout


def test_check_fails_if_a_goal_is_not_met(thalweg: Thalweg, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["validate", "sim", "sim", "--grid", "grid.toml"]
    (met,) = [goal for goal in goals.GOALS if goal.measure == "retransmit_ratio"]
    monkeypatch.setattr(goals, "FEWEST", dict.fromkeys(goals.FEWEST, 1))
    monkeypatch.setattr(goals, "GOALS", (met,))
    done = thalweg(*words, "--check")
    assert (done.returncode, done.stdout.split()[-1]) == (Exit.FINE, "met")
    monkeypatch.setattr(goals, "GOALS", (met, replace(met, limit=0.9)))
    done = thalweg(*words, "--check")
    assert (done.returncode, done.stdout.split()[-2:]) == (Exit.FAILED, ["not", "met"])
    assert "--check: 1 of 2 goals are not met" in done.stderr
    assert thalweg(*words).returncode == Exit.FINE, "without --check it is only shown"


def test_check_fails_if_no_goal_could_be_judged(thalweg: Thalweg, tmp_path: Path) -> None:
    (tmp_path / "grid.toml").write_text(GRID.partition("[sweep]")[0])
    done = thalweg("validate", "sim", "sim", "--grid", "grid.toml", "--check")
    assert done.returncode == Exit.NO_EVIDENCE
    assert "no goal could be judged" in done.stderr


def test_the_page_is_the_same_for_the_same_runs(thalweg: Thalweg, tmp_path: Path) -> None:
    words = ["validate", "sim", "sim", "--grid", "grid.toml", "--out", str(tmp_path / "runs")]
    assert thalweg(*words, "--page", "page.md").returncode == 0
    page, rows = (tmp_path / "page.md").read_text(), (tmp_path / "page.csv").read_text()
    assert thalweg(*words, "--threads", "1", "--page", "page.md").returncode == 0
    assert (tmp_path / "page.md").read_text() == page
    assert (tmp_path / "page.csv").read_text() == rows
    assert "`thalweg validate sim sim --grid grid.toml --page page.md`" in page
    assert str(tmp_path) not in page
    assert "3 in 1 parts, 6 of 6 rows compared" in page
    assert "[page.csv](page.csv)" in page
    table = list(csv.DictReader(rows.splitlines()))
    assert f"Values compared:\n\n`small` {len(table)}." in page
    goodput = next(row for row in table if row["measure"] == "goodput")
    assert goodput["point"].startswith("buffer=0.5bdp")
    assert (goodput["flow"], goodput["cc"], goodput["unit"]) == ("large", "cubic", "bit/s")
    assert 1e6 < float(goodput["value"]) < 1e9
    assert (goodput["error"], goodput["within_noise"]) == ("0", "0")


def test_the_page_may_not_have_the_name_of_its_table(thalweg: Thalweg, tmp_path: Path) -> None:
    done = thalweg("validate", "sim", "sim", "--grid", "grid.toml", "--page", "page.csv")
    assert done.returncode == Exit.CANNOT_WRITE
    assert "hint: --page page.md" in done.stderr
    assert not (tmp_path / "runs").exists()


def test_a_page_that_cannot_be_written_is_refused_before_anything_runs(thalweg: Thalweg, tmp_path: Path) -> None:
    done = thalweg("validate", "sim", "sim", "--grid", "grid.toml", "--page", "nowhere/page.md")
    assert done.returncode == Exit.CANNOT_WRITE
    assert "hint: mkdir -p nowhere" in done.stderr
    assert not (tmp_path / "runs").exists()


def test_tables_of_the_bundled_grid_fit_into_80_columns(thalweg: Thalweg) -> None:
    parts = [
        "solo-rtt",
        "duel-buffer",
        "pair-late",
        "pair-rtt",
        "many-mixed",
        "many-same",
        "short-alone",
        "short-beside-bulk",
        "mix-large-medium",
    ]
    grids = [word for part in parts for word in ("--grid", part)]
    done = thalweg("validate", "sim", "sim", *grids, "--quick")
    assert done.returncode == 0, done.stderr
    tables = done.stdout.partition("to report both engines together")[0].splitlines()
    headings = [line for line in tables if "retransmits" in line and "flow" in line]
    assert len(headings) == len(parts)
    assert max(map(len, headings)) <= 80
    assert max(len(line) for line in done.stdout.partition("\ngoals\n")[2].splitlines()) <= 80


def test_mistakes_are_reported_before_anything_runs(thalweg: Thalweg, tmp_path: Path) -> None:
    assert "did you mean `solo-loss`?" in thalweg("validate", "sim", "sim", "--grid", "solo-los").stderr
    assert "there is no engine `sin`" in thalweg("validate", "sim", "sin").stderr
    (tmp_path / "grid.toml").write_text(GRID.replace("5Mbps", "5"))
    done = thalweg("validate", "sim", "sim", "--grid", "grid.toml", "--json")
    assert done.returncode == Exit.USAGE
    assert json.loads(done.stdout)["errors"][0]["code"] == "bad-quantity"
    assert not (tmp_path / "runs").exists()
