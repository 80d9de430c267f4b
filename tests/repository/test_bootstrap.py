"""Where the set-up cannot go on, it says what is missing and what to do."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
USUAL = ("bash", "cat", "cut", "dirname", "env", "head", "sed", "sort")


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A PATH with little on it: an ordinary user of Debian without Rust, Python, a C compiler or a browser."""
    for name in USUAL:
        real = shutil.which(name)
        assert real, name
        (tmp_path / name).symlink_to(real)
    program(tmp_path, "id", "echo 1000")
    program(tmp_path, "apt-get", "exit 1")
    return tmp_path


def program(machine: Path, name: str, script: str) -> None:
    (machine / name).write_text(f"#!/bin/bash\n{script}\n")
    (machine / name).chmod(0o755)


def stopped(machine: Path, *steps: str) -> str:
    environment = {"PATH": str(machine), "HOME": str(machine), "MAKE_GOAL": "demo"}
    command = [str(ROOT / "tools" / "bootstrap"), *steps]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done
    return done.stderr


def test_without_rust_it_says_where_to_get_it(machine: Path) -> None:
    said = stopped(machine, "system")
    assert "cannot go on: cargo (Rust) is missing" in said
    assert "do this: install Rust" in said


def test_rust_that_the_shell_does_not_see_is_named(machine: Path) -> None:
    (machine / ".cargo" / "bin").mkdir(parents=True)
    program(machine / ".cargo" / "bin", "cargo", "exit 0")
    assert 'do this: . "$HOME/.cargo/env"' in stopped(machine, "system")


def test_old_rust_is_refused_with_both_versions(machine: Path) -> None:
    program(machine, "cargo", "exit 0")
    program(machine, "rustc", "echo 'rustc 1.63.0 (4b91a6ea7 2022-08-08)'")
    said = stopped(machine, "system")
    assert "Rust 1.63.0 is too old: 1." in said
    assert "do this: rustup update" in said


def test_without_a_c_compiler_it_says_what_to_install(machine: Path) -> None:
    program(machine, "cargo", "exit 0")
    program(machine, "rustc", "echo 'rustc 1.999.0'")
    assert "do this: sudo apt-get install gcc libc6-dev" in stopped(machine, "system")


def test_old_python_is_refused_with_its_version(machine: Path) -> None:
    program(machine, "python3", '[ "$1" = --version ] && echo Python 3.9.2 || exit 1')
    said = stopped(machine, "venv")
    assert "Python 3.11 or newer is missing (found: Python 3.9.2)" in said
    assert "make demo PYTHON=" in said


def test_without_chromium_it_says_what_to_install(machine: Path) -> None:
    said = stopped(machine, "browser")
    assert "Chromium is missing" in said
    assert "do this: sudo apt-get install chromium" in said


def test_without_clippy_it_says_what_to_add(machine: Path) -> None:
    program(machine, "cargo", '[ "$1" = fmt ]')
    assert "do this: rustup component add rustfmt clippy" in stopped(machine, "lints")
