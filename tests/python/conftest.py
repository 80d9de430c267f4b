"""Shared fixtures: `thalweg` as called on the command line, and a fake engine."""

import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from browsers import ARGUMENTS
from hypothesis import settings
from playwright.sync_api import Browser, sync_playwright
from thalweg import engine
from thalweg.cli.main import app
from thalweg.kernel import Kernel, current

HERE = Path(__file__).parent

# The duration of an example depends on the load of the machine.
settings.register_profile("thalweg", deadline=None)
settings.load_profile("thalweg")

# Background jobs of shell scripts ignore Ctrl-C, which child processes would inherit.
signal.signal(signal.SIGINT, signal.default_int_handler)
# Under nohup, SIGHUP is ignored. This process still ignores it, but its children get the default.
if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
    signal.signal(signal.SIGHUP, lambda _number, _frame: None)

SCENARIO = """\
name = "race"
[path]
rate = "40Mbps"
rtt = "45ms"
[[flow]]
name = "large"
cc = "cubic"
size = "30MB"
[[flow]]
name = "medium"
cc = "bbr"
size = "1MB"
start = "0.5s"
repeat = {gap = "0.1s", until = "large"}
[sweep]
"path.buffer" = ["0.5bdp", "2bdp"]
"flow.medium.cc" = ["bbr", "cubic"]
"""


@dataclass(frozen=True)
class Done:
    """Result of a command."""

    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def thalweg(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Callable[..., Done]:
    """Return a function that calls `thalweg` in a folder with the scenario race.toml, with 80 columns and without
    colour.

    The call is within this process, which is much faster than starting a new one.
    """
    (tmp_path / "race.toml").write_text(SCENARIO)
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str, **environment: str) -> Done:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "argv", ["thalweg", *arguments])
            for name, value in ({"COLUMNS": "80", "NO_COLOR": "1"} | environment).items():
                patch.setenv(name, value)
            capfd.readouterr()
            code = app()
            captured = capfd.readouterr()
        return Done(int(code), captured.out, captured.err)

    return call


@pytest.fixture
def kernel() -> None:
    """Require the engine `kernel`; if it is missing, the test is skipped, or fails in CI."""
    _needs("kernel")


@pytest.fixture
def uml() -> None:
    """Require the engine `uml`."""
    _needs("uml")


@pytest.fixture
def vm() -> None:
    """Require the engine `vm`."""
    _needs("vm")


def _needs(name: str) -> None:
    why = engine.capabilities().engines[name].why_not
    if why and os.environ.get("THALWEG_CI"):
        pytest.fail(f"the engine {name} cannot run here: {why}")
    if why:
        pytest.skip(f"the engine {name} cannot run here: {why}")


@pytest.fixture
def built_kernel() -> Kernel:
    """Return the kernel that runs in virtual time; if none is built, the test is skipped, or fails in CI."""
    used = current()
    why = "the kernel of `uml` is not built: thalweg kernel build"
    if used is None and os.environ.get("THALWEG_CI"):
        pytest.fail(why)
    if used is None:
        pytest.skip(why)
    return used


@pytest.fixture
def fake_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Install a fake thalweg-engine, configured by FAKE_ENGINE; see fake_engine.py."""
    binary = tmp_path / "fake-engine"
    binary.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "{HERE / "fake_engine.py"}" "$@"\n')
    binary.chmod(0o755)
    monkeypatch.setenv("THALWEG_ENGINE", str(binary))
    return binary


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Start Chromium without background network requests."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if not chromium:
        pytest.fail("pages are tested in Chromium, which is missing here: type `apt-get install chromium`")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        yield started
        started.close()
