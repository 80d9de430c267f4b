"""Runs with the real engine: interrupted, killed, repeated."""

import json
import os
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from thalweg.errors import Exit
from thalweg.results import Run, open_run

Thalweg = Callable[..., Any]

SMALL = """\
name = "small"
repetitions = 4
start_jitter = "1rtt"
duration = "5s"
[path]
rate = "5Mbps"
rtt = "40ms"
[[flow]]
name = "large"
cc = "cubic"
size = "1MB"
[[flow]]
name = "short"
cc = "bbr"
size = "100kB"
start = "0.5s"
repeat = {gap = "0.1s", until = "large"}
[sweep]
"path.buffer" = ["0.5bdp", "4bdp"]
"flow.large.cc" = ["reno", "cubic", "bbr"]
"""

EXPERIMENTS = 24


@pytest.fixture(autouse=True)
def _scenario(tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_text(SMALL)


def tables(run: Run) -> list[pl.DataFrame]:
    return [run.flows(), run.samples(), run.state(), run.queue()]


def assert_same_tables(one: Path, other: Path) -> None:
    for mine, theirs in zip(tables(open_run(one)), tables(open_run(other)), strict=True):
        assert mine.equals(theirs)


def test_a_scenario_yields_tables_and_a_report(thalweg: Thalweg, tmp_path: Path) -> None:
    done = thalweg("run", "small.toml")
    assert done.returncode == 0, done.stderr
    *table, run, report, again = done.stdout.splitlines()
    run, report, again = (line.split(maxsplit=1)[1] for line in (run, report, again))
    assert again == "thalweg run small.toml"
    assert "<html" in (tmp_path / report).read_text()

    printed = thalweg("results", run)
    lines = printed.stdout.splitlines()
    assert lines[0].split()[:5] == ["path.buffer", "flow.large.cc", "flow", "cc", "n"]
    assert len(lines) == 1 + 6 * 2
    assert table == lines, "the same table stands at the end of the run"
    assert "95 % confidence interval" in printed.stderr
    as_json = json.loads(thalweg("results", run, "--json").stdout)
    assert (as_json["experiments"], as_json["finished"]) == (EXPERIMENTS, EXPERIMENTS)
    as_csv = pl.read_csv(thalweg("results", run, "--csv").stdout.encode())
    assert as_csv.height == len(as_json["rows"])
    goodput = [row["mean"] for row in as_json["rows"] if row["measure"] == "goodput"]
    assert all(0 < bps < 5_000_000 for bps in goodput), "never more than the path carries"


def test_damaged_rows_with_a_valid_footer_are_an_error(thalweg: Thalweg, tmp_path: Path) -> None:
    assert thalweg("run", "small.toml", "--no-report", "--out", "out").returncode == 0
    file = next((tmp_path / "out" / "flows").iterdir())
    content = bytearray(file.read_bytes())
    content[4:200] = bytes(196)
    file.write_bytes(content)
    printed = thalweg("results", "out")
    assert printed.returncode == 2, printed.stderr
    assert printed.stderr.startswith(f"error[damaged-run]: `out/flows/{file.name}` is not a table of flows: ")
    assert "Traceback" not in printed.stderr


def test_finished_experiments_are_not_run_again(thalweg: Thalweg) -> None:
    thalweg("run", "small.toml", "--no-report")
    done = thalweg("run", "small.toml", "--no-report", "--json")
    document = json.loads(done.stdout)
    assert (document["present"], document["finished"]) == (EXPERIMENTS, 0)


def mark(run: Path, number: int) -> Path:
    """Mark an experiment of a run as untrustworthy, as the engine does."""
    file = sorted((run / "flows").iterdir())[number]
    pl.read_parquet(file).with_columns(untrustworthy=pl.lit("the host was busy")).write_parquet(file)
    return file


def test_untrustworthy_experiments_are_run_again_only_on_request(thalweg: Thalweg, tmp_path: Path) -> None:
    words = ["run", "small.toml", "--no-report", "--out", "out", "--json"]
    assert thalweg(*words).returncode == 0
    mark(tmp_path / "out", 3)
    again = thalweg(*words)
    document = json.loads(again.stdout)
    assert again.returncode == Exit.INCOMPLETE
    assert (document["finished"], document["evidence"], len(document["untrustworthy"])) == (0, "part", 1)
    assert document["untrustworthy"][0]["reason"] == "the host was busy"
    assert len(open_run(tmp_path / "out").untrustworthy) == 1
    done = thalweg(*words, "--retry-untrustworthy")
    document = json.loads(done.stdout)
    assert (document["present"], document["finished"]) == (EXPERIMENTS - 1, 1)
    assert f"untrustworthy, and run again: 1 of {EXPERIMENTS} finished experiments\n" in done.stderr
    assert open_run(tmp_path / "out").untrustworthy == []
    assert thalweg("run", "small.toml", "--no-report", "--out", "new", "--retry-untrustworthy").returncode == 0


def test_an_edited_scenario_does_not_mix_with_the_old_run(thalweg: Thalweg, tmp_path: Path) -> None:
    first = thalweg("run", "small.toml", "--no-report").stdout
    (tmp_path / "small.toml").write_text(SMALL.replace("5Mbps", "6Mbps"))
    *_, directory, _ = first.splitlines()
    assert thalweg("run", "small.toml", "--no-report").stdout.splitlines()[-2] != directory
    directory = directory.split()[1]
    refused = thalweg("run", "small.toml", "--no-report", "--out", directory)
    assert refused.returncode == Exit.USAGE
    assert "hint:" in refused.stderr


@pytest.mark.parametrize(
    ("victim", "number", "code"),
    [
        ("thalweg", signal.SIGINT, Exit.INTERRUPTED),
        ("thalweg", signal.SIGKILL, -signal.SIGKILL),
        ("engine", signal.SIGKILL, Exit.FAILED),
    ],
)
def test_a_resumed_run_yields_the_same_tables(
    thalweg: Thalweg, tmp_path: Path, victim: str, number: int, code: int
) -> None:
    thalweg("run", "small.toml", "--no-report", "--out", "whole")
    process = subprocess.Popen(
        [sys.executable, "-m", "thalweg", "run", "small.toml", "--no-report", "--out", "stopped", "--threads", "1"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    assert process.stderr
    process.stderr.readline()  # "24 experiments, ...": the engine has started
    child = int(Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()[0])
    engine = os.pidfd_open(child)
    os.kill(process.pid if victim == "thalweg" else child, number)
    process.communicate()
    assert process.returncode == code
    select.select([engine], [], [])  # returns when the engine has exited, even as an orphan
    assert len(list((tmp_path / "stopped").glob("flows/*.parquet"))) < EXPERIMENTS, "it was stopped in the middle"
    goes_on = thalweg("run", "small.toml", "--no-report", "--out", "stopped", "--json")
    assert goes_on.returncode == 0, goes_on.stderr
    document = json.loads(goes_on.stdout)
    assert document["present"] + document["finished"] == EXPERIMENTS
    assert_same_tables(tmp_path / "whole", tmp_path / "stopped")


def test_the_number_of_threads_does_not_change_the_tables(thalweg: Thalweg, tmp_path: Path) -> None:
    thalweg("run", "small.toml", "--no-report", "--out", "one", "--threads", "1")
    thalweg("run", "small.toml", "--no-report", "--out", "three", "--threads", "3")
    assert_same_tables(tmp_path / "one", tmp_path / "three")


def test_another_seed_yields_different_tables(thalweg: Thalweg, tmp_path: Path) -> None:
    thalweg("run", "small.toml", "--no-report", "--out", "one")
    thalweg("run", "small.toml", "--no-report", "--out", "other", "--seed", "2")
    assert not open_run(tmp_path / "one").flows().equals(open_run(tmp_path / "other").flows())


def test_a_run_directory_that_cannot_be_written_is_an_error(thalweg: Thalweg) -> None:
    done = thalweg("run", "small.toml", "--no-report", "--out", "small.toml/inside")
    assert done.returncode == Exit.CANNOT_WRITE
    assert done.stderr.startswith("error[")
    assert "Traceback" not in done.stderr


def test_several_runs_share_a_report(thalweg: Thalweg, tmp_path: Path) -> None:
    for seed in ("1", "2"):
        thalweg("run", "small.toml", "--no-report", "--out", f"run-{seed}", "--seed", seed)
    done = thalweg("report", "run-1", "run-2", "--out", "both.html")
    assert done.stdout == "both.html\n", done.stderr
    assert "run-2" in (tmp_path / "both.html").read_text()


def test_a_run_with_only_untrustworthy_experiments_fails(thalweg: Thalweg, tmp_path: Path) -> None:
    words = ["run", "small.toml", "--no-report", "--out", "out", "--repetitions", "1"]
    thalweg(*words)
    for number in range(len(list((tmp_path / "out" / "flows").iterdir()))):
        mark(tmp_path / "out", number)
    again = thalweg(*words)
    assert again.returncode == Exit.NO_EVIDENCE
    assert "No experiment can be used: 6 of 6 experiments are untrustworthy" in again.stderr
    assert "untrustworthy: the host was busy" in again.stderr
    shutil.copytree("out", "same")
    for command in (["results", "out"], ["compare", "out", "same"], ["compare", "out", "--by", "path.buffer"]):
        for form in ([], ["--json"]):
            done = thalweg(*command, *form)
            assert done.returncode == Exit.NO_EVIDENCE, command
            assert "no experiment can be used" in (done.stdout + done.stderr).lower()


def test_a_random_start_only_shifts_a_single_transfer(thalweg: Thalweg, tmp_path: Path) -> None:
    head, large = SMALL.split("[[flow]]")[:2]
    (tmp_path / "alone.toml").write_text(f"{head}[[flow]]{large}")
    stderr = thalweg("run", "alone.toml", "--no-report", "--out", "alone").stderr
    assert "copies of one another" in stderr
    assert "start_jitter alone only shifts them; use path.jitter" in stderr
    assert "[" not in thalweg("results", "alone").stdout, "there is no interval"


def test_deterministic_repetitions_are_copies_without_a_verdict(thalweg: Thalweg, tmp_path: Path) -> None:
    still = (
        SMALL.replace("start_jitter", "# start_jitter").replace("bbr", "cubic").replace('"cubic", "cubic"', '"cubic"')
    )
    (tmp_path / "still.toml").write_text(still)
    for rtt in ("20ms", "20.01ms"):
        thalweg("run", "still.toml", "--no-report", "--set", f"path.rtt={rtt}", "--out", rtt)
    printed = thalweg("results", "20ms")
    assert "[" not in printed.stdout, "there is no interval"
    assert "are copies of one another" in printed.stderr
    shutil.copytree("20ms", "same")
    assert thalweg("compare", "20ms", "same").returncode == Exit.FINE, "nothing has changed"
    done = thalweg("compare", "20ms", "20.01ms", "--all")
    assert done.returncode == Exit.NO_EVIDENCE, "a difference without a verdict"
    assert done.stdout.startswith("No verdict on any of ")
    assert {line.split()[-1] for line in done.stdout.splitlines()[3:]} == {"copies"}


CHECKED = """\
name = "checked"
repetitions = 3
start_jitter = "1rtt"
duration = "2s"
[path]
rate = "5Mbps"
rtt = "40ms"
buffer = "2bdp"
[[flow]]
name = "ours"
cc = "cubic"
"""


@pytest.mark.parametrize(
    ("bounds", "code", "words"),
    [
        (["goodput(ours) > 2.5Mbps", "utilisation > 50%"], Exit.FINE, "holds: utilisation > 50%: "),
        (
            ["goodput(ours) > 2.5Mbps", "goodput(ours) > 4.99Mbps"],
            Exit.CHECK_BROKEN,
            "does not hold: goodput(ours) > 4.99",
        ),
        (["goodput(ours, path.loss=0) > 1"], Exit.USAGE, ""),
    ],
)
def test_checks_decide_the_exit_code(
    thalweg: Thalweg, tmp_path: Path, bounds: list[str], code: Exit, words: str
) -> None:
    (tmp_path / "checked.toml").write_text(CHECKED)
    options = [word for check in bounds for word in ("--check", check)]
    done = thalweg("run", "checked.toml", "--out", "run", "--no-report", *options)
    assert done.returncode == code, done.stderr
    assert words in done.stdout
    assert (tmp_path / "run").exists() == (code != Exit.USAGE), "a mistake is found before anything runs"
    if code != Exit.USAGE:
        again = thalweg("results", "run", "--json", *options)
        assert again.returncode == code
        assert [check["check"] for check in json.loads(again.stdout)["checks"]] == bounds


def test_a_check_with_one_repetition_is_inconclusive(thalweg: Thalweg, tmp_path: Path) -> None:
    (tmp_path / "checked.toml").write_text(CHECKED)
    bound = ("--check", "goodput(ours) > 2.5Mbps")
    done = thalweg("run", "checked.toml", "--out", "run", "--no-report", "--repetitions", "1", "--json", *bound)
    assert done.returncode == Exit.NOT_SETTLED
    (judged,) = json.loads(done.stdout)["checks"]
    assert (judged["verdict"], judged["difference"]["n"], judged["difference"]["low"]) == ("not settled", 1, None)
