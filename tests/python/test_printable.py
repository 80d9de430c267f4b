"""Untrusted text is escaped on a terminal and in CSV."""

import csv
import io
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from synthetic_runs import SyntheticRun, experiment, flow
from thalweg import printable

Thalweg = Callable[..., Any]

ESCAPE = "\x1b]0;title\x07\x1b[2J"
"""Escape sequences that set the title of a terminal and clear it."""


def a_run(directory: Path, name: str, mark: str | None = None) -> str:
    """Create a run of two repetitions with a flow of that name; with a mark, also a third repetition with that mark."""
    sweep = {"flow.x.cc": name}
    synthetic = SyntheticRun(
        directory, [experiment(0, n, sweep=sweep, flows=[flow(name)]) for n in range(2 + bool(mark))]
    )
    for n in range(2):
        synthetic.transfer(0, n, name, end_us=1_000_000 + n)
    if mark:
        synthetic.transfer(0, 2, name, untrustworthy=mark)
    return str(synthetic.write())


@pytest.mark.parametrize("words", [["results"], ["results", "--json"], ["results", "--csv"], ["compare"]])
def test_control_characters_of_a_run_never_reach_a_terminal(thalweg: Thalweg, tmp_path: Path, words: list[str]) -> None:
    run = a_run(tmp_path / "run", f"x{ESCAPE}\x9b31m", mark=f"late {ESCAPE}")
    done = thalweg(*words[:1], run, *(["--by", "flow.x.cc"] if words == ["compare"] else []), *words[1:])
    printed = done.stdout + done.stderr
    assert "x" in printed
    assert all(output == "\n" or unicodedata.category(output) != "Cc" for output in printed)


@pytest.mark.parametrize("name", ["=cmd|' /C calc'!A0", "+1+1", "-1+1", "@SUM(A1)", "\t=1+1", "\r=1+1", "\uff1d1+1"])
def test_a_cell_of_csv_never_starts_a_formula(thalweg: Thalweg, tmp_path: Path, name: str) -> None:
    done = thalweg("results", a_run(tmp_path / "run", name), "--csv")
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert {row["flow"] for row in rows} - {""} == {printable.value(f"'{name}")}
    assert {row["flow.x.cc"] for row in rows} == {printable.value(f"'{name}")}


def test_numbers_of_csv_stay_numbers() -> None:
    assert [printable.csv_cell(text) for text in ("-5", "+0.5", "-1e-9", "-.5", "-inf")] == [
        "-5",
        "+0.5",
        "-1e-9",
        "-.5",
        "-inf",
    ]
    assert printable.csv_cell("-5+1") == "'-5+1"


def test_right_to_left_overrides_are_escaped() -> None:
    assert printable.lines("a\u202eb") == "a\\u202eb"
