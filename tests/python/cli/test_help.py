"""Help, usage errors, and completion: all texts before a command runs."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion
from thalweg import __version__
from thalweg.errors import Exit

Thalweg = Callable[..., Any]

COMMANDS = [
    "check", "run", "results", "report", "compare", "validate", "records", "import", "advise", "schema", "doctor",
    "kernel", "synth", "policy", "optimise", "fuzz",
]  # fmt: skip


def test_the_help_names_every_command_and_exit_code(thalweg: Thalweg, snapshot: SnapshotAssertion) -> None:
    done = thalweg("--help")
    assert done.stdout == snapshot
    for command in COMMANDS:
        assert f"\n  {command} " in done.stdout
    for code in Exit:
        assert re.search(rf"\b{code.value}\b", done.stdout)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_a_command_has_an_example(thalweg: Thalweg, command: str, snapshot: SnapshotAssertion) -> None:
    done = thalweg(command, "--help")
    assert done.returncode == 0
    assert f"Example: thalweg {command}" in done.stdout
    assert done.stdout == snapshot


@pytest.mark.parametrize("command", ["build", "fetch", "list", "use", "remove"])
def test_the_help_of_a_kernel_command_has_an_example(
    thalweg: Thalweg, command: str, snapshot: SnapshotAssertion
) -> None:
    done = thalweg("kernel", command, "--help")
    assert f"Example: thalweg kernel {command}" in done.stdout
    assert done.stdout == snapshot


def test_the_help_of_synthetic_records_has_an_example(thalweg: Thalweg, snapshot: SnapshotAssertion) -> None:
    done = thalweg("synth", "cdn", "--help")
    assert "Example: thalweg synth cdn" in done.stdout
    assert done.stdout == snapshot


def test_the_help_of_playing_policies_has_an_example(thalweg: Thalweg, snapshot: SnapshotAssertion) -> None:
    done = thalweg("policy", "simulate", "--help")
    assert "Example: thalweg policy simulate" in done.stdout
    assert done.stdout == snapshot


@pytest.mark.parametrize("command", [*COMMANDS, "studies", "reproduce", "shell"])
def test_the_help_of_a_command_fits_one_screen(thalweg: Thalweg, command: str) -> None:
    lines = thalweg(command, "--help", COLUMNS="100").stdout.splitlines()
    assert len(lines) <= 40
    assert not [line for line in lines if re.search(r"<(\w+|list\[\w+\])>", line)], "names of Python's types"


def test_without_a_command_help_is_printed(thalweg: Thalweg) -> None:
    done = thalweg()
    assert "Usage: thalweg" in done.stdout + done.stderr
    assert done.returncode == Exit.USAGE


@pytest.mark.parametrize(
    "arguments",
    [
        ["chek"],
        ["check"],
        ["check", "race.toml", "--jsn"],
        ["run", "race.toml", "--threads", "0"],
        ["run", "race.toml", "--seed", "x"],
        ["run", "race.toml", "--shards", "3"],
        ["doctor", "--seconds", "3"],
        ["results"],
        ["report"],
        ["schema", "--plan", "--columns"],
        ["check", "nothing.toml"],
        ["check", "race.toml", "--set", "path.bufer=1bdp"],
        ["check", "race.toml", "--set", "path.buffer"],
        ["check", "race.toml", "--set", "path.buffer=[1, 2]"],
        ["check", "race.toml", "--set", "path.buffer={a = 1}"],
        ["check", "race.toml", "--set", "path.rtt=[20ms, 80ms]"],
        ["check", "race.toml", "--engine", "sin"],
        ["check", "race.toml", "--engine", "kernel"],
        ["results", "runs/nothing"],
        ["report", "runs/nothing"],
        ["validate", "sim"],
        ["validate", "sim", "kernel"],
    ],
    ids=" ".join,
)
def test_a_usage_error_suggests_a_command(
    thalweg: Thalweg, fake_engine: object, arguments: list[str], snapshot: SnapshotAssertion
) -> None:
    done = thalweg(*arguments)
    assert done.stdout == ""
    assert f"exit {done.returncode}\n{done.stderr}" == snapshot


@pytest.mark.parametrize(
    ("typed", "instead"),
    [
        (["report", "a run", "--output", "both.html"], "thalweg report 'a run' --out both.html"),
        (["records", "r", "--html=week.html"], "thalweg records r --out=week.html"),
        (["advise", "r", "--html", "advice.html"], "thalweg advise r --out advice.html"),
    ],
    ids=lambda words: words[0],
)
def test_a_renamed_option_is_refused_with_its_new_name(thalweg: Thalweg, typed: list[str], instead: str) -> None:
    done = thalweg(*typed)
    assert done.returncode == Exit.USAGE
    assert "error[renamed-option]" in done.stderr
    assert f"hint: {instead}\n" in done.stderr


def test_an_option_with_one_value_is_refused_if_it_is_repeated(thalweg: Thalweg) -> None:
    for command in (["check", "x.toml", "--engine"], ["synth", "cdn", "--out"]):
        done = thalweg(*command, "sim", f"{command[-1]}=vm")
        assert done.returncode == Exit.USAGE
        assert f"{command[-1]} is given 2 times" in done.stderr
    # The other kinds of options may be repeated.
    done = thalweg("check", "x.toml", "--json", "--json", "--set", "path.rtt=10ms", "--set", "path.rate=10Mbps")
    assert "times" not in done.stdout + done.stderr


def test_the_version_is_printed(thalweg: Thalweg) -> None:
    assert thalweg("--version").stdout == f"thalweg {__version__}\n"


def test_shell_completion_offers_commands(thalweg: Thalweg) -> None:
    done = thalweg(_THALWEG_COMPLETE="complete_bash", COMP_WORDS="thalweg re", COMP_CWORD="1")
    assert done.stdout.split() == ["results", "report", "reproduce", "records"]


def test_shell_completion_can_be_installed(thalweg: Thalweg) -> None:
    done = thalweg("--show-completion", "bash", _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1")
    assert "_THALWEG_COMPLETE=complete_bash" in done.stdout
