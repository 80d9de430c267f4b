"""`thalweg compare SCENARIO --kernel A --kernel B`: two kernels of guests, in one command."""

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from thalweg.cli.commands import two_kernels
from thalweg.errors import Exit
from thalweg.kernel import guests
from thalweg.results import open_run
from thalweg.run import Outcome

Thalweg = Callable[..., Any]

SCENARIO = """\
name = "short"
duration = "1s"
sample_interval = "100ms"
[path]
rate = "5Mbps"
rtt = "20ms"
[[flow]]
name = "bulk"
cc = "cubic"
"""

ATTEMPTS = 5
"""Maximum number of attempts at the comparison on a busy machine."""

LEFT_OUT = "tcp_yeah.ko"
"""A module that no flow uses; a kernel without it counts as a different kernel."""


@pytest.fixture
def kernels(vm: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the names of two kernels in a command: the guests' default kernel, and the same one without one of its
    modules.
    """
    current = guests.current()
    image = Path(os.environ.get(guests.IMAGE_VARIABLE) or (current.image if current else ""))
    modules = Path(os.environ.get(guests.MODULES_VARIABLE) or (current.modules if current else ""))
    # The command sets both variables in this process; monkeypatch restores them after the test.
    monkeypatch.setenv(guests.IMAGE_VARIABLE, "")
    monkeypatch.setenv(guests.MODULES_VARIABLE, "")
    fewer = tmp_path / "modules"
    fewer.mkdir()
    for module in modules.rglob("*.ko*"):
        if not module.name.startswith(LEFT_OUT):
            (fewer / module.name).symlink_to(module.resolve())
    words = [str(image), str(modules), str(image), str(fewer)]
    return [word for pair in zip(("--kernel", "--modules") * 2, words, strict=True) for word in pair]


def test_two_kernels_run_a_scenario_and_are_compared(thalweg: Thalweg, tmp_path: Path, kernels: list[str]) -> None:
    (tmp_path / "short.toml").write_text(SCENARIO)
    done = thalweg("compare", "short.toml", *kernels)
    for _ in range(ATTEMPTS - 1):
        if "untrustworthy" not in done.stderr:
            break
        shutil.rmtree(tmp_path / "runs")
        done = thalweg("compare", "short.toml", *kernels)
    # On a busy machine, every attempt may be untrustworthy; nothing is compared then.
    assert done.returncode == Exit.NO_EVIDENCE, "one repetition says nothing of chance"
    begin = "Nothing was compared" if "untrustworthy" in done.stderr else "No verdict on any of "
    assert done.stdout.startswith(begin), done.stderr
    runs = [open_run(directory) for directory in sorted((tmp_path / "runs").iterdir())]
    assert [run.engine for run in runs] == ["vm", "vm"]
    assert len({run.meta["result_version"] for run in runs}) == 2, "each has a kernel of its own"
    for run in runs:
        assert run.flows()["acked_bytes"].sum() > 0
    versions = dict(re.findall(r"^([AB]): runs/\S+ \(engine vm \S+, (.+)\)$", done.stderr, flags=re.MULTILINE))
    assert sorted(versions) == ["A", "B"], done.stderr
    assert {f"{run.meta['result_version']}".partition(" on ")[2] for run in runs} == set(versions.values())

    when = {run.path: run.meta["created"] for run in runs}
    again = thalweg("compare", "short.toml", *kernels)
    assert again.stdout == done.stdout
    assert {run: open_run(run).meta["created"] for run in when} == when, "what is there is not run again"


def test_a_kernel_can_be_compared_with_itself(
    tmp_path: Path, kernels: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "short.toml").write_text(SCENARIO)
    monkeypatch.setattr(two_kernels, "execute", lambda *_, **__: Outcome())
    first, second = two_kernels.run_both(tmp_path / "short.toml", [kernels[1]] * 2, [Path(kernels[3])] * 2)
    assert second == first.with_name(f"{first.name}-2")
