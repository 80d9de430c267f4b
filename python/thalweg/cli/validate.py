"""`thalweg validate`: how far are two engines apart on a grid of paths?"""

import shlex
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from thalweg import engine
from thalweg.cli import output, retry, typed
from thalweg.cli import validation_tables as tables
from thalweg.cli.options import option
from thalweg.cli.retry import Retry, forget_untrustworthy
from thalweg.errors import Exit

if TYPE_CHECKING:
    from thalweg.validate import Cell, Grid, Overall, Part

EPILOG = "Example: thalweg validate sim kernel --quick"

RUNS = Path("runs") / "validate"
"""Folder of the run directories, in the current directory."""


def command(
    first: Annotated[str, typer.Argument(metavar="ENGINE", help="Engine to judge.", show_default=False)],
    second: Annotated[str, typer.Argument(metavar="ENGINE", help="Engine to judge it by.", show_default=False)],
    grids: Annotated[
        list[str] | None,
        option("--grid", "NAME|FILE", "A part of the ready-made grid, or a scenario. [default: all parts]"),
    ] = None,
    quick: Annotated[
        bool,
        typer.Option("--quick", help="Only the ends of each range, once, 10 s at most: minutes, not half an hour."),
    ] = False,
    repetitions: Annotated[int | None, option("--repetitions", "N", "Another number of repetitions.", min=1)] = None,
    out: Annotated[Path | None, option("--out", "DIR", f"Folder of the run directories. [default: {RUNS}]")] = None,
    threads: Annotated[
        int | None, option("--threads", "N", "Experiments at a time. [default: what suits the engine]", min=1)
    ] = None,
    retry_untrustworthy: Retry = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print every cell as JSON.")] = False,
) -> None:
    """Compare two engines on a grid of scenarios.

    Prints the error of the first engine against the second, cell by cell and overall: goodput, retransmits, mean RTT,
    share and completion time, each the median over repetitions. Which scenarios, and how the errors are defined, is
    told in docs/reference/validation.md.

    The same command goes on where it was interrupted; what is finished is not run again.
    """
    from thalweg.validate import Part, compare, load_grid, overall

    grid = load_grid(grids or [], quick=quick, repetitions=repetitions)
    known = engine.capabilities()
    engines = engine.choose(first, known), engine.choose(second, known)
    parts = [Part.plan(document, engines, known.engines) for document in grid.documents]
    _announce(parts, grid)
    if retry_untrustworthy:
        for side in dict.fromkeys(side for part in parts for side in part.sides if side.plan):
            forget_untrustworthy(side.place(out or RUNS))
    ended = _run(parts, out or RUNS, known.binary, threads)
    cells = [cell for part in parts for cell in compare(part)]
    errors = [
        (name, compared.error)
        for cell in cells
        for name, compared in cell.measures.items()
        if compared.error is not None
    ]
    if as_json:
        output.data_json(_json((first, second), cells, overall(errors), parts, grid, ended))
    else:
        _print((first, second), cells, overall(errors), parts)
    if any(side.status and side.status.untrustworthy for part in parts for side in part.sides):
        output.talk(f"some experiments are untrustworthy; to run them again: {retry.command()}")
    if ended is Exit.INTERRUPTED:
        output.talk(f"interrupted: what is finished is compared; to go on: {typed.again()}")
    raise typer.Exit(ended)


def _announce(parts: Sequence["Part"], grid: "Grid") -> None:
    """Say what is going to happen, and what is not."""
    from thalweg.run import duration

    is_one = parts[0].sides[0].engine == parts[0].sides[1].engine
    for number in (0,) if is_one else (0, 1):
        sides = [part.sides[number] for part in parts]
        many = sum(len(side.plan.experiments) for side in sides if side.plan)
        seconds = sum(side.real_time_s for side in sides)
        time = f", {duration(seconds)} if run one at a time" if seconds else ""
        output.talk(f"{sides[0].engine.name}: {many} experiments at {grid.cells} points{time}")
    if grid.left_out:
        output.talk(
            f"quick: {grid.left_out} more points are left out (of swept keys only the ends of their ranges are tried);"
            " experiments last 10 s at most, and have one repetition unless --repetitions says more"
        )


def _run(parts: Sequence["Part"], folder: Path, binary: Path, threads: int | None) -> Exit:
    """Run what is missing of all parts; a Ctrl-C ends that, and is the answer."""
    from thalweg.run import Progress, execute, real_time_s

    ended = Exit.FINE
    for part in parts:
        for side in part.sides:
            if side.plan is None or side.outcome:
                continue
            title = f"{part.name} on {side.engine.name}"
            seconds = real_time_s(side.plan, side.engine)
            with Progress(output.console(), title=title, real_time_s=seconds) as progress:
                place = side.place(folder)
                outcome = execute(
                    side.plan, place, binary=binary, threads=threads, command=typed.words(), listener=progress.event
                )
            side.ran(place, outcome)
            if outcome.exit_code is Exit.INTERRUPTED:
                return Exit.INTERRUPTED
            ended = max(ended, outcome.exit_code)
    return ended


def _print(
    names: tuple[str, str], cells: Sequence["Cell"], totals: Sequence["Overall"], parts: Sequence["Part"]
) -> None:
    is_terminal = sys.stdout.isatty()
    output.data(f"errors of {names[0]}, with {names[1]} as the reference")
    for part in parts:
        mine = [cell for cell in cells if cell.scenario == part.name]
        output.data(f"\n{part.name}: {part.about}" if part.about else f"\n{part.name}")
        tables.show(tables.of_cells(mine, part.sweep_keys), is_terminal=is_terminal)
        for note, many in tables.notes(mine):
            output.data(f"  {note}" + (f" ({many} rows)" if many > 1 else ""))
    output.data("\noverall, of the sizes of the errors")
    tables.show(tables.of_overall(totals), is_terminal=is_terminal)
    output.data("\nboth engines in one report, with time series")
    for line in _reports(parts):
        output.data(f"  {line}")


def _reports(parts: Sequence["Part"]) -> list[str]:
    """Give the command for a report of both sides of each part that has two."""
    lines = []
    for part in parts:
        there = dict.fromkeys(str(side.directory) for side in part.sides if side.summary is not None)
        if there:
            lines.append(shlex.join(["thalweg", "report", *there, "--output", f"{part.name}.html"]))
    return lines


def _json(
    names: tuple[str, str],
    cells: Sequence["Cell"],
    totals: Sequence["Overall"],
    parts: Sequence["Part"],
    grid: "Grid",
    ended: Exit,
) -> dict[str, Any]:
    return {
        "engines": list(names),
        "reference": names[1],
        "points": grid.cells,
        "points_left_out": grid.left_out,
        "interrupted": ended is Exit.INTERRUPTED,
        "cells": [asdict(cell) for cell in cells],
        "overall": [asdict(each) for each in totals],
        "runs": [
            {"scenario": part.name, "engine": side.engine.name, "run": str(side.directory)}
            for part in parts
            for side in dict.fromkeys(part.sides)
            if side.directory
        ],
        "reports": _reports(parts),
    }
