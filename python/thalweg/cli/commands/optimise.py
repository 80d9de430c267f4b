"""`thalweg optimise`: search for the parameters of a scenario that reach its objectives best."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from thalweg import engine, executors
from thalweg.cli import prepared, typed
from thalweg.cli.options import EngineName, Executor, File, Overrides, Threads, option
from thalweg.cli.printing import evidence, output
from thalweg.cli.retry import FLAG, forget_untrustworthy
from thalweg.errors import Exit, ThalwegError
from thalweg.plan import copies_warning
from thalweg.run.directory import RUNS

if TYPE_CHECKING:
    from thalweg.cli.printing.search_progress import SearchProgress
    from thalweg.search.outcome import Outcome
    from thalweg.search.planning import Planner
    from thalweg.search.searching import Searching

EPILOG = "Example: thalweg optimise scenarios/optimise-bbr.toml"

PAGE = "search.html"


def command(
    file: File,
    engine_name: EngineName = engine.DEFAULT,
    confirm: Annotated[
        str | None, option("--confirm", "ENGINE", "Verify the best candidates on this engine also: uml, kernel or vm.")
    ] = None,
    budget: Annotated[
        int | None, option("--budget", "N", "Number of candidates, instead of the scenario's.", min=1)
    ] = None,
    out: Annotated[
        Path | None, option("--out", "DIR", "Directory of the search. [default: runs/NAME-search-HASH]")
    ] = None,
    threads: Threads = None,
    executor: Executor = executors.DEFAULT,
    seed: Annotated[int | None, option("--seed", "N", "Random seed, instead of the scenario's.", min=0)] = None,
    repetitions: Annotated[int | None, option("--repetitions", "N", "Maximum repetitions of a point.", min=1)] = None,
    overrides: Overrides = None,
    retry_untrustworthy: Annotated[
        bool,
        typer.Option(FLAG, help="Run verification experiments again that this machine disturbed (untrustworthy)."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the results as JSON.")] = False,
) -> None:
    """Search for the best parameters of a scenario.

    The table [search] of the scenario names parameters, objectives, and optionally constraints and held-out points of
    the sweep, which the search does not run. Prints the best candidates (values of the parameters), verifies them
    against the unchanged scenario at the held-out points (without any: at the points of the search, with another seed),
    and writes a page.

    The same command resumes an interrupted search; started in several terminals at once, the processes share the work.
    """
    from thalweg.search.planning import Planner, claim_directory, fingerprint
    from thalweg.search.table import Search

    executors.check(executor)
    document = prepared.load(file, engine_name, overrides or [], seed, repetitions)
    search = Search.of(document)
    search = replace(search, budget=budget or search.budget)
    plan, capabilities = prepared.plan_for(document, engine_name)
    planner = Planner(search, capabilities.engines[plan.engine], capabilities)
    planner.check()
    planners = [planner, *([_confirming(planner, confirm)] if confirm else [])]
    if warning := copies_warning(plan, planner.engine):
        output.talk(f"warning: {warning}")
    name = fingerprint(planner)
    directory = out or RUNS / f"{plan.name}-search-{name}"
    claim_directory(directory, name)
    if retry_untrustworthy:
        for verified in ("held-out", "confirm-*"):
            for file in sorted(directory.glob(f"{verified}/**/run.json")):
                forget_untrustworthy(file.parent)
    raise typer.Exit(_search(planners, directory, threads, executor, as_json=as_json))


def _confirming(planner: "Planner", name: str) -> "Planner":
    """Return the planner for the confirming engine, after a check that the engine can run the experiments."""
    capabilities = engine.capabilities()
    other = replace(planner, engine=engine.choose(name, capabilities, "--confirm"), known=capabilities)
    try:
        other.check()
    except ThalwegError as problem:
        for error in problem.errors:
            error.message = f"for --confirm {name}: {error.message}"
        raise
    return other


def _search(planners: "list[Planner]", directory: Path, threads: int | None, executor: str, *, as_json: bool) -> Exit:
    from thalweg.cli.printing.search_progress import SearchProgress
    from thalweg.search import outcome as found
    from thalweg.search.measuring import Interrupted, Lab
    from thalweg.search.searching import Searching
    from thalweg.search.store import Store

    planner = planners[0]
    with SearchProgress(output.console(), planner.search.budget, partial(found.best_text, planner.search)) as progress:
        store = Store(directory, planner.search, planner.seed)
        lab = Lab(planner.known.binary, directory / "alone", threads, typed.words(), progress.event, executor)
        searching = Searching(planner, lab, directory, store, progress.candidates)
        try:
            outcome = _finish(searching, planners, progress)
        except (Interrupted, KeyboardInterrupt):
            evaluated = len(store.evaluated())
            progress.end()
            budget = planner.search.budget
            output.talk(f"interrupted: {evaluated} of {budget} candidates are evaluated; to resume: {typed.again()}")
            return Exit.INTERRUPTED
    with store.exclusive():
        problem = _write(outcome, directory)
    if as_json:
        output.data_json({"run": str(directory), "page": str(directory / PAGE), **found.as_json(outcome),
                          "command": typed.words()})  # fmt: skip
    else:
        from thalweg.cli.printing import search_output

        search_output.show(outcome, directory, None if problem else directory / PAGE)
    if problem:
        raise problem
    return _code(outcome)


def _finish(searching: "Searching", planners: "list[Planner]", progress: "SearchProgress") -> "Outcome":
    from thalweg.search.outcome import Outcome
    from thalweg.search.verifying import verify, winners

    candidates = searching.run()
    first = planners[0]
    best = winners(candidates, first.search)
    verified = []
    for planner in planners if best else []:
        is_first = planner is first
        folder = searching.folder / ("held-out" if is_first else f"confirm-{planner.engine.name}")
        lab = searching.lab
        if not is_first:  # clusters do not run real-time engines
            lab = replace(lab, folder=folder / "alone", executor=executors.DEFAULT)
        with searching.store.exclusive():
            verified.append(verify(planner, lab, folder, best, partial(progress.verifying, planner.engine.name)))
    default = searching.store.default
    assert default, "it was evaluated first"
    return Outcome(first, default, candidates, searching.store.importances(), verified)


def _write(outcome: "Outcome", directory: Path) -> ThalwegError | None:
    """Write all results; return the error if that fails, because the results are printed in any case."""
    from thalweg.report.files import cannot_write
    from thalweg.search import page
    from thalweg.search.outcome import write

    try:
        write(outcome, directory)
        page.write(outcome, directory / PAGE, typed.again())
    except OSError as error:
        hint = f"free some space, then: {typed.again()}"
        return cannot_write(directory, "the results", error.strerror or str(error), hint)
    except ThalwegError as error:
        return error
    return None


def _code(outcome: "Outcome") -> Exit:
    if not outcome.shown:
        return Exit.FAILED
    is_missing = outcome.failed or any(
        verified.untrustworthy or any(candidate.failed for candidate in verified.candidates)
        for verified in outcome.verified
    )
    return evidence.worst([Exit.INCOMPLETE if is_missing else Exit.FINE])
