"""`thalweg reproduce`: a paper's experiments, run here, and its claims, judged one by one."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from thalweg import engine
from thalweg.cli import output, reproduce_output, typed
from thalweg.cli.options import option
from thalweg.errors import Exit

if TYPE_CHECKING:
    from thalweg.engine import Capabilities, Engine
    from thalweg.run import Outcome
    from thalweg.studies import Study
    from thalweg.studies.tried import Tried

EPILOG = "Example: thalweg reproduce itc18-mixed-workload --quick"

EVERY = "all"
"""Stands for all engines."""


def command(
    name: Annotated[
        str,
        typer.Argument(metavar="NAME|DIR|all", help="Study, a folder with one, or all studies.", show_default=False),
    ],
    engine_name: Annotated[str, option("--engine", "NAME|all", "Engine to use. [default: sim]")] = engine.DEFAULT,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer points and repetitions: a first look.")] = False,
    out: Annotated[Path | None, option("--out", "DIR", "Folder of runs and pages. [default: runs/studies]")] = None,
    threads: Annotated[
        int | None, option("--threads", "N", "Experiments at a time. [default: what suits the engine]", min=1)
    ] = None,
) -> None:
    """Run a paper's experiments, and judge its claims.

    Prints claim by claim what the paper found, what the engines found, and whether the claim holds there. Which
    studies there are: thalweg studies. How claims are judged is told in docs/reference/studies.md.

    The same command goes on where it was interrupted; what is finished is not run again.
    """
    from thalweg import studies

    wanted = list(studies.ready_made().values()) if name == studies.ALL else [studies.find(name)]
    loaded = [studies.load(folder) for folder in wanted]
    known = engine.capabilities()
    engines = _engines(engine_name, known)
    ended = Exit.FINE
    for study in loaded:
        planned = [studies.plan(study, each, known, quick=quick) for each in engines]
        for each in planned:
            place = studies.folder(study, each.engine.name, out or studies.RUNS, quick=quick)
            studies.run(each, place, partial(_run, study, known, threads))
            ended = max(ended, each.exit_code)
            if each.exit_code is Exit.INTERRUPTED:
                break
        reproduce_output.show(study, planned)
        if ended is Exit.INTERRUPTED:
            output.talk(f"interrupted: what is finished was judged; to go on: {typed.again()}")
            break
    raise typer.Exit(ended if ended is Exit.INTERRUPTED else Exit.FINE)


def _engines(name: str, known: "Capabilities") -> "list[Engine]":
    return list(known.engines.values()) if name == EVERY else [engine.choose(name, known)]


def _run(study: "Study", known: "Capabilities", threads: int | None, tried: "Tried", directory: Path) -> "Outcome":
    from thalweg.run import Progress, execute, real_time_s

    assert tried.plan
    title = f"{study.name}: {tried.part} on {tried.engine.name}"
    seconds = real_time_s(tried.plan, tried.engine)
    with Progress(output.console(), title=title, real_time_s=seconds) as progress:
        return execute(
            tried.plan,
            directory,
            binary=known.binary,
            threads=threads,
            command=typed.words(),
            listener=progress.event,
        )
