"""Converts a scenario to a plan."""

from collections.abc import Mapping

from thalweg import collector
from thalweg.engine import Engine
from thalweg.errors import ThalwegErrors
from thalweg.plan import honours, seeds
from thalweg.plan.models import Experiment, Plan
from thalweg.plan.resolve import Resolver
from thalweg.plan.traces import Traces
from thalweg.scenario import Document, sweep
from thalweg.scenario.values import whole_number

FORMAT = 1


def make(document: Document, engine: Engine, others: Mapping[str, Engine]) -> Plan:
    """Resolve the experiments of a checked scenario, in the order of its sweep.

    Raises:
        ThalwegErrors: If `engine` does not support a setting; the error names engines of `others` that do.
    """
    raw = document.raw
    if errors := honours.check(document, engine, others):
        raise ThalwegErrors(sorted(errors, key=lambda error: (error.source and error.source.line) or 0))
    with collector.paused():
        experiments, traces = _experiments(document)
    return Plan(
        format=FORMAT,
        engine=engine.name,
        name=str(raw["name"]),
        about=str(raw.get("about", "")),
        source=str(raw.get("source", "")),
        scenario_toml=document.text,
        traces=traces.by_name,
        profiles=traces.profiles,
        experiments=experiments,
    )


def _experiments(document: Document) -> tuple[list[Experiment], Traces]:
    raw, traces = document.raw, Traces()
    resolver = Resolver(document.file.parent, traces)
    experiments: list[Experiment] = []
    for number, (assignment, point) in enumerate(sweep.scenarios(raw, document.axes)):
        resolved = resolver.resolve(point)
        settings = {key: seeds.number(value) for key, value in assignment.items()}
        for repetition in range(whole_number(raw, "repetitions", 1)):
            seed = seeds.derive(whole_number(raw, "seed", 1), assignment, repetition)
            experiments.append(resolved.experiment(experiment=number, repetition=repetition, sweep=settings, seed=seed))
    return experiments, traces
