"""Start-up time: modules for computing and drawing are imported only when needed."""

import subprocess
import sys
from pathlib import Path

import pytest
from thalweg.cli import main

ROOT = Path(__file__).parents[3]

TYPER = {
    "annotated_types",
    "annotated_doc",
    "pydantic",
    "pydantic_core",
    "shellingham",
    "typer",
    "typing_extensions",
    "typing_inspection",
}
"""Typer, Pydantic, and their dependencies."""


def imported(*words: str) -> set[str]:
    """Return the third-party packages that a command imports."""
    code = (
        "import sys; before = set(sys.modules); from thalweg.cli.main import app; assert app() == 0; "
        "names = {name.partition('.')[0] for name in sys.modules.keys() - before}; "
        "print('\\n', *(names - sys.stdlib_module_names), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *words], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )
    return {name for name in done.stderr.splitlines()[-1].split() if not name.startswith("_")} - {"thalweg"}


def test_help_imports_only_typer() -> None:
    assert imported("--help") <= TYPER


def test_check_imports_no_analysis_or_plotting_library() -> None:
    assert imported("check", "scenarios/quickstart.toml") <= TYPER


def test_a_report_of_one_run_imports_neither_altair_nor_scipy(tmp_path: Path) -> None:
    scenario = ["scenarios/quickstart.toml", "--set", "duration=1s", "--set", "repetitions=2"]
    libraries = imported("run", *scenario, "--out", str(tmp_path / "run"))
    assert (tmp_path / "run" / "report.html").exists()
    assert "polars" in libraries
    assert not libraries & {"altair", "scipy", "vl_convert"}


@pytest.mark.parametrize("command", main.COMMANDS, ids=lambda command: command.name)
def test_the_command_list_shows_the_first_help_line_of_each(command: main.Lazy) -> None:
    assert command.help
    assert (command.loaded().help or "").startswith(command.help)
