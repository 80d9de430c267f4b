"""The executor `dask://HOST:PORT`: each shard is a task of a Dask cluster, whose files are returned over the network.

No shared file system is needed. When a worker dies, Dask assigns its task to another one, and the shard starts over.
"""

import time
import uuid
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING

from thalweg import __version__, engine
from thalweg.errors import Exit, ThalwegError
from thalweg.executors import probe as probing
from thalweg.executors import worker
from thalweg.executors.shards import Joined, refuse_real_time
from thalweg.executors.work import Work
from thalweg.processes import asked_to_end
from thalweg.run import Outcome
from thalweg.scratch import Scratch

if TYPE_CHECKING:
    from distributed import Client, Future

CONNECT_WITHIN_S = 10
WORKERS_WITHIN_S = 10
"""Timeout for the first worker, because a cluster may have just been started."""

SHARDS_PER_SLOT = 4
"""Shards per thread of the workers: enough that few threads are idle while the last shards finish."""

LOOK_EVERY_S = 1.0
NO_WORKER_S = 60.0
"""Timeout for a worker to return when all of them have disconnected."""


def check() -> None:
    """Check that Dask is installed.

    Raises:
        ThalwegError: If it is not.
    """
    if find_spec("distributed") is None:
        raise ThalwegError(
            "no-extra",
            "the executor dask needs the package distributed, which is not installed",
            place="--executor",
            hint="pip install 'thalweg[cluster]'",
            exit_code=Exit.MISSING,
        )


def execute(work: Work, address: str) -> Outcome:
    """Run the work on the cluster whose scheduler is at `address`, as in `tcp://10.0.0.1:8786`.

    Raises:
        ThalwegError: If the engine runs in real time, or the run directory, the cluster or a worker cannot be used.
    """
    refuse_real_time(work, address)
    joined = Joined(work)
    if not joined.missing:
        joined.begin(0)
        return joined.finish()
    with _connected(address) as client, asked_to_end():
        _check_workers(client, work, address)
        slots = sum(client.nthreads().values())
        joined.begin(slots * (work.threads or 1))
        futures: list[Future[worker.Returned]] = []
        try:
            futures = _submitted(client, work, joined.split(slots * SHARDS_PER_SLOT))
            for number, returned in _results(client, futures, address):
                _add(joined, work, returned, number)
        except KeyboardInterrupt:
            work.listener({"event": "stopping"})
            return joined.finish(is_interrupted=True)
        finally:
            client.cancel(futures, force=True)
        return joined.finish()


@contextmanager
def _connected(address: str) -> "Iterator[Client]":
    from distributed import Client

    try:
        client = Client(address, timeout=CONNECT_WITHIN_S, set_as_default=False)
    except (OSError, ValueError) as error:
        raise ThalwegError(
            "no-scheduler",
            f"no Dask scheduler responds at `{address}`",
            place="--executor",
            found=str(error).splitlines()[0] if str(error) else None,
            hint="dask scheduler --host ADDRESS     (it prints the address that workers and thalweg need)",
            exit_code=Exit.MISSING,
        ) from None
    try:
        with client.as_current():
            yield client
    finally:
        client.close()


def _check_workers(client: "Client", work: Work, address: str) -> None:
    """Reject a cluster with a worker that cannot run the plan or would return different results."""
    import cloudpickle

    with suppress(TimeoutError):
        client.wait_for_workers(1, timeout=WORKERS_WITHIN_S)
    name = work.plan.engine
    cloudpickle.register_pickle_by_value(probing)
    try:
        probes: dict[str, probing.Probe] = client.run(probing.probe, name)
    finally:
        cloudpickle.unregister_pickle_by_value(probing)
    if not probes:
        raise ThalwegError(
            "no-workers",
            f"the Dask scheduler at `{address}` has no workers",
            place="--executor",
            hint=f"dask worker {address}",
            exit_code=Exit.MISSING,
        )
    version = engine.choose(name, engine.capabilities(name)).version
    for worker_address, probe in probes.items():
        if why := _unfit(probe, name, version):
            raise ThalwegError(
                "unfit-worker",
                f"the worker {worker_address} cannot run this plan: {why}",
                place="--executor",
                hint=f"on that machine: pip install thalweg=={__version__}",
                exit_code=Exit.MISSING,
            )


