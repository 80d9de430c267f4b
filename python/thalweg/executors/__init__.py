"""Executors: run a plan on this machine or on a cluster.

    outcome = execute(Work(plan, Path("runs/mine"), binary=engine.find()), "dask://scheduler:8786")

`local` is `thalweg.run.execute`. The others split the missing experiments of the plan into shards, run them on other
machines or in other processes, and merge the results into the run directory as they arrive.
"""

from thalweg.errors import ThalwegError
from thalweg.executors import dask_cluster, local, slurm
from thalweg.executors.work import Work
from thalweg.run import Outcome

__all__ = ["DEFAULT", "Work", "check", "execute"]

DEFAULT = "local"

DASK = "dask://"
SLURM = "slurm"


def check(executor: str) -> None:
    """Check that an executor is known and its requirements are installed.

    Raises:
        ThalwegError: If the executor is unknown, or its requirements are not installed.
    """
    if executor in (DEFAULT, SLURM):
        if executor == SLURM:
            slurm.check()
        return
    if executor.startswith(DASK) and executor != DASK:
        dask_cluster.check()
        return
    raise ThalwegError(
        "unknown-executor",
        f"unknown executor `{executor}`",
        place="--executor",
        found=executor,
        expected=f"{DEFAULT}, {DASK}HOST:PORT or {SLURM}",
        hint="--executor dask://127.0.0.1:8786" if executor.startswith("dask") else "--executor local",
    )


def execute(work: Work, executor: str = DEFAULT) -> Outcome:
    """Run the missing experiments of a plan.

    Args:
        work: The plan, the run directory, and the listener for events.
        executor: `local`, `dask://HOST:PORT` (of a Dask scheduler), or `slurm`.

    Raises:
        ThalwegError: If the executor is unknown or cannot run the plan, or for a reason of `thalweg.run.execute`.
    """
    check(executor)
    if executor == DEFAULT:
        return local.execute(work)
    if executor == SLURM:
        return slurm.execute(work)
    return dask_cluster.execute(work, f"tcp://{executor.removeprefix(DASK)}")
