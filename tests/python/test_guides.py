"""The guides work: their commands are run, and their scenarios are checked."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType

import polars as pl
import pytest
import yaml
from real_engines import UNTRUSTWORTHY
from thalweg import checks, engine, plan, scenario

ROOT = Path(__file__).parents[2]
GUIDES = ROOT / "docs" / "guide"

DONE_BEFORE = {"thalweg kernel build", "thalweg kernel fetch"}
"""Commands of guides that take minutes or need a network, and that the set-up of the tests has already run."""

EXPECTED_TO_FAIL = {
    "thalweg check wrong.toml": 2,
    "thalweg compare runs/before runs/after": 1,
    "thalweg compare runs/applications-sim-* --by path.queue --measure completion_time_p99 --measure page_time": 1,
    "thalweg compare runs/before runs/after --tolerance 10% --measure goodput --all": 1,
    "thalweg compare runs/before --by path.buffer --measure latency_under_load --measure stability --measure jain": 1,
}
"""Commands that fail intentionally in a guide, and their exit codes."""


ATTEMPTS = 30
"""Maximum number of attempts: a busy machine disturbs real-time engines, and the guide describes how to retry."""


def commands(guide: str) -> list[str]:
    blocks = re.findall(r"^```console\n(.*?)^```", (GUIDES / guide).read_text(), flags=re.M | re.S)
    return [line.removeprefix("$ ") for block in blocks for line in block.splitlines() if line.startswith("$ ")]


def outputs(guide: str) -> dict[str, list[str]]:
    """Return the lines that a guide shows below a block of commands, by the last command of the block."""
    text = (GUIDES / guide).read_text()
    blocks = re.findall(r"^```console\n((?:\$ [^\n]*\n)+)```\n\n```text\n(.*?)^```", text, flags=re.M | re.S)
    return {typed.splitlines()[-1].removeprefix("$ "): shown.splitlines() for typed, shown in blocks}


def assert_prints(printed: list[str], shown: list[str]) -> None:
    """Fail unless the lines are printed as shown; a line `...` matches any number of lines."""
    lines = iter(printed)
    is_gap = False
    for line in shown:
        if line == "...":
            is_gap = True
            continue
        found = next((other for other in lines if other == line), None) if is_gap else next(lines, None)
        assert found == line, "the guide shows another output"
        is_gap = False


def scenarios(guide: str) -> list[str]:
    blocks = re.findall(r"^```toml\n(.*?)^```", (GUIDES / guide).read_text(), flags=re.M | re.S)
    return [block for block in blocks if block.startswith("name = ")]


def rows(guide: str) -> str:
    block = re.search(r"^```csv\n(.*?)^```", (GUIDES / guide).read_text(), flags=re.M | re.S)
    assert block
    return block[1]


def follow(
    guide: str,
    folder: Path,
    changes: Mapping[str, tuple[str, str]] = MappingProxyType({}),
    others: Mapping[str, str] = MappingProxyType({}),
    *,
    with_outputs: bool = False,
) -> None:
    """Run the commands of a guide, in order, in a folder with the bundled scenarios.

    `changes` replace texts of scenarios, to shorten long runs. `others` replace texts of commands. With `with_outputs`,
    the output of the commands is compared with the guide.
    """
    shutil.copytree(ROOT / "scenarios", folder / "scenarios")
    for name, (text, other) in changes.items():
        file = folder / "scenarios" / name
        assert text in file.read_text()
        file.write_text(file.read_text().replace(text, other))
    shim = folder / "bin" / "thalweg"
    shim.parent.mkdir()
    shim.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m thalweg "$@"\n')
    shim.chmod(0o755)
    path = f"{shim.parent}:{os.environ['PATH']}:{Path(sys.executable).parent}"
    environment = os.environ | {"PATH": path, "PYTHONPATH": os.pathsep.join(sys.path)}
    for command in commands(guide):
        for text, other in others.items():
            command = command.replace(text, other)
        if command in DONE_BEFORE:
            continue
        again = command if "--retry-untrustworthy" in command else f"{command} --retry-untrustworthy"
        for typed in (command, *[again] * (ATTEMPTS - 1)):
            done = subprocess.run(["sh", "-c", typed], cwd=folder, env=environment, capture_output=True, text=True)
            if done.returncode not in UNTRUSTWORTHY or not command.startswith(("thalweg run", "thalweg validate")):
                break
        expected = EXPECTED_TO_FAIL.get(command, 0)
        assert done.returncode == expected, f"{command}\n{done.stdout}\n{done.stderr}"
        if with_outputs and command in outputs(guide):
            assert_prints(done.stdout.splitlines(), outputs(guide)[command])


def test_first_experiment_commands_work_in_order(tmp_path: Path) -> None:
    follow("first-experiment.md", tmp_path)
    assert (tmp_path / "both.html").exists()
    assert len(list((tmp_path / "runs").iterdir())) == 2


def test_single_machine_cluster_commands_work_in_order(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    try:
        follow("outgrow-one-machine.md", tmp_path, others={"8786": port})
    finally:
        for name in ("worker.pid", "scheduler.pid"):
            with suppress(OSError, ValueError):
                os.kill(int((tmp_path / name).read_text()), signal.SIGTERM)


def test_comparison_commands_work_in_order(tmp_path: Path) -> None:
    follow("compare.md", tmp_path, with_outputs=True)


def test_application_commands_work_in_order(tmp_path: Path) -> None:
    """Experiments are shorter than in the guide."""
    text = (ROOT / "scenarios" / "applications.toml").read_text()
    short = text.replace('"60s"', '"15s"').replace("repetitions = 5", "repetitions = 2")
    follow("applications.md", tmp_path, {"applications.toml": (text, short)})


def test_records_commands_work_in_order(tmp_path: Path) -> None:
    follow("a-week-of-records.md", tmp_path)
    assert (tmp_path / "example.html").exists()


def test_advice_commands_work_in_order(tmp_path: Path) -> None:
    follow("where-does-bbr-help.md", tmp_path, with_outputs=True)
    assert (tmp_path / "advice.html").exists()
    assert "[[rules]]" in (tmp_path / "policy.toml").read_text()


def test_search_commands_work_in_order(tmp_path: Path) -> None:
    """Experiments are shorter than in the guide, and the constraint is looser accordingly."""
    text = (ROOT / "scenarios" / "optimise-bbr.toml").read_text()
    short = text.replace('"5s"', '"500ms"').replace("repetitions = 5", "repetitions = 2").replace("<= 0.5", "<= 0.9")
    follow("search-for-parameters.md", tmp_path, {"optimise-bbr.toml": (text, short)})
    (table,) = (tmp_path / "runs").glob("optimise-bbr-search-*/candidates.parquet")
    assert pl.read_parquet(table).height == 30, "as many as the larger budget"


@pytest.mark.usefixtures("kernel")
def test_real_kernel_commands_work_in_order(tmp_path: Path) -> None:
    follow("real-kernel.md", tmp_path, {"real-kernel.toml": ('duration = "8s"', 'duration = "1500ms"')})
    assert (tmp_path / "engines.html").exists()
    assert {path.name.split("-")[2] for path in (tmp_path / "runs").glob("real-kernel-*")} == {"sim", "kernel"}
    assert list((tmp_path / "runs").glob("real-kernel-kernel-*/commands.log"))


@pytest.mark.usefixtures("built_kernel")
def test_virtual_time_commands_work_in_order(tmp_path: Path) -> None:
    follow("virtual-time.md", tmp_path, {"real-kernel.toml": ('duration = "8s"', 'duration = "800ms"')})
    assert (tmp_path / "both.html").exists()
    assert {path.name.split("-")[2] for path in (tmp_path / "runs").glob("real-kernel-*")} == {"sim", "uml"}


@pytest.mark.usefixtures("vm")
def test_virtual_machine_commands_work_in_order(tmp_path: Path) -> None:
    follow("virtual-machines.md", tmp_path, {"real-kernel.toml": ('duration = "8s"', 'duration = "800ms"')})
    assert [path.name.split("-")[2] for path in (tmp_path / "runs").glob("real-kernel-*")] == ["vm"]


@pytest.mark.parametrize(
    "text",
    [*scenarios("scenarios.md"), *scenarios("real-kernel.md"), *scenarios("choose-a-queue.md")],
    ids=lambda text: text.split('"')[1],
)
def test_scenarios_of_the_guide_are_valid(text: str, tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text(text)
    (tmp_path / "paths.csv").write_text(rows("scenarios.md"))
    capabilities = engine.capabilities()
    assert plan.make(
        scenario.load(tmp_path / "x.toml"), capabilities.engines[engine.DEFAULT], capabilities.engines
    ).experiments


def test_links_of_guides_and_reference_are_valid() -> None:
    for page in [*GUIDES.glob("*.md"), *(ROOT / "docs" / "reference").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+)", page.read_text()):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_ci_commands_work_in_order(tmp_path: Path) -> None:
    (scenario_text,) = re.findall(r"^```toml\n(.*?)^```", (GUIDES / "test-in-ci.md").read_text(), flags=re.M | re.S)
    (tmp_path / "congestion.toml").write_text(scenario_text.replace('"20s"', '"4s"'))
    follow("test-in-ci.md", tmp_path)


def test_the_bundled_workflow_checks_the_scenario_of_its_guide(tmp_path: Path) -> None:
    """The workflow's steps are shell commands, and its checks use flows and measures of the scenario."""
    workflow = yaml.safe_load((ROOT / "packaging" / "ci" / "thalweg.yml").read_text())
    steps = [step["run"] for step in workflow["jobs"]["judge"]["steps"] if "run" in step]
    for step in steps:
        done = subprocess.run(["bash", "-n"], input=step, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    bounds = re.findall(r"--check '(.*?)'", steps[-1])
    assert bounds
    (scenario_text,) = re.findall(r"^```toml\n(.*?)^```", (GUIDES / "test-in-ci.md").read_text(), flags=re.M | re.S)
    (tmp_path / "congestion.toml").write_text(scenario_text)
    document = scenario.load(tmp_path / "congestion.toml")
    names = [str(flow["name"]) for flow in document.flows]
    assert len(checks.parse_all(bounds, names, {0: {}})) == len(bounds)
    assert '"$SCENARIO"' in steps[-1]
    assert workflow["env"]["SCENARIO"].endswith("congestion.toml")


@pytest.mark.usefixtures("kernel")
def test_the_path_command_fetches_its_page(tmp_path: Path) -> None:
    if shutil.which("curl") is None:
        pytest.skip("no curl")
    follow("shell.md", tmp_path)
    assert "scenarios" in (tmp_path / "page.html").read_text(), "the server lists its folder"
