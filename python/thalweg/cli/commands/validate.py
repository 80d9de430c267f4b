"""`thalweg validate`: measures the difference between two engines on a grid of paths."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from thalweg import engine
from thalweg.cli import retry, typed
from thalweg.cli.options import option
from thalweg.cli.printing import evidence, output, validation_output
from thalweg.cli.retry import Retry, forget_untrustworthy
from thalweg.errors import Exit, ThalwegError

if TYPE_CHECKING:
    from thalweg.analysis import Evidence
    from thalweg.validate import EngineComparison, Grid, GridPart

EPILOG = "Example: thalweg validate sim uml --quick"

RUNS = Path("runs") / "validate"


def command(
    first: Annotated[str, typer.Argument(metavar="ENGINE", help="Engine to validate.", show_default=False)],
    second: Annotated[str, typer.Argument(metavar="ENGINE", help="Reference engine.", show_default=False)],
    grids: Annotated[
        list[str] | None,
        option(
            "--grid", "NAME|FILE", "A part of the ready-made grid, or a scenario; can be repeated. [default: all parts]"
        ),
    ] = None,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick",
            help="Run only the ends of each range, with one repetition (or --repetitions) and at most 10 s per"
            " experiment.",
        ),
    ] = False,
    repetitions: Annotated[
        int | None, option("--repetitions", "N", "Number of repetitions, instead of the scenario's.", min=1)
    ] = None,
    out: Annotated[Path | None, option("--out", "DIR", f"Folder of the run directories. [default: {RUNS}]")] = None,
    threads: Annotated[
        int | None, option("--threads", "N", "Experiments at a time. [default: one per core; kernel, vm: 1]", min=1)
    ] = None,
    retry_untrustworthy: Retry = False,
    check: Annotated[
        bool, typer.Option("--check", help="Exit with code 1 if a goal is missed, 5 if none could be judged.")
    ] = False,
    page: Annotated[Path | None, option("--page", "FILE", "Write a Markdown page, and its rows as CSV.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print every cell as JSON.")] = False,
) -> None:
    """Compare two engines on a grid of scenarios.

    Prints the error of the first engine against the second, per flow at a point (cell) and overall: goodput,
    utilisation, retransmits, mean RTT, share and completion time, each the median over repetitions; where they disagree
    most; and whether the project's accuracy goals are met. docs/reference/validation.md defines the scenarios, the
    errors and the goals.

    The same command resumes an interrupted run; finished experiments are not run again.
    """
    from thalweg.validate import EngineComparison, GridPart, load_grid

    if page:
        _check_place(page)
    grid = load_grid(grids or [], quick=quick, repetitions=repetitions)
    capabilities = engine.capabilities()
    engines = engine.choose(first, capabilities), engine.choose(second, capabilities)
    parts = [GridPart.plan(document, engines, capabilities.engines) for document in grid.documents]
    _announce(parts, grid)
    if retry_untrustworthy:
        for side in dict.fromkeys(side for part in parts for side in part.sides if side.plan):
            forget_untrustworthy(side.place(out or RUNS))
    ended = _run(parts, out or RUNS, capabilities.binary, threads)
    comparison = EngineComparison.of(grid, parts)
    coverage = _evidence(parts, comparison)
    if as_json:
        output.data_json(validation_output.as_json(comparison, coverage, interrupted=ended is Exit.INTERRUPTED))
    else:
        validation_output.show(comparison)
    for item in coverage:
        if item.caution and ended is not Exit.INTERRUPTED:
            output.talk(evidence.sentence(item.caution))
    if any(side.status and side.status.untrustworthy for part in parts for side in part.sides):
        output.talk(f"some experiments are untrustworthy; to run them again: {retry.command()}")
    if ended is Exit.INTERRUPTED:
        output.talk(f"interrupted: finished experiments are compared; to resume: {typed.again()}")
    elif page:
        _write(page, comparison, _command(first, second, grids or [], repetitions, quick=quick))
    if check and ended is Exit.FINE:
        ended = _check(comparison)
    raise typer.Exit(evidence.worst([ended, *map(evidence.code, coverage)]))


def _check_place(page: Path) -> None:
    if page.suffix == ".csv":
        raise ThalwegError(
            "not-a-page",
            f"the page `{page}` has the same name as the CSV file that is written next to it",
            place="--page",
            hint=f"--page {page.with_suffix('.md')}",
            exit_code=Exit.CANNOT_WRITE,
        )
    if page.is_dir() or not page.parent.is_dir():
        raise ThalwegError(
            "no-folder",
            f"the page `{page}` cannot be written: "
            + ("it is a folder" if page.is_dir() else "there is no such folder"),
            place="--page",
            hint=None if page.is_dir() else shlex.join(["mkdir", "-p", str(page.parent)]),
            exit_code=Exit.CANNOT_WRITE,
        )


def _command(first: str, second: str, grids: Sequence[str], repetitions: int | None, *, quick: bool) -> str:
    """Return the command that repeats the comparison, up to and including `--page`."""
    words = ["thalweg", "validate", first, second]
    for name in grids:
        words += ["--grid", name]
    words += ["--quick"] if quick else []
    words += ["--repetitions", str(repetitions)] if repetitions else []
    return shlex.join([*words, "--page"])


def _write(path: Path, comparison: "EngineComparison", command: str) -> None:
    from thalweg.validate import page, rows_csv

    shown_path = path.name if path.is_absolute() else path.as_posix()
    rows = path.with_suffix(".csv")
    rows.write_text(rows_csv(comparison), encoding="utf-8")
    path.write_text(page(comparison, f"{command} {shlex.quote(shown_path)}", rows.name), encoding="utf-8")
    output.talk(f"page: {path}, rows: {rows}")
    for reason in comparison.stale:
        output.talk(f"a known disagreement no longer occurs; remove it: {reason.pattern}")


def _evidence(parts: Sequence["GridPart"], comparison: "EngineComparison") -> "list[Evidence]":
    from thalweg import analysis

    sides = dict.fromkeys(side for part in parts for side in part.sides if side.status)
    coverage = [analysis.of_status(side.status) for side in sides if side.status]
    extents = [
        analysis.Evidence(item.extent, item.caution and f"in {side.directory}: {item.caution}")
        for side, item in zip(sides, coverage, strict=True)
    ]
    if not any(compared.error is not None for cell in comparison.cells for compared in cell.measures.values()):
        extents.append(analysis.Evidence("none", "nothing was compared: no point has a value on both engines"))
    return extents


def _check(comparison: "EngineComparison") -> Exit:
    """Report goals that are not met; a run in which no goal was judged fails as well."""
    verdicts = [goal.verdict for goal in comparison.goals]
    if "not met" in verdicts:
        output.talk(f"--check: {verdicts.count('not met')} of {len(verdicts)} goals are not met")
        return Exit.FAILED
    if "met" not in verdicts:
        output.talk("--check: no goal could be judged: too few rows were compared")
        return Exit.NO_EVIDENCE
    return Exit.FINE


def _announce(parts: Sequence["GridPart"], grid: "Grid") -> None:
    from thalweg.run import duration

    is_one = parts[0].sides[0].engine == parts[0].sides[1].engine
    for number in (0,) if is_one else (0, 1):
        sides = [part.sides[number] for part in parts]
        count = sum(len(side.plan.experiments) for side in sides if side.plan)
        seconds = sum(side.real_time_s for side in sides)
        time = f", {duration(seconds)} if run one at a time" if seconds else ""
        hosts = (host for side in sides if side.plan for run in side.plan.experiments for host in run.hosts.values())
        generations = " and ".join(sorted({host.kernel for host in hosts if host.kernel}))
        model = f", hosts as Linux {generations}" if generations and not sides[0].engine.generations else ""
        output.talk(f"{sides[0].engine.name}: {count} experiments at {grid.cells} points{time}{model}")
    if grid.left_out:
        output.talk(
            f"quick: points left out: {grid.left_out} (only the ends of each swept range are run);"
            " experiments last 10 s at most, and have one repetition unless --repetitions sets more"
        )


def _run(parts: Sequence["GridPart"], folder: Path, binary: Path, threads: int | None) -> Exit:
    """Run the missing experiments of all parts; Ctrl-C stops the run and determines the exit code."""
    from thalweg.run import Progress, execute, real_time_s

    ended = Exit.FINE
    for part in parts:
        for side in part.sides:
            if side.plan is None or side.outcome:
                continue
            title = f"{part.name} on {side.engine.name}"
            seconds = real_time_s(side.plan, side.engine)
            with Progress(output.console(), title=title, real_time_s=seconds) as progress:
                directory = side.place(folder)
                outcome = execute(
                    side.plan, directory, binary=binary, threads=threads, command=typed.words(), listener=progress.event
                )
            side.ran(directory, outcome)
            if outcome.exit_code is Exit.INTERRUPTED:
                return Exit.INTERRUPTED
            ended = evidence.worst([ended, outcome.exit_code])
    return ended
