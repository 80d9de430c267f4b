"""`thalweg doctor`: checks this machine, and prints what to install or change."""

import os
import platform
import shutil
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from thalweg import __version__, engine
from thalweg.cli.commands import doctor_live
from thalweg.cli.options import option
from thalweg.cli.printing import output
from thalweg.errors import Exit, ThalwegError

if TYPE_CHECKING:
    from thalweg.kernel import GuestKernel, Kernel

EPILOG = "Example: thalweg doctor --live"

PYTHON = (3, 11)

MEMORY_PER_CORE_BYTES = 500 * 10**6
"""Free memory per core below which `doctor` warns."""

DISK_BYTES = 10**9
"""Free disk space below which `doctor` warns."""


@dataclass(frozen=True)
class Finding:
    """The result of one check."""

    what: str
    state: Literal["ok", "warning", "missing"]
    found: str
    todo: str = ""


def command(
    live: Annotated[
        bool,
        typer.Option(
            "--live",
            help="Check the open connections of this machine instead, and report BBR connections short of CPU.",
        ),
    ] = False,
    seconds: Annotated[
        int | None, option("--seconds", "N", "Duration of --live in seconds. [default: 5]", min=1, max=600)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Check whether this machine meets the requirements.

    Checks Python, thalweg-engine, what each engine needs, memory and disk, and prints how to fix problems. Exit code 4
    if a requirement of the engine sim is missing; those of the other engines are only warnings.

    With --live, measures instead how much CPU time this machine lacks (steal time, runnable tasks that do not run), and
    which BBR connections are slower for that reason, in the network namespaces that this user may enter.
    If there are such connections, the exit code is 1.
    """
    if live:
        raise typer.Exit(doctor_live.monitor(seconds or doctor_live.SECONDS, as_json=as_json))
    if seconds is not None:
        raise ThalwegError(
            "bad-usage",
            "--seconds applies only to --live",
            place="--seconds",
            found=str(seconds),
            hint=f"thalweg doctor --live --seconds {seconds}",
        )
    findings = list(_findings())
    if as_json:
        output.data_json({"version": __version__, "findings": [asdict(finding) for finding in findings]})
    else:
        rows = [[finding.state, finding.what, finding.found] for finding in findings]
        lines = output.table(["state", "what", "found"], rows).splitlines()
        for line, finding in zip(lines, [None, *findings], strict=True):
            output.data(line)
            for todo in (finding.todo if finding else "").splitlines():
                output.data(f"         do: {todo}")
    if any(finding.state == "missing" for finding in findings):
        raise typer.Exit(Exit.MISSING)


def _findings() -> Iterator[Finding]:
    yield _python()
    yield from _engines()
    yield from _kernels()
    cores = len(os.sched_getaffinity(0))
    yield Finding("cores", "ok", f"{cores}; one experiment per core runs at a time, in real time only one")
    yield _memory(cores)
    try:
        yield _disk(Path.cwd())
    except FileNotFoundError:
        yield Finding("disk", "warning", "the current directory was removed", "change to an existing directory: cd")


def _python() -> Finding:
    version = f"{platform.python_version()} in {sys.executable}"
    if sys.version_info < PYTHON:
        return Finding("Python", "missing", version, f"install Python {PYTHON[0]}.{PYTHON[1]} or newer")
    return Finding("Python", "ok", version)


def _engines() -> Iterator[Finding]:
    try:
        capabilities = engine.capabilities()
    except ThalwegError as error:
        yield Finding(engine.BINARY, "missing", error.message, error.hint or "")
        return
    if capabilities.version == __version__:
        yield Finding(engine.BINARY, "ok", f"{capabilities.version} in {capabilities.binary}")
    else:
        release = f"{capabilities.version} in {capabilities.binary}, but thalweg is {__version__}"
        yield Finding(engine.BINARY, "missing", release, f"pip install --force-reinstall thalweg=={__version__}")
    for entry in capabilities.engines.values():
        label = f"engine {entry.name}"
        if entry.available:
            yield Finding(label, "ok", f"congestion controls: {', '.join(sorted(entry.algorithms)) or 'none'}")
        else:
            state: Literal["missing", "warning"] = "missing" if entry.name == engine.DEFAULT else "warning"
            others = f"to use other engines, leave out --engine {entry.name}"
            yield Finding(label, state, entry.reason, "\n".join(filter(None, (entry.remedy, others))))
    if not capabilities.engines:
        yield Finding("engines", "missing", "the binary has no engines", "pip install --force-reinstall thalweg")


def _kernels() -> Iterator[Finding]:
    """Check the kernels for virtual time and for guests; a missing one is reported by the engine that needs it."""
    from thalweg.kernel import current, guests

    if built := current():
        yield _kernel(
            "built kernel", built, f"built {built.built}", "changed since it was built", "thalweg kernel build"
        )
    if fetched := guests.current():
        since = f"fetched {fetched.fetched}"
        yield _kernel("guest kernel", fetched, since, "changed since it was fetched", "thalweg kernel fetch --force")


def _kernel(label: str, kernel: "Kernel | GuestKernel", since: str, changed: str, todo: str) -> Finding:
    description = f"Linux {kernel.release}, {since}, in {kernel.folder}"
    if kernel.is_whole():
        return Finding(label, "ok", description)
    return Finding(label, "warning", f"{description}: {changed}", todo)


def _memory(cores: int) -> Finding:
    free = _free_memory_bytes()
    if free is None:
        return Finding("memory", "ok", "unknown")
    available = f"{free / 1e9:.1f} GB free"
    if free < cores * MEMORY_PER_CORE_BYTES:
        fewer = max(1, free // MEMORY_PER_CORE_BYTES)
        return Finding(
            "memory", "warning", available, f"run fewer experiments at a time: thalweg run FILE --threads {fewer}"
        )
    return Finding("memory", "ok", available)


def _free_memory_bytes() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    sizes = {name: rest.split() for name, _, rest in (line.partition(":") for line in lines)}
    return int(sizes["MemAvailable"][0]) * 1024 if "MemAvailable" in sizes else None


def _disk(folder: Path) -> Finding:
    free = shutil.disk_usage(folder).free
    available = f"{free / 1e9:.1f} GB free in {folder}"
    if not os.access(folder, os.W_OK):
        return Finding(
            "disk", "warning", f"{folder} cannot be written", "choose another directory: thalweg run FILE --out DIR"
        )
    if free < DISK_BYTES:
        return Finding(
            "disk", "warning", available, "free some space, or choose another directory: thalweg run FILE --out DIR"
        )
    return Finding("disk", "ok", available)
