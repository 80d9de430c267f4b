"""`thalweg`: assembles the subcommands, and maps results and errors to exit codes."""

import errno
import io
import os
import signal
import sys
from pathlib import Path
from typing import Annotated

import typer
from typer.core import TyperGroup

from thalweg import __version__
from thalweg.cli import helped, interrupt
from thalweg.cli.lazy import Lazy
from thalweg.cli.printing import output
from thalweg.errors import Exit, ThalwegError, shortage, shortage_behind
from thalweg.processes import repeating_ignored

signal.signal(signal.SIGINT, interrupt)

EPILOG = (
    "Begin with: thalweg run scenarios/quickstart.toml\n\n"
    "Exit codes: 0 success; 1 something ran and failed, runs differ, `--check` of validate or reproduce failed, or "
    "`doctor --live` found connections short of CPU; "
    "2 invalid usage or scenario; "
    "3 cannot write; 4 something is missing on this machine; 5 no evidence: nothing could be compared or judged, "
    "or no experiment can be used; 6 incomplete: some experiments are untrustworthy, failed or not finished; "
    "7 a bound of `--check` (run, results) does not hold; 8 a bound, or a row of `compare --strict`, is not settled; "
    "75 temporary: a resource of this machine is exhausted, or a cluster stopped responding; 130 interrupted. "
    "`shell` exits with the code of its command."
)

COMMANDS = (
    Lazy("check", "thalweg.cli.commands.check", "Check a scenario and list the points of its sweep."),
    Lazy("run", "thalweg.cli.commands.run", "Run a scenario, and write a report."),
    Lazy("shell", "thalweg.cli.commands.shell", "Run a shell or a command on the path of a scenario."),
    Lazy("results", "thalweg.cli.commands.results", "Print the results of runs."),
    Lazy("report", "thalweg.cli.commands.report", "Write a report of existing runs."),
    Lazy("compare", "thalweg.cli.commands.compare", "Compare runs, and report which differences are real."),
    Lazy("optimise", "thalweg.cli.commands.optimise", "Search for the best parameters of a scenario."),
    Lazy("fuzz", "thalweg.cli.commands.fuzz", "Search for conditions under which an algorithm fails."),
    Lazy("studies", "thalweg.cli.commands.studies", "List the studies of published results that thalweg can repeat."),
    Lazy("reproduce", "thalweg.cli.commands.reproduce", "Repeat a study's experiments and judge its claims."),
    Lazy("validate", "thalweg.cli.commands.validate", "Compare two engines on a grid of scenarios."),
    Lazy("records", "thalweg.cli.live.records", "Summarise records of live servers."),
    Lazy("import", "thalweg.cli.live.importing", "Convert logs and dumps of other sources to records."),
    Lazy("advise", "thalweg.cli.live.advise", "Find where an algorithm helps and where it hurts."),
    Lazy("schema", "thalweg.cli.commands.schema", "Print the JSON Schema of scenarios."),
    Lazy("doctor", "thalweg.cli.commands.doctor", "Check whether this machine meets the requirements."),
    Lazy("kernel", "thalweg.cli.commands.kernel",
         "Build, fetch and select Linux kernels for the engines uml and vm."),
    Lazy("synth", "thalweg.cli.live.synth", "Write synthetic records of servers, with known true effects."),
    Lazy("policy", "thalweg.cli.live.policy_command",
         "Compare policies that choose an algorithm for each destination."),
)  # fmt: skip
"""All subcommands in the order of the help."""

top = typer.Typer(
    name="thalweg",
    help="Measure TCP congestion control, and explain the results.",
    epilog=EPILOG,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": helped.MAX_COLUMNS},
)


def _version(is_requested: bool) -> None:
    if is_requested:
        output.data(f"thalweg {__version__}")
        raise typer.Exit


@top.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    pass


def app() -> int:
    """Run the command line; return the exit code."""
    _open_streams()
    is_json = "--json" in sys.argv[1:]
    try:
        with repeating_ignored():
            code = _call()
        sys.stdout.flush()
        return code
    except ThalwegError as problem:
        return _report(problem, is_json)
    except (output.NobodyReads, BrokenPipeError):
        # The reader closed the pipe; the buffered output must not be written at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.FINE
    except KeyboardInterrupt:
        output.talk("interrupted")
        return Exit.INTERRUPTED
    except OSError as problem:
        return _report(shortage(problem) or _from_system(problem), is_json)
    except (RuntimeError, ImportError) as problem:
        if known_error := shortage_behind(problem):
            return _report(known_error, is_json)
        raise
    except MemoryError as problem:
        return _report(_from_memory(problem), is_json)


def _open_streams() -> None:
    """Discard output to closed streams, and escape characters that the encoding of standard output lacks."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def group() -> TyperGroup:
    """Assemble the subcommands."""
    commands = typer.main.get_command(top)
    assert isinstance(commands, TyperGroup)
    for command in COMMANDS:
        commands.add_command(command)
    return commands


def _call() -> int:
    try:
        group()(prog_name="thalweg")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else Exit.FINE
    return Exit.FINE


def _report(problem: ThalwegError, is_json: bool) -> int:
    try:
        output.error(problem, as_json=is_json)
        sys.stdout.flush()
    except (output.NobodyReads, OSError):
        # A stream cannot be written, so only the exit code reports the error.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return problem.exit_code


def _from_memory(error: MemoryError) -> ThalwegError:
    return ThalwegError(
        "short-of-resources",
        f"memory: {str(error).lower() or 'an allocation failed'}",
        hint="free -h shows the memory of this machine",
        exit_code=Exit.TEMPORARY,
    )


def _from_system(error: OSError) -> ThalwegError:
    target = f"`{error.filename}`" if error.filename else "standard output"
    why = (error.strerror or str(error)).lower()
    hints = {
        errno.ENOSPC: "free some space, or choose another path with --out",
        errno.EACCES: "choose a path of your own with --out",
        errno.EROFS: "choose a writable path with --out",
    }
    return ThalwegError(
        "system",
        f"{target}: {why}",
        place=str(error.filename) if error.filename else None,
        hint=hints.get(error.errno or 0),
        exit_code=Exit.CANNOT_WRITE,
    )
