"""The executor `slurm`: a real cluster of one node writes the same tables as this machine."""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import slurm_node
from thalweg import engine, executors, plan, scenario
from thalweg.engine_output import EngineEvent
from thalweg.errors import Exit, ThalwegError
from thalweg.executors import Work

SCENARIO = """\
name = "many"
repetitions = 6
start_jitter = "1rtt"
sample_interval = "50ms"
duration = "2s"
[path]
rate = "10Mbps"
rtt = "20ms"
[[flow]]
name = "bulk"
cc = "cubic"
[sweep]
"path.loss" = [0.0, 0.01]
"""

CPUS = 4
"""Number of CPUs of the node, possibly more than the machine has; Slurm trusts its configuration."""


@pytest.fixture(scope="module")
def environment() -> Iterator[dict[str, str]]:
    if why := slurm_node.missing():
        if os.environ.get("THALWEG_CI"):
            pytest.fail(why)
        pytest.skip(why)
    # The path of a socket has at most 107 bytes, which pytest's folders may exceed.
    with tempfile.TemporaryDirectory(prefix="slurm-") as folder, slurm_node.node(Path(folder), CPUS) as node:
        yield node


@pytest.fixture(autouse=True)
def commands(environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SLURM_CONF", "PATH"):
        monkeypatch.setenv(name, environment[name])


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> plan.Plan:
    file = tmp_path_factory.mktemp("scenario") / "many.toml"
    file.write_text(SCENARIO)
    capabilities = engine.capabilities(engine.DEFAULT)
    return plan.make(scenario.load(file), capabilities.engines[engine.DEFAULT], capabilities.engines)


def tables(run: Path) -> dict[str, bytes]:
    return {str(file.relative_to(run)): file.read_bytes() for file in run.rglob("*.parquet")}


MORTAL = """\
#!/bin/sh
# The engine; the first task that calls it is killed with its script after a moment, as when a node dies.
case "$(tr '\\0' ' ' < /proc/$PPID/cmdline)" in *slurm_script*) is_task=yes ;; esac
if [ "$is_task" ] && mkdir KILLED 2> /dev/null; then
    timeout --signal=KILL 0.1 ENGINE "$@"
    kill -KILL $PPID $$
fi
exec ENGINE "$@"
"""


def test_a_sweep_survives_a_killed_task_with_the_same_tables(planned: plan.Plan, tmp_path: Path) -> None:
    executors.execute(Work(planned, tmp_path / "local", engine.find()))
    killed, mortal = tmp_path / "killed", tmp_path / "mortal-engine"
    mortal.write_text(MORTAL.replace("KILLED", str(killed)).replace("ENGINE", str(engine.find())))
    mortal.chmod(0o755)
    outcome = executors.execute(Work(planned, tmp_path / "run", mortal, shards=3), "slurm")
    assert killed.is_dir()
    assert (outcome.exit_code, outcome.finished, outcome.failed) == (Exit.FINE, len(planned.experiments), [])
    assert tables(tmp_path / "run") == tables(tmp_path / "local")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["killed", "local", "mortal-engine", "run"]


def test_ctrl_c_cancels_the_job_and_keeps_finished_experiments(planned: plan.Plan, tmp_path: Path) -> None:
    def interrupt(event: EngineEvent) -> None:
        if event["event"] == "finished" and not stopping:
            stopping.append(event)
            raise KeyboardInterrupt

    stopping: list[EngineEvent] = []
    work = Work(planned, tmp_path / "run", engine.find(), listener=interrupt, shards=12)
    outcome = executors.execute(work, "slurm")
    assert outcome.exit_code is Exit.INTERRUPTED
    assert tables(tmp_path / "run")
    queued = subprocess.run(
        ["squeue", "--noheader", "--states=PENDING,RUNNING"], capture_output=True, text=True, check=True
    )
    assert queued.stdout == ""
    again = executors.execute(Work(planned, tmp_path / "run", engine.find()), "slurm")
    assert (again.exit_code, again.present + again.finished) == (Exit.FINE, len(planned.experiments))


def test_a_job_that_slurm_refuses_is_explained(
    planned: plan.Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SBATCH_PARTITION", "nowhere")
    with pytest.raises(ThalwegError) as raised:
        executors.execute(Work(planned, tmp_path / "run", engine.find()), "slurm")
    assert raised.value.code == "slurm-refused"
    assert "invalid partition" in (raised.value.found or "")


def test_a_node_without_the_engine_is_explained(planned: plan.Plan, tmp_path: Path) -> None:
    gone = tmp_path / "engine"
    gone.symlink_to(engine.find())

    def remove(event: EngineEvent) -> None:
        gone.unlink(missing_ok=True)

    # The first event removes the link to the engine, so the node does not find it.
    with pytest.raises(ThalwegError) as raised:
        executors.execute(Work(planned, tmp_path / "run", gone, listener=remove, shards=2), "slurm")
    assert "the engine is not at the same path as on this machine" in raised.value.message
