"""`thalweg optimise` in the simulator: its results are the same after any interruption."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from browsers import Watched
from playwright.sync_api import Browser
from small_search import SMALL, TWO_OBJECTIVES
from thalweg import results
from thalweg.errors import Exit

Thalweg = Callable[..., Any]

ENVIRONMENT = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "NO_COLOR": "1"}
WITHIN_S = 240
"""Timeout of a search."""


def start(*arguments: str | Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "thalweg", "optimise", *map(str, arguments)]
    return subprocess.Popen(
        command, env=ENVIRONMENT, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )


def finished(process: subprocess.Popen[str]) -> subprocess.CompletedProcess[str]:
    stdout, errors = process.communicate(timeout=WITHIN_S)
    return subprocess.CompletedProcess(process.args, process.returncode, stdout, errors)


def interrupt(
    process: subprocess.Popen[str], directory: Path, count: int, number: signal.Signals
) -> subprocess.CompletedProcess[str]:
    """Send a signal once `count` candidates are evaluated."""
    while evaluated(directory) < count and process.poll() is None:
        time.sleep(0.05)
    assert process.poll() is None, "there was nothing left to interrupt"
    process.send_signal(number)
    return finished(process)


def evaluated(directory: Path) -> int:
    try:
        with sqlite3.connect(f"file:{directory / 'search.db'}?mode=ro", uri=True) as database:
            return int(database.execute("select count(*) from trials where state = 'COMPLETE'").fetchone()[0])
    except sqlite3.Error:
        return 0


def files(directory: Path) -> tuple[bytes, bytes]:
    return (directory / "candidates.parquet").read_bytes(), (directory / "search.json").read_bytes()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("searches")
    (folder / "small.toml").write_text(SMALL)
    (folder / "two.toml").write_text(TWO_OBJECTIVES)
    return folder


@pytest.fixture(scope="module")
def whole(folder: Path) -> Path:
    """Return the directory of a search that was never interrupted."""
    done = finished(start(folder / "small.toml", "--out", folder / "whole"))
    assert done.returncode == 0, done.stderr
    assert "best candidates of 12 candidates" in done.stdout
    return folder / "whole"


@pytest.fixture(scope="module")
def pareto(folder: Path) -> Path:
    """Return the directory of a search with two objectives."""
    done = finished(start(folder / "two.toml", "--out", folder / "pareto"))
    assert done.returncode == 0, done.stderr
    assert "Pareto front of 12 candidates" in done.stdout
    return folder / "pareto"


def test_the_best_candidate_satisfies_the_constraint(whole: Path) -> None:
    table = pl.read_parquet(whole / "candidates.parquet")
    goodput, harm = "worst goodput(ours)", "worst harm(theirs)"
    best = table.filter("best").row(0, named=True)
    complete = table.filter(pl.col("state") == "complete", pl.col(harm) <= 0.9)
    assert best[goodput] == complete[goodput].max()
    assert best[harm] <= 0.9
    stopped = table.filter(pl.col("state") == "stopped")
    assert stopped.height > 0
    assert stopped["repetitions"].max() < 4
    assert table.filter(pl.col("state") == "complete")["repetitions"].unique().to_list() == [4]


def test_the_search_never_runs_held_out_points(whole: Path) -> None:
    training, held_out = (results.open_run(whole / name) for name in ("default", "held-out/default"))
    assert training.points()["path.rtt"].to_list() == ["10ms", "20ms"]
    assert held_out.points()["path.rtt"].to_list() == ["30ms"]
    document = json.loads((whole / "search.json").read_text())
    (verified,) = document["verified"]
    assert verified["held_out"] is True
    assert len(verified["differences"]) == 2 * len(document["best"])


def test_an_interrupted_or_killed_search_yields_the_same_result(folder: Path, whole: Path) -> None:
    run = folder / "interrupted"
    arguments = (folder / "small.toml", "--out", run)
    done = interrupt(start(*arguments), run, 2, signal.SIGINT)
    assert done.returncode == Exit.INTERRUPTED
    assert "of 12 candidates are evaluated; to resume: thalweg optimise" in done.stderr
    interrupt(start(*arguments), run, 4, signal.SIGKILL)
    assert finished(start(*arguments)).returncode == 0
    assert files(run) == files(whole)


def test_several_processes_share_the_candidates(folder: Path) -> None:
    run = folder / "shared"
    processes = [start(folder / "small.toml", "--out", run) for _ in range(2)]
    for process in processes:
        done = finished(process)
        assert done.returncode == 0, done.stderr
    table = pl.read_parquet(run / "candidates.parquet")
    assert table["candidate"].to_list() == list(range(12))


def test_a_larger_budget_resumes_the_search(folder: Path, whole: Path) -> None:
    run = folder / "larger"
    assert finished(start(folder / "small.toml", "--out", run, "--budget", "5")).returncode == 0
    done = finished(start(folder / "small.toml", "--out", run))
    assert "12 candidates; 5 of them evaluated already" in done.stderr
    assert files(run) == files(whole)


def test_a_foreign_directory_is_refused(whole: Path, thalweg: Thalweg, tmp_path: Path) -> None:
    (tmp_path / "other.toml").write_text(SMALL.replace('high = "8Mbps"', 'high = "9Mbps"'))
    done = thalweg("optimise", "other.toml", "--out", str(whole))
    assert done.returncode == Exit.USAGE
    assert "does not belong to this search" in done.stderr
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").write_text("x")
    assert thalweg("optimise", "other.toml", "--out", "full").returncode == Exit.USAGE
    assert sorted(path.name for path in (tmp_path / "full").iterdir()) == ["thesis.tex"]


def test_a_search_without_a_feasible_candidate_fails(tmp_path: Path, thalweg: Thalweg) -> None:
    (tmp_path / "small.toml").write_text(SMALL.replace("<= 0.9", "<= 0.001"))
    done = thalweg("optimise", "small.toml", "--out", "run", "--budget", "2", "--json")
    assert done.returncode == Exit.FAILED
    document = json.loads(done.stdout)
    assert document["cautions"] == ["no candidate meets all constraints"]
    assert document["best"] == []


def test_without_held_out_points_the_best_are_judged_with_other_seeds(tmp_path: Path, thalweg: Thalweg) -> None:
    without = SMALL.replace('held_out = { "path.rtt" = ["30ms"] }\n', "").replace("<= 0.9", "<= 1.0")
    (tmp_path / "small.toml").write_text(without)
    done = thalweg("optimise", "small.toml", "--out", "run", "--budget", "2")
    assert done.returncode == Exit.FINE
    assert "No points are held out" in done.stderr
    seeds = [
        {experiment["seed"] for experiment in results.open_run(tmp_path / "run" / name).plan["experiments"]}
        for name in ("default", "held-out/default")
    ]
    assert not seeds[0] & seeds[1]


def test_other_commands_ignore_the_search_table(tmp_path: Path, thalweg: Thalweg) -> None:
    (tmp_path / "small.toml").write_text(SMALL)
    checked = thalweg("check", "small.toml")
    assert checked.returncode == Exit.FINE
    assert "12 candidates: path.rate from 2Mbps to 8Mbps (log), flow.theirs.cc from cubic, reno" in checked.stderr
    assert "2 points for the search, 1 held out, at most 4 repetitions each" in checked.stderr
    assert thalweg("run", "small.toml", "--no-report", "--repetitions", "1").returncode == Exit.FINE
    (tmp_path / "wrong.toml").write_text(SMALL.replace("theirs) <=", "thiers) <="))
    assert "did you mean `theirs`?" in thalweg("check", "wrong.toml").stderr
    without = thalweg("optimise", "race.toml")
    assert without.returncode == Exit.USAGE
    assert "has no table [search]" in without.stderr


def test_an_unsupported_confirming_engine_is_an_error_before_the_search(tmp_path: Path, thalweg: Thalweg) -> None:
    more = '"flow.ours.cc_params.pacing_gain" = [1.1, 1.9]\n'
    (tmp_path / "small.toml").write_text(SMALL + more)
    done = thalweg("optimise", "small.toml", "--confirm", "kernel", "--out", "run")
    assert done.returncode == Exit.USAGE
    assert "for --confirm kernel: " in done.stderr
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("command", ["check", "optimise"])
def test_a_parameter_that_the_engine_lacks_is_an_error_before_the_search(
    command: str, tmp_path: Path, thalweg: Thalweg
) -> None:
    (tmp_path / "small.toml").write_text(SMALL + '"flow.ours.cc_params.pacing_gian" = [1.1, 1.9]\n')
    done = thalweg(command, "small.toml")
    assert done.returncode == Exit.USAGE
    assert "did you mean `pacing_gain`?" in done.stderr
    assert "small.toml:" in done.stderr
    assert not (tmp_path / "runs").exists()


@pytest.mark.usefixtures("uml")
def test_the_best_are_confirmed_on_a_kernel_in_virtual_time(tmp_path: Path, thalweg: Thalweg) -> None:
    (tmp_path / "small.toml").write_text(SMALL.replace("repetitions = 4", "repetitions = 2"))
    done = thalweg("optimise", "small.toml", "--confirm", "uml", "--out", "run", "--budget", "2", "--json")
    assert done.returncode == Exit.FINE, done.stderr
    simulated, real = json.loads(done.stdout)["verified"]
    assert (simulated["engine"], real["engine"]) == ("sim", "uml")
    assert [candidate["candidate"] for candidate in simulated["candidates"]] == [
        candidate["candidate"] for candidate in real["candidates"]
    ]
    assert results.open_run(tmp_path / "run" / "confirm-uml" / "default").engine == "uml"


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize(("search", "figures"), [("whole", 4), ("pareto", 5)])
def test_the_page_is_drawn_without_errors_or_requests(
    browser: Browser, request: pytest.FixtureRequest, search: str, figures: int, width: int
) -> None:
    directory: Path = request.getfixturevalue(search)
    watched = Watched(browser, directory / "search.html", width).ready()
    page = watched.page
    for figure in page.locator("figure").all():
        figure.scroll_into_view_if_needed()
        figure.locator("svg.marks").wait_for()
    assert page.locator("svg.marks").count() == figures
    assert page.locator("#figure-parallel .mark-line path").count() == 12
    assert watched.overflow() == 0
    assert watched.complaints == []
    assert watched.requests == [watched.file]
    page.close()


def test_the_pareto_front_has_no_dominated_candidate(pareto: Path) -> None:
    table = pl.read_parquet(pareto / "candidates.parquet").filter(pl.col("state") == "complete")
    names = ["worst goodput(ours)", "mean goodput(theirs)"]
    front = table.filter("best").select(names).rows()
    assert front
    assert not [
        one for one in front for other in front if one != other and all(x <= y for x, y in zip(one, other, strict=True))
    ]
