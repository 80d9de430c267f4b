"""The available executors, and what they reject."""

from pathlib import Path

import pytest
from thalweg import engine, executors, plan
from thalweg.errors import ThalwegError
from thalweg.executors import Work, slurm


@pytest.mark.parametrize("name", ["dusk", "dask", "dask://", "slurm://node", ""])
def test_an_unknown_executor_is_refused_with_the_known_ones(name: str) -> None:
    with pytest.raises(ThalwegError) as raised:
        executors.check(name)
    assert raised.value.expected == "local, dask://HOST:PORT or slurm"


def test_slurm_without_its_commands_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(ThalwegError) as raised:
        executors.check("slurm")
    assert "needs the command sbatch, which is not on the PATH" in raised.value.message


def test_real_time_engines_run_only_on_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slurm, "check", lambda: None)
    live = plan.Plan(
        format=1, engine="kernel", name="x", about="", source="", scenario_toml="", traces={}, experiments=[]
    )
    with pytest.raises(ThalwegError) as raised:
        executors.execute(Work(live, tmp_path / "run", engine.find()), "slurm")
    assert raised.value.code == "real-time-engine"
    assert raised.value.hint == "--executor local"
