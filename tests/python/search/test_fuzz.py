"""`thalweg fuzz` in the simulator: it finds a known failure, shrinks it, and resumes after an interruption."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from browsers import Watched
from playwright.sync_api import Browser
from thalweg.errors import Exit
from thalweg.search import locks

Thalweg = Callable[..., Any]

ENVIRONMENT = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "NO_COLOR": "1"}

SCENARIO = """\
name = "policed"
duration = "1s"
repetitions = 2
start_jitter = "1rtt"
[path]
rate = "20Mbps"
rtt = "20ms"
buffer = "4bdp"
[[flow]]
name = "ours"
cc = "bbr"
[fuzz]
fails = { retransmits = "retransmit_ratio(ours) >= 10%" }
budget = 8
[fuzz.conditions]
policer = { rate = ["2Mbps", "10Mbps"], burst = ["5kB", "50kB"] }
jitter = { up_to = ["1ms", "5ms"] }
"""
"""BBR version 1 behind a policer: it sends more than the policer passes, because no queue builds up."""


def start(folder: Path, out: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "thalweg", "fuzz", "policed.toml", "--confirm", "none", "--out", out]
    return subprocess.Popen(
        command, cwd=folder, env=ENVIRONMENT, text=True, stderr=subprocess.PIPE, stdout=subprocess.PIPE
    )


def finish(process: subprocess.Popen[str]) -> None:
    _, errors = process.communicate(timeout=240)
    assert process.returncode == 0, errors


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fuzz")
    (folder / "policed.toml").write_text(SCENARIO)
    finish(start(folder, "whole"))
    return folder


def test_bbr_behind_a_policer_is_found_and_shrunk_to_the_policer(folder: Path) -> None:
    (findings,) = json.loads((folder / "whole" / "fuzz.json").read_text())["found"]
    assert [condition["kind"] for condition in findings["conditions"]] == ["policer"]
    assert all(value >= 0.1 for value in findings["values"])
    assert "a policer limits the rate" in findings["sentence"]
    assert "With `bbr`, `retransmit_ratio(ours)` is" in findings["sentence"]


def test_the_resulting_scenario_fails_on_its_own(folder: Path, thalweg: Thalweg) -> None:
    (file,) = (folder / "whole" / "found").iterdir()
    assert thalweg("run", str(file), "--out", "again", "--no-report").returncode == Exit.FINE
    rows = json.loads(thalweg("results", "again", "--json").stdout)
    (ratio,) = [row["mean"] for row in rows["rows"] if row["measure"] == "retransmit_ratio"]
    assert ratio >= 0.1


@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_shows_the_failing_run_beside_one_without_the_conditions(
    folder: Path, browser: Browser, width: int
) -> None:
    (findings,) = json.loads((folder / "whole" / "fuzz.json").read_text())["found"]
    watched = Watched(browser, folder / "whole" / "fuzz.html", width).ready()
    page = watched.page
    assert findings["sentence"].replace("`", "") in page.inner_text("#table-1")
    assert "burst" in page.inner_text("#scenarios pre")
    for figure in page.locator("figure").all():
        figure.scroll_into_view_if_needed()
        figure.locator("svg.marks").first.wait_for()
        assert "as found" in figure.inner_text()
        assert "without these conditions" in figure.inner_text()
    assert page.locator("figure").count() == 3
    assert watched.overflow() == 0
    assert watched.complaints == []
    assert watched.requests == [watched.file]
    page.close()


def test_a_killed_search_yields_the_same_result(folder: Path) -> None:
    place = folder / "killed"
    for wanted in ("retransmits/search.db", "retransmits/shrinking.jsonl"):
        process = start(folder, "killed")
        while process.poll() is None and len((place / wanted).read_bytes() if (place / wanted).exists() else b"") < 100:
            time.sleep(0.05)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    finish(start(folder, "killed"))
    assert (place / "fuzz.json").read_bytes() == (folder / "whole" / "fuzz.json").read_bytes()


def test_a_scenario_that_fails_unmodified_needs_no_search(tmp_path: Path, thalweg: Thalweg) -> None:
    (tmp_path / "x.toml").write_text(SCENARIO.replace(">= 10%", ">= 0%"))
    done = thalweg("fuzz", "x.toml", "--confirm", "none", "--out", "run")
    assert done.returncode == Exit.FINE
    assert "when no condition applies." in done.stdout


def test_a_search_without_findings_is_reported(tmp_path: Path, thalweg: Thalweg) -> None:
    (tmp_path / "x.toml").write_text(SCENARIO.replace(">= 10%", ">= 99%"))
    done = thalweg("fuzz", "x.toml", "--out", "run", "--budget", "2")
    assert done.returncode == Exit.FINE
    assert "retransmits, retransmit_ratio(ours) >= 99%: nothing in 2 candidates" in done.stdout


def test_candidates_that_cannot_run_are_not_counted(tmp_path: Path, thalweg: Thalweg) -> None:
    impossible = SCENARIO.replace('burst = ["5kB", "50kB"]', 'burst = ["1B", "2B"]').replace(
        "\njitter =", "\n# jitter ="
    )
    (tmp_path / "x.toml").write_text(impossible.replace(">= 10%", ">= 99%"))
    done = thalweg("fuzz", "x.toml", "--out", "run", "--budget", "1", "--seed", "3")
    assert "1 of 1 candidates could not be run" in done.stderr
    assert done.returncode == Exit.NO_EVIDENCE


def test_check_prints_the_search_goal(tmp_path: Path, thalweg: Thalweg) -> None:
    (tmp_path / "x.toml").write_text(SCENARIO)
    stderr = thalweg("check", "x.toml").stderr
    assert "[fuzz] 8 candidates for each failure: retransmits, retransmit_ratio(ours) >= 10%" in stderr
    assert "conditions: policer, jitter" in stderr
    (tmp_path / "wrong.toml").write_text(SCENARIO.replace("policer =", "policr ="))
    assert "did you mean `policer`?" in thalweg("check", "wrong.toml").stderr


@pytest.mark.usefixtures("uml")
def test_a_finding_is_confirmed_on_an_engine_with_the_algorithm(tmp_path: Path, thalweg: Thalweg) -> None:
    easy = SCENARIO.replace(">= 10%", ">= 0%")
    (tmp_path / "bbr.toml").write_text(easy)
    (tmp_path / "bbr3.toml").write_text(easy.replace('cc = "bbr"', 'cc = "bbr3"'))
    assert "also occurs on uml" in thalweg("fuzz", "bbr.toml", "--out", "bbr").stdout
    assert "cannot run on uml: " in thalweg("fuzz", "bbr3.toml", "--out", "bbr3").stdout


def test_a_process_waits_while_another_one_draws_the_findings(folder: Path) -> None:
    with locks.exclusive(folder / "whole" / "lock"):
        process = start(folder, "whole")
        waiting = re.compile(rf"-> FLOCK .* {process.pid} ")
        until = time.monotonic() + 60
        while not waiting.search(Path("/proc/locks").read_text()):
            assert process.poll() is None
            assert time.monotonic() < until
            time.sleep(0.05)
    finish(process)
