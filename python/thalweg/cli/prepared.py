"""Creates a plan from a file and options, for the commands that take a scenario."""

from collections.abc import Sequence
from pathlib import Path

from thalweg import __version__, collector, engine, plan, scenario
from thalweg.cli import settings
from thalweg.cli.printing import output
from thalweg.errors import ThalwegError, ThalwegErrors
from thalweg.scenario.mistakes import by_line


def prepare(
    file: Path, engine_name: str, overrides: Sequence[str], seed: int | None = None, repetitions: int | None = None
) -> tuple[plan.Plan, engine.Capabilities]:
    """Read, check and resolve a scenario; its mistakes are reported before problems of the machine."""
    with collector.paused():
        return plan_for(load(file, engine_name, overrides, seed, repetitions), engine_name)


def load(
    file: Path, engine_name: str, overrides: Sequence[str], seed: int | None = None, repetitions: int | None = None
) -> scenario.Document:
    """Read and check a scenario, with the overrides of the command line.

    If the only mistakes are congestion controls that the engine lacks, they are left to `plan_for`.

    Raises:
        ThalwegErrors: If there are other mistakes; the errors include such congestion controls.
    """
    values = settings.parse(overrides)
    values |= {key: value for key, value in (("seed", seed), ("repetitions", repetitions)) if value is not None}
    document = scenario.unchecked(file, values)
    if mistakes := scenario.find(document):
        raise ThalwegErrors(by_line([*mistakes, *_wrong_algorithms(document, engine_name)]))
    return document


def _wrong_algorithms(document: scenario.Document, engine_name: str) -> list[ThalwegError]:
    """Return errors for congestion controls that the engine lacks; empty if the engine cannot be used."""
    try:
        available = engine.capabilities(engine_name)
        if not plan.wrong_algorithms(document, engine.choose(engine_name, available), available.engines):
            return []
        available = engine.capabilities()  # the hints list the engines that have an algorithm
        return plan.wrong_algorithms(document, engine.choose(engine_name, available), available.engines)
    except ThalwegError:
        return []


def plan_for(document: scenario.Document, engine_name: str) -> tuple[plan.Plan, engine.Capabilities]:
    """Resolve a checked scenario for an engine, and check that this machine can run the plan.

    The other engines are probed only for an error, because probing takes time and only errors name them.
    """
    capabilities = engine.capabilities(engine_name)
    _compare_versions(capabilities)
    try:
        planned = plan.make(document, engine.choose(engine_name, capabilities), capabilities.engines)
    except (ThalwegError, ThalwegErrors):
        capabilities = engine.capabilities()
        planned = plan.make(document, engine.choose(engine_name, capabilities), capabilities.engines)
    # The default engine has no requirements.
    if engine_name != engine.DEFAULT and (refusals := engine.refusals(planned.model_dump_json())):
        raise ThalwegErrors(refusals)
    return planned, capabilities


def _compare_versions(capabilities: engine.Capabilities) -> None:
    if capabilities.version != __version__:
        versions = f"{engine.BINARY} is version {capabilities.version}, thalweg is {__version__}"
        output.talk(f"{versions}: see `thalweg doctor` ({capabilities.binary})")
