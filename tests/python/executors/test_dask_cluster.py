"""The executor `dask://`: a real cluster of several processes writes the same tables as this machine."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from thalweg import engine, executors, plan, scenario
from thalweg.engine_output import EngineEvent
from thalweg.errors import Exit, ThalwegError
from thalweg.executors import Work, dask_cluster
from thalweg.run import Outcome

distributed = pytest.importorskip("distributed", reason="distributed is not installed: pip install 'thalweg[cluster]'")

SCENARIO = """\
name = "many"
repetitions = 8
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
"path.loss" = [0.0, 0.01, 0.02]
"""

SEARCH = """\
name = "small"
duration = "500ms"
repetitions = 2
start_jitter = "1rtt"
sample_interval = "0s"
[path]
rate = "5Mbps"
rtt = "10ms"
[[flow]]
name = "ours"
cc = "bbr"
[search]
objectives = [{ measure = "goodput", of = "ours", goal = "maximise" }]
budget = 2
[search.parameters]
"path.rate" = ["2Mbps", "8Mbps"]
"""

WORKERS = 3


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> plan.Plan:
    file = tmp_path_factory.mktemp("scenario") / "many.toml"
    file.write_text(SCENARIO)
    capabilities = engine.capabilities(engine.DEFAULT)
    return plan.make(scenario.load(file), capabilities.engines[engine.DEFAULT], capabilities.engines)


@pytest.fixture(scope="module")
def here(planned: plan.Plan, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the run directory of the executor `local`."""
    out = tmp_path_factory.mktemp("local") / "run"
    assert executors.execute(Work(planned, out, engine.find())).exit_code is Exit.FINE
    return out


@pytest.fixture(scope="module")
def cluster() -> Iterator["distributed.LocalCluster"]:
    options = {"threads_per_worker": 1, "processes": True, "dashboard_address": ":0", "silence_logs": 50}
    with distributed.LocalCluster(n_workers=WORKERS, **options) as started:
        yield started


def address(cluster: "distributed.LocalCluster") -> str:
    return f"dask://{cluster.scheduler_address.removeprefix('tcp://')}"


def pids(cluster: "distributed.LocalCluster") -> dict[str, int]:
    with distributed.Client(cluster, set_as_default=False) as client:
        by_worker: dict[str, int] = client.run(os.getpid)
    return by_worker


def tables(run: Path) -> dict[str, bytes]:
    return {str(file.relative_to(run)): file.read_bytes() for file in run.rglob("*.parquet")}


def test_a_sweep_survives_a_killed_worker_with_the_same_tables(
    planned: plan.Plan, here: Path, cluster: "distributed.LocalCluster", tmp_path: Path
) -> None:
    before = pids(cluster)
    killed: list[int] = []
    lost: list[str] = []

    def kill_a_busy_worker(event: EngineEvent) -> None:
        if event["event"] == "finished" and not killed:
            with distributed.Client(cluster, set_as_default=False) as client:
                busy = {where: keys for where, keys in client.processing().items() if keys}
            where, keys = next(iter(busy.items()))
            lost.extend(map(str, keys))
            killed.append(before[where])
            os.kill(before[where], signal.SIGKILL)

    work = Work(planned, tmp_path / "run", engine.find(), listener=kill_a_busy_worker, shards=8)
    outcome = executors.execute(work, address(cluster))
    assert killed
    assert any(key.startswith("thalweg-shard-") for key in lost)
    assert (outcome.exit_code, outcome.finished, outcome.failed) == (Exit.FINE, len(planned.experiments), [])
    assert tables(tmp_path / "run") == tables(here)
    assert [file.name for file in tmp_path.iterdir()] == ["run"]


def test_existing_results_are_not_run_again(
    planned: plan.Plan, here: Path, cluster: "distributed.LocalCluster", tmp_path: Path
) -> None:
    first = [(experiment.experiment, experiment.repetition) for experiment in planned.experiments][:5]
    out = tmp_path / "run"
    executors.execute(Work(planned, out, engine.find(), due=first))
    outcome = executors.execute(Work(planned, out, engine.find()), address(cluster))
    assert (outcome.experiments, outcome.present, outcome.finished) == (24, 5, 19)
    assert tables(out) == tables(here)
    again = executors.execute(Work(planned, out, engine.find()), "dask://127.0.0.1:1")
    assert (again.exit_code, again.present, again.finished) == (Exit.FINE, 24, 0)


def test_a_search_on_a_cluster_matches_a_local_search(cluster: "distributed.LocalCluster", tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_text(SEARCH)
    for name, executor in (("here", "local"), ("there", address(cluster))):
        command = [sys.executable, "-m", "thalweg", "optimise", "small.toml", "--out", name, "--executor", executor]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    here, there = (pl.read_parquet(tmp_path / name / "candidates.parquet") for name in ("here", "there"))
    assert here.height == 2
    assert there.equals(here)


def refused(planned: plan.Plan, out: Path, executor: str) -> ThalwegError:
    with pytest.raises(ThalwegError) as raised:
        executors.execute(Work(planned, out, engine.find()), executor)
    return raised.value


def test_an_unresponsive_scheduler_is_reported(
    planned: plan.Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dask_cluster, "CONNECT_WITHIN_S", 1)
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        error = refused(planned, tmp_path / "run", f"dask://127.0.0.1:{closed.getsockname()[1]}")
    assert error.message.startswith("no Dask scheduler responds at `tcp://127.0.0.1:")
    assert error.exit_code is Exit.MISSING


def test_a_worker_without_an_engine_is_named(
    planned: plan.Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    binary = engine.find()
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("THALWEG_ENGINE", "/nowhere/thalweg-engine")
        options = {"threads_per_worker": 1, "processes": True, "dashboard_address": ":0", "silence_logs": 50}
        started = distributed.LocalCluster(n_workers=1, **options)
    monkeypatch.setenv("THALWEG_ENGINE", str(binary))
    with started:
        error = refused(planned, tmp_path / "run", address(started))
    assert "cannot run this plan: THALWEG_ENGINE is not the path of a program" in error.message


def test_a_worker_of_another_version_is_named(
    planned: plan.Plan, cluster: "distributed.LocalCluster", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dask_cluster, "__version__", "9.9.9")
    error = refused(planned, tmp_path / "run", address(cluster))
    assert error.message.endswith("but this machine has 9.9.9")
    assert "pip install thalweg==9.9.9" in (error.hint or "")


def test_a_cluster_without_workers_is_refused(
    planned: plan.Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dask_cluster, "WORKERS_WITHIN_S", 0.1)
    with distributed.LocalCluster(n_workers=0, dashboard_address=":0", silence_logs=50) as empty:
        error = refused(planned, tmp_path / "run", address(empty))
    assert "has no workers" in error.message


def test_a_missing_extra_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask_cluster, "find_spec", lambda name: None)
    with pytest.raises(ThalwegError) as raised:
        executors.check("dask://127.0.0.1:8786")
    assert raised.value.hint == "pip install 'thalweg[cluster]'"
    assert raised.value.exit_code is Exit.MISSING


def test_ctrl_c_keeps_the_finished_shards(
    planned: plan.Plan, cluster: "distributed.LocalCluster", tmp_path: Path
) -> None:
    def interrupt(event: EngineEvent) -> None:
        if event["event"] == "finished":
            raise KeyboardInterrupt

    work = Work(planned, tmp_path / "run", engine.find(), listener=interrupt, shards=8)
    outcome: Outcome = executors.execute(work, address(cluster))
    assert outcome.exit_code is Exit.INTERRUPTED
    assert len(tables(tmp_path / "run")) > 0
