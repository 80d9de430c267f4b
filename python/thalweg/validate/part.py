"""A scenario of the grid on both engines."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from thalweg import analysis, plan
from thalweg.engine import Engine
from thalweg.errors import ThalwegError, ThalwegErrors
from thalweg.plan import Plan
from thalweg.results import open_run
from thalweg.results.run_file import RunFile
from thalweg.run import Outcome, default_directory, real_time_s
from thalweg.scenario import Document, overridden, values
from thalweg.validate.errors import ERRORS


@dataclass(eq=False)
class EngineSide:
    """A scenario on one engine."""

    engine: Engine
    plan: Plan | None
    """The plan; None: the engine can run no point."""
    reasons: dict[int, str]
    """Points of the sweep that the engine cannot run, with the reasons."""
    directory: Path | None = None
    """Run directory; None before the run."""
    outcome: Outcome | None = None
    summary: pl.DataFrame | None = None
    """Result of `thalweg.analysis.summary`; None: no experiment is complete."""
    status: analysis.Status | None = None
    meta: RunFile | None = None
    """Content of run.json; None: no experiment is complete."""

    @property
    def real_time_s(self) -> float:
        """Total duration of its experiments in seconds; 0 if unknown, or if the engine does not run in real time."""
        return (real_time_s(self.plan, self.engine) or 0.0) if self.plan else 0.0

    def place(self, folder: Path) -> Path:
        """Return the path of the run directory below `folder`."""
        assert self.plan
        return default_directory(self.plan, self.engine, folder)

    def ran(self, directory: Path, outcome: Outcome) -> None:
        """Store the outcome of a run."""
        self.directory, self.outcome = directory, outcome
        try:
            run = open_run(directory)
        except ThalwegError as error:
            if error.code not in ("empty-run", "no-run"):  # the run was interrupted before an experiment was complete
                raise
            return
        self.summary, self.status, self.meta = analysis.summary(run, ERRORS), analysis.status(run), run.meta


@dataclass
class GridPart:
    """A scenario of the grid, and both of its sides."""

    name: str
    about: str
    points: list[plan.Experiment]
    """One experiment for each sweep point of the scenario, whether or not the engines can run it."""
    sides: tuple[EngineSide, EngineSide]
    sweep_keys: list[str] = field(default_factory=list)

    @classmethod
    def plan(cls, document: Document, engines: tuple[Engine, Engine], available: Mapping[str, Engine]) -> "GridPart":
        """Plan a scenario for both engines.

        Simulated hosts without a `kernel` get the generation nearest to the other engine's, because a simulated 6.18
        and a real 6.1 differ in any case.

        Raises:
            ThalwegErrors: If both engines refuse the scenario.
        """
        first, second = engines
        documents = (_with_generation(document, first, second), _with_generation(document, second, first))
        planned: list[plan.Possible | None] = []
        refusals: list[ThalwegErrors] = []
        for engine, own in zip(engines, documents, strict=True):
            try:
                planned.append(plan.possible(own, engine, available))
            except ThalwegErrors as error:
                planned.append(None)
                refusals.append(error)
        first_possible = next((possible for possible in planned if possible is not None), None)
        if first_possible is None:
            raise refusals[0]
        points = first_possible.points
        sides = [
            EngineSide(engine, possible.plan, possible.reasons)
            if possible
            else EngineSide(engine, None, _all(points, refusals[0].message))
            for engine, possible in zip(engines, planned, strict=True)
        ]
        # An engine that is compared with itself runs once.
        both = (sides[0], sides[0] if engines[0] == engines[1] else sides[1])
        raw = document.raw
        return cls(str(raw["name"]), str(raw.get("about", "")), points, both, list(document.swept))


def _with_generation(document: Document, engine: Engine, other: Engine) -> Document:
    """Return the scenario for an engine without a kernel: its hosts have the generations of the other engine's, unless
    set.
    """
    if engine.generations or not other.generations:
        return document
    hosts = values.table(document.raw, "host")
    free = {}
    for name in dict.fromkeys(("sender", "receiver", *hosts)):
        key, of = f"host.{name}.kernel", "receiver" if name == "receiver" else "senders"
        if of in other.generations and key not in document.swept and "kernel" not in values.table(hosts, name):
            free[key] = other.generations[of]
    return overridden(document, free)


def _all(points: list[plan.Experiment], reason: str) -> dict[int, str]:
    return {point.experiment: reason for point in points}
