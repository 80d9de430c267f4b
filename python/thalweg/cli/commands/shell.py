"""`thalweg shell`: a shell or a command on the path of a scenario."""

import shutil
import socket
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from thalweg.cli import typed
from thalweg.cli.options import File, OverridesOfOnePoint, option
from thalweg.cli.prepared import load, plan_for
from thalweg.cli.printing import output, sessions_output
from thalweg.errors import Exit, ThalwegError
from thalweg.run import hold, new_directory
from thalweg.scenario import Document

EPILOG = "Example: thalweg shell scenarios/quickstart.toml --set path.buffer=1bdp -- ping -c 3 10.77.0.2"

REPORT = "report.html"
NOT_FOUND = 127
"""Exit code of shells if the command is not found."""
ENDS = ("sender", "receiver")


def command(
    file: File,
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[-- COMMAND...]", help="Command to run; required for uml. [default: $SHELL]", show_default=False
        ),
    ] = None,
    engine_name: Annotated[str, typer.Option("--engine", metavar="NAME", help="Engine to use: kernel or uml.")] = (
        "kernel"
    ),
    on: Annotated[
        str, typer.Option("--on", metavar="END", help="End of the path where the command runs: sender or receiver.")
    ] = "sender",
    server: Annotated[
        str | None, option("--server", "COMMAND", "Command to run at the other end at the same time.")
    ] = None,
    reach: Annotated[
        list[str] | None,
        option(
            "--reach",
            "HOST:PORT",
            "kernel: TCP service on this machine's loopback that becomes reachable at the other end, on the same port;"
            " can be repeated.",
        ),
    ] = None,
    pcap: Annotated[bool, typer.Option("--pcap", help="kernel: write all packets to the run directory.")] = False,
    out: Annotated[Path | None, option("--out", "DIR", "Run directory. [default: runs/NAME-shell-TIME]")] = None,
    overrides: OverridesOfOnePoint = None,
    with_report: Annotated[bool, typer.Option("--report/--no-report", help="Whether to write the report.")] = True,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print neither the status nor the table at the end.")] = False,
) -> None:
    """Run a shell or a command on the path of a scenario.

    The command runs at one end of the path, as on a host of its own; its traffic to $THALWEG_SERVER, the other end,
    crosses the path. The flows of the scenario do not run. A swept key needs one value, by --set. Needs no root.

    Ends with a table of the connections and the paths of the run directory and the report, and with the exit code of
    the command.
    """
    if on not in ENDS:
        raise ThalwegError(
            "bad-end",
            f"the path has no end `{on}`",
            place="--on",
            found=on,
            expected="sender or receiver",
            exit_code=Exit.USAGE,
        )
    services = [_service(text) for text in reach or []]
    document = load(file, engine_name, overrides or [], repetitions=1)
    _refuse_sweep(document)
    plan, capabilities = plan_for(document, engine_name)
    if words and shutil.which(words[0]) is None:
        output.talk(f"thalweg shell: {words[0]}: command not found")
        raise typer.Exit(NOT_FOUND)
    directory = out or new_directory(plan)
    arguments = ["--on", on, *(("--server", server) if server else ()), *(("--pcap",) if pcap else ())]
    for service in services:
        arguments += ["--reach", service]
    if quiet:
        arguments.append("--quiet")
    arguments += ["--", *words] if words else []
    try:
        ended = hold(plan, directory, binary=capabilities.binary, arguments=arguments, command=typed.words())
    except ThalwegError:
        if out is None:
            with suppress(OSError):  # files that explain the failure stay
                directory.rmdir()
        raise
    if ended.was_held:
        report = _write_report(directory) if with_report and ended.connections else None
        if not quiet:
            sessions_output.show(ended, directory, report)
    raise typer.Exit(ended.exit_code)


def _refuse_sweep(document: Document) -> None:
    """Reject a scenario with several points, because a shell runs on one path."""
    if not document.axes:
        return
    axis = document.axes[0]
    key, value = axis.addresses[0], axis.choices[0][0]
    chosen = " ".join(f"--set {swept.addresses[0]}={swept.choices[0][0]}" for swept in document.axes)
    raise ThalwegError(
        "has-sweep",
        "the scenario has a sweep, but a shell runs on a single path",
        place=f"sweep.{key}",
        found=f"{len(axis.choices)} values, such as {value}",
        expected="one value of each key",
        hint=f"choose one: thalweg shell {document.file} {chosen}",
        exit_code=Exit.USAGE,
    )


def _service(text: str) -> str:
    """Parse the address of a service on the loopback interface of this machine.

    Raises:
        ThalwegError: If it is not an address and a port, or not one of the loopback interface.
    """
    host, _, port = text.rpartition(":")
    name = host.strip("[]")
    try:
        candidates = socket.getaddrinfo(name or "127.0.0.1", int(port), type=socket.SOCK_STREAM)
        address = candidates[0][4]
    except (OSError, ValueError, OverflowError):
        address = None
    if address is None or not (str(address[0]).startswith("127.") or address[0] == "::1") or not 0 < int(port) < 65536:
        raise ThalwegError(
            "bad-service",
            f"`{text}` is not a service of this machine",
            place="--reach",
            found=text,
            expected="a service on the loopback interface, such as 127.0.0.1:8080 or localhost:8080",
            exit_code=Exit.USAGE,
        )
    return f"[{address[0]}]:{port}" if ":" in str(address[0]) else f"{address[0]}:{port}"


def _write_report(directory: Path) -> Path | None:
    """Write the report; the exit code is the command's even if that fails."""
    from thalweg.report import write

    try:
        write([directory], directory / REPORT)
    except ThalwegError as problem:
        output.error(problem, as_json=False)
        return None
    return directory / REPORT