def _unfit(probe: probing.Probe, name: str, version: str) -> str:
    if not probe["thalweg"]:
        return "thalweg is not installed on it"
    if probe["thalweg"] != __version__:
        return f"it has thalweg {probe['thalweg']}, but this machine has {__version__}"
    if not probe["engine"]:
        return probe["why"]
    return "" if probe["engine"] == version else worker.versions(name, probe["engine"], version)


def _submitted(
    client: "Client", work: Work, shards: "Sequence[list[tuple[int, int]]]"
) -> "list[Future[worker.Returned]]":
    name = work.plan.engine
    version = engine.choose(name, engine.capabilities(name)).version
    unique = uuid.uuid4().hex[:8]
    text = zlib.compress(work.plan.model_dump_json().encode(), worker.LEVEL)
    # The plan is a separate task: workers fetch it from each other, and it is computed again if it is lost.
    plan = client.submit(worker.compressed, text, key=f"thalweg-plan-{unique}", pure=False)
    return [
        client.submit(
            worker.run_on_worker,
            plan,
            worker.Shard(number, tuple(due), work.threads, version),
            key=f"thalweg-shard-{number}-{unique}",
            pure=False,
        )
        for number, due in enumerate(shards)
    ]


def _results(
    client: "Client", futures: "Sequence[Future[worker.Returned]]", address: str
) -> Iterator[tuple[int, worker.Returned]]:
    from distributed import wait

    waiting = {future: number for number, future in enumerate(futures)}
    alone_since: float | None = None
    while waiting:
        try:
            finished = wait(list(waiting), timeout=LOOK_EVERY_S, return_when="FIRST_COMPLETED").done
        except TimeoutError:
            finished = set()
        for future in finished:
            number = waiting.pop(future)
            yield number, _result(future, number, address)
            future.release()
        alone_since = None if client.nthreads() else alone_since or time.monotonic()
        if waiting and alone_since is not None and time.monotonic() - alone_since > NO_WORKER_S:
            raise ThalwegError(
                "no-workers",
                f"all workers of the Dask scheduler at `{address}` have disconnected",
                place="--executor",
                hint=f"dask worker {address}; then the same command resumes",
                exit_code=Exit.TEMPORARY,
            )


def _result(future: "Future[worker.Returned]", number: int, address: str) -> worker.Returned:
    from concurrent.futures import CancelledError

    from distributed import KilledWorker

    try:
        returned: worker.Returned = future.result()
    except KilledWorker as error:
        raise ThalwegError(
            "worker-died",
            f"{error.allowed_failures + 1} workers died while they ran shard {number}",
            hint="if memory was short, use a larger --shards; the same command resumes",
            exit_code=Exit.FAILED,
        ) from None
    except (CancelledError, OSError):
        raise ThalwegError(
            "no-scheduler",
            f"the Dask scheduler at `{address}` no longer responds",
            place="--executor",
            hint="the same command resumes from the merged experiments",
            exit_code=Exit.TEMPORARY,
        ) from None
    return returned


def _add(joined: Joined, work: Work, returned: worker.Returned, number: int) -> None:
    if returned.error:
        raise ThalwegError(
            returned.error_code,
            f"a worker could not run shard {number}: {returned.error}",
            hint=returned.hint or None,
            exit_code=Exit.FAILED,
        )
    with Scratch(f".{work.out.name}-", work.out.parent) as folder:
        worker.unpack(returned.archive, folder)
        joined.add(folder, returned.events)
