"""The temporary folder for data larger than memory is removed; after SIGKILL, by the next command."""

import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from synthetic_traffic import Traffic, write
from thalweg.advise.counting.engines import SCRATCH
from thalweg.errors import Exit
from thalweg.scratch import Scratch

WITHIN_S = 60

SLOW = """\
import sys, thalweg.advise.judging as judging
from thalweg.cli.main import app
within = judging.sampling.samples
def samples(engine, *others):
    print("counting", flush=True)
    made = within(engine, *others)
    while True:
        engine.fetch(made.group_by("cell").agg(n=made.count()))
judging.sampling.samples = samples
sys.exit(app())
"""
"""A `thalweg` whose queries run until it is interrupted."""


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def counting(records: Path) -> "subprocess.Popen[str]":
    """Start `thalweg advise`, and wait until its query runs."""
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW, "advise", str(records)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout
    assert process.stdout.readline() == "counting\n"
    return process


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda signal_: signal_.name)
def test_a_terminated_process_leaves_no_scratch_files(temporary: Path, tmp_path: Path, number: signal.Signals) -> None:
    write(tmp_path / "records" / "some.parquet", Traffic(rows=2000).frame())
    process = counting(tmp_path / "records")
    assert len(list(temporary.glob("thalweg-advise-*"))) == 1
    process.send_signal(number)
    _, output = process.communicate(timeout=WITHIN_S)
    assert process.returncode == Exit.INTERRUPTED, output
    assert not list(temporary.iterdir())


def test_scratch_files_of_a_killed_process_are_removed_by_the_next(temporary: Path, tmp_path: Path) -> None:
    write(tmp_path / "records" / "some.parquet", Traffic(rows=2000).frame())
    process = counting(tmp_path / "records")
    (mine,) = temporary.glob("thalweg-advise-*")
    other = Scratch(SCRATCH)
    assert mine.exists(), "what is in use stays"
    process.kill()
    process.communicate(timeout=WITHIN_S)
    assert mine.exists()
    Scratch(SCRATCH).remove()
    assert list(temporary.iterdir()) == [other.folder]
    other.remove()
    assert not list(temporary.iterdir())
