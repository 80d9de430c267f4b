"""An import that is ended by a signal leaves no files."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from importing import SAMPLES
from thalweg.errors import Exit

WITHIN_S = 60

SLOW = """
import os, signal, sys, time

# A shell starts background jobs with this signal ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)

def wait(descriptor):
    print("writing", flush=True)
    time.sleep(600)

os.fsync = wait
from thalweg.cli.main import app
sys.exit(app())
"""
"""A `thalweg` that waits after an import has written its file and before it is renamed."""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda line: line.name)
def test_a_terminated_import_removes_its_file_and_folder(tmp_path: Path, number: signal.Signals) -> None:
    out = tmp_path / "records"
    words = ["nginx", str(SAMPLES / "nginx-tcp.log"), "--config", str(SAMPLES / "nginx.conf"), "--format-name", "tcp"]
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW, "import", *words, "--out", str(out)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout
    assert process.stdout.readline() == "writing\n"
    assert [file.suffix for file in out.iterdir()] == [".part"]
    process.send_signal(number)
    _, messages = process.communicate(timeout=WITHIN_S)
    assert process.returncode == Exit.INTERRUPTED, messages
    assert not out.exists()
