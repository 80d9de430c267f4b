"""A scenario of the grid on both engines: the experiments of each, and those that it cannot run.

Experiments that an engine cannot run are reported with the reason; the others are compared.
"""

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

KERNEL = "host.*.kernel="
"""Prefix of the Linux generations in the list of supported keys."""


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
    """Result of `thalweg.analysis.measuring.summary`; None: no experiment is complete."""
    status: analysis.Status | None = None
    meta: RunFile | None = None
    """Content of run.json; None: no experiment is complete."""

    @property
    def real_time_s(self) -> float:
        """Total duration of its experiments, if known."""
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

        If the engines have exactly one generation of Linux in common, hosts without a `kernel` get that one, because a
        simulated 6.18 and a real 6.1 differ in any case. Raises `ThalwegErrors` if neither engine can run any point.
        """
        document = _with_common_kernel(document, engines)
        planned: list[plan.Possible | None] = []
        refusals: list[ThalwegErrors] = []
        for engine in engines:
            try:
                planned.append(plan.possible(document, engine, available))
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


def _with_common_kernel(document: Document, engines: tuple[Engine, Engine]) -> Document:
    first, second = (
        {key.removeprefix(KERNEL) for key in engine.honours if key.startswith(KERNEL)} for engine in engines
    )
    if first == second or len(first & second) != 1:
        return document
    (kernel,) = first & second
    hosts = values.table(document.raw, "host")
    names = ["sender", "receiver", *(name for name in hosts if name not in ("sender", "receiver"))]
    of_hosts = {f"host.{name}.kernel": values.table(hosts, name) for name in names}
    free = [key for key, host in of_hosts.items() if key not in document.swept and "kernel" not in host]
    return overridden(document, dict.fromkeys(free, kernel))


def _all(points: list[plan.Experiment], reason: str) -> dict[int, str]:
    return {point.experiment: reason for point in points}
