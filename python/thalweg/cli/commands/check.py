"""`thalweg check`: checks a scenario and lists the points of its sweep."""

import gc
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Annotated

import typer

from thalweg import collector, engine
from thalweg.cli.options import EngineName, File, Overrides
from thalweg.cli.prepared import load, plan_for
from thalweg.cli.printing import experiments_output, output
from thalweg.engine import Capabilities
from thalweg.plan import Plan, copies_warning
from thalweg.scenario import Document

EPILOG = "Example: thalweg check scenarios/quickstart.toml"


def command(
    file: File,
    engine_name: EngineName = engine.DEFAULT,
    overrides: Overrides = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the whole plan as JSON.")] = False,
) -> None:
    """Check a scenario and list the points of its sweep."""
    with collector.paused():
        _check(file, engine_name, overrides or [], as_json=as_json)
        # The program ends here: garbage collection is unnecessary.
        gc.freeze()


def _check(file: Path, engine_name: str, overrides: Sequence[str], *, as_json: bool) -> None:
    document = load(file, engine_name, overrides)
    plan, capabilities = plan_for(document, engine_name)
    if warning := copies_warning(plan, capabilities.engines[plan.engine]):
        output.talk(f"warning: {warning}")
    searches = _searches(document, plan, capabilities)
    if as_json:
        output.data_json(plan.model_dump())
        return
    points = [list(group) for _, group in groupby(plan.experiments, key=lambda experiment: experiment.experiment)]
    output.data(experiments_output.table([repetitions[0] for repetitions in points], document))
    count, repeats = len(plan.experiments), len(points[0])
    output.talk(
        f"{file} is valid: {_count(count, 'experiment')} ({_count(len(points), 'point')}, "
        f"{_count(repeats, 'repetition')} each) for the engine {plan.engine}"
    )
    for search in searches:
        output.talk(search)


def _searches(document: Document, plan: Plan, capabilities: Capabilities) -> list[str]:
    lines = []
    if "search" in document.searches:
        lines.append(_search(document, plan, capabilities))
    if "fuzz" in document.searches:
        from thalweg.cli.printing import fuzz_output
        from thalweg.search.fuzz_table import Fuzz

        fuzz = Fuzz.of(document)
        fuzz.check(capabilities.engines[plan.engine])
        lines.append(fuzz_output.describe(fuzz))
    return lines


def _search(document: Document, plan: Plan, capabilities: Capabilities) -> str:
    from thalweg.cli.printing import search_output
    from thalweg.search.planning import Planner
    from thalweg.search.table import Search

    search = Search.of(document)
    Planner(search, capabilities.engines[plan.engine], capabilities).check()
    points = {experiment.experiment: experiment.sweep for experiment in plan.experiments}.values()
    held_out = sum(search.is_held_out(point) for point in points)
    repetitions = len(plan.experiments) // len(points)
    return search_output.describe(search, len(points) - held_out, held_out, repetitions)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
