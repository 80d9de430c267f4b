"""Code that runs on a Dask worker: it runs the engine in a temporary folder and returns its files to the caller."""

import io
import tarfile
import zlib
from dataclasses import dataclass
from pathlib import Path

from thalweg import engine, run
from thalweg.engine_output import EngineEvent
from thalweg.errors import ThalwegError
from thalweg.executors.work import ExperimentKey
from thalweg.scratch import Scratch

LEVEL = 1
"""Compression level of plans, and of run directories, whose tables are already compressed."""


@dataclass(frozen=True)
class Shard:
    """Input of a worker."""

    number: int
    due: tuple[ExperimentKey, ...]
    threads: int | None
    result_version: str
    """Version of the caller's engine results."""


@dataclass(frozen=True)
class Returned:
    """Result of a worker, or the reason for its failure."""

    archive: bytes = b""
    """The run directory, as a compressed tar file."""
    events: tuple[EngineEvent, ...] = ()
    error: str = ""
    """Error message; empty if the engine ran."""
    error_code: str = ""
    hint: str = ""


def compressed(plan: bytes) -> bytes:
    """Return the compressed plan unchanged; as a task, it lets Dask recompute a plan that is lost."""
    return plan


def run_on_worker(plan: bytes, shard: Shard) -> Returned:
    """Run a shard in the folder of the current Dask worker; Dask removes the folder of a dead worker."""
    from distributed import get_worker

    return run_shard(plan, shard, str(get_worker().local_directory))


def run_shard(plan: bytes, shard: Shard, folder: str) -> Returned:
    """Run a shard with the engine of this machine.

    Args:
        plan: The complete plan in JSON, compressed with zlib.
        shard: The experiments to run.
        folder: Folder for the shard's temporary files.

    Returns:
        The files, or the error as a text, because the caller may not be able to unpickle an exception.
    """
    events: list[EngineEvent] = []
    try:
        name = engine_name(plan)
        capabilities = engine.choose(name, engine.capabilities(name))
        if capabilities.version != shard.result_version:
            return Returned(
                error=versions(name, capabilities.version, shard.result_version), error_code="other-version"
            )
        with Scratch("thalweg-shard-", Path(folder)) as scratch:
            out = scratch / "run"
            run.execute(
                zlib.decompress(plan),
                out,
                binary=engine.find(),
                threads=shard.threads or 1,
                listener=events.append,
                due=shard.due,
            )
            return Returned(packed(out), tuple(events))
    except ThalwegError as error:
        return Returned(error=error.message, error_code=error.code, hint=error.hint or "")


def packed(folder: Path) -> bytes:
    """Return a run directory as an archive."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz", compresslevel=LEVEL) as archive:
        archive.add(folder, arcname=".")
    return packed.getvalue()


def unpack(archive: bytes, folder: Path) -> None:
    """Unpack a run directory into a folder; paths outside it are rejected."""
    with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as packed:
        packed.extractall(folder, filter="data")


def engine_name(plan: bytes) -> str:
    """Return the name of a plan's engine without parsing its experiments.

    >>> engine_name(zlib.compress(b'{"format":1,"engine":"sim","name":"x"}'))
    'sim'
    """
    start = zlib.decompressobj().decompress(plan, 1024).decode("utf-8", "replace")
    return start.partition('"engine":"')[2].partition('"')[0]


def versions(name: str, worker_version: str, local_version: str) -> str:
    """Describe the mismatch of two engines whose results differ."""
    return f"its engine {name} has result version {worker_version}, and that of this machine {local_version}"
