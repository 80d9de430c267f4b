"""Runs the scenarios of the classes in the simulator; existing runs are reused."""

from collections.abc import Callable
from pathlib import Path

from thalweg import engine, plan, scenario
from thalweg.errors import Exit, ThalwegError
from thalweg.plan import Plan
from thalweg.results import open_run
from thalweg.run import Outcome, execute
from thalweg.scenario.document import READY_MADE
from thalweg.synth.classes import CLASSES, PathClass
from thalweg.synth.pool import Pool, pool_of

FOLDER = "cdn"

QUICK = {"repetitions": 1, "flow.object.repeat.count": 2}
"""Overrides of a quick set, which has fewer connections."""

Runner = Callable[[PathClass, Plan, Path, Path], Outcome]


def silently(kind: PathClass, planned: Plan, folder: Path, binary: Path) -> Outcome:
    """Run a plan without progress output."""
    return execute(planned, folder, binary=binary)


def simulate(runs: Path, *, quick: bool, runner: Runner = silently) -> dict[str, Pool]:
    """Run the scenario of each class into a folder below `runs`, and return the pools of connections.

    Raises:
        ThalwegError: If the simulator cannot run, or an experiment fails; the same call resumes.
        KeyboardInterrupt: If a run was interrupted; the same call resumes.
    """
    capabilities = engine.capabilities()
    simulator = engine.choose(engine.DEFAULT, capabilities)
    pools = {}
    for kind in CLASSES:
        document = scenario.load(READY_MADE / FOLDER / f"{kind.name}.toml", QUICK if quick else {})
        planned = plan.make(document, simulator, capabilities.engines)
        folder = plan.folder_of(runs, kind.name, simulator, planned)
        _check(runner(kind, planned, folder, capabilities.binary), folder)
        pools[kind.name] = pool_of(open_run(folder), kind)
    return pools


def _check(outcome: Outcome, folder: Path) -> None:
    if outcome.exit_code is Exit.INTERRUPTED:
        raise KeyboardInterrupt
    if outcome.failed:
        raise ThalwegError(
            "experiments-failed",
            f"{len(outcome.failed)} of {outcome.experiments} experiments failed",
            place=str(folder),
            found=str(outcome.failed[0]["message"]),
            hint="the same command tries the failed ones again",
            exit_code=Exit.FAILED,
        )
