"""Plans of a candidate: for the points of the search, and for held-out points.

Parameters are not keys of the sweep, so candidates share seeds, and differences between them are not due to seeds.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from thalweg import plan, scenario
from thalweg.engine import Capabilities, Engine
from thalweg.errors import Exit, ThalwegError, ThalwegErrors
from thalweg.plan import Plan
from thalweg.scenario.document import Value
from thalweg.scenario.mistakes import by_line
from thalweg.scenario.positions import dotted
from thalweg.search.parameters import Parameter
from thalweg.search.table import NAME, Search

Side = Literal["seen", "held out"]
"""Points of the sweep: those of the search, or the held-out ones."""

Settings = Mapping[str, Value]

DIGITS = 8


@dataclass(frozen=True)
class Planner:
    """Plans candidates of a search for an engine."""

    search: Search
    engine: Engine
    known: Capabilities

    def plan(self, settings: Settings, side: Side) -> Plan:
        """Plan a candidate's experiments at the points of a side; without settings, the scenario as written.

        If nothing is held out, the held-out points are those of the search with other seeds.

        Raises:
            ThalwegErrors: If the scenario has mistakes with these settings, or the engine does not support them.
            ThalwegError: If the side has no points.
        """
        values = self.search.expanded(settings)
        if side == "held out" and not self.search.held_out:
            values["seed"] = self.next_seed
        document = scenario.checked(scenario.overridden(self.search.document, values))
        full_plan = plan.make(document, self.engine, self.known.engines)
        experiments = [experiment for experiment in full_plan.experiments if self._is_of(side, experiment.sweep)]
        if not experiments:
            raise ThalwegError(
                "no-points",
                f"no point of the sweep is {side}",
                place="search.held_out",
                expected="points with a held-out value, and points without any",
                hint="thalweg check shows the points of the sweep",
                source=self.search.document.source(("search", "held_out")),
            )
        return full_plan.model_copy(update={"experiments": experiments})

    def check(self) -> None:
        """Check that the engine supports the scenario, and the values in `Parameter.samples` of each parameter.

        The other parameters have their first value then, because the parameters of an algorithm depend on its choice.

        Raises:
            ThalwegErrors: If it does not; errors about a parameter have its position in the table [search].
        """
        first = {parameter.address: parameter.ends[0] for parameter in self.search.parameters}
        mistakes = {(error.place, error.code): error for error in self._unsupported({})}
        for parameter in self.search.parameters:
            for value in parameter.samples:
                for error in self._unsupported({**first, parameter.address: value}):
                    if (error.place, error.code) not in mistakes:
                        mistakes[error.place, error.code] = error
                        self._move(error, parameter)
        distinct = {(error.place, error.message): error for error in mistakes.values()}
        if distinct:
            raise ThalwegErrors(by_line(distinct.values()))

    def _unsupported(self, settings: Settings) -> list[ThalwegError]:
        document = scenario.overridden(self.search.document, self.search.expanded(settings))
        return plan.unsupported(document, self.engine, self.known.engines)

    def _move(self, error: ThalwegError, varied: Parameter) -> None:
        """Move an error from the rejected key to the parameter that sets it, or else to `varied`."""
        setting = (each for each in self.search.parameters if error.place in self.search.expanded({each.address: 0}))
        key_path = (NAME, "parameters", next(setting, varied).address)
        error.place, error.source = dotted(key_path), self.search.document.source(key_path)

    @property
    def seed(self) -> int:
        """The scenario's seed."""
        seed = self.search.document.raw.get("seed", 1)
        return seed if isinstance(seed, int) else 1

    @property
    def next_seed(self) -> int:
        """Seed of the points that replace held-out ones if nothing is held out."""
        return self.seed + 1 if self.seed < 2**53 - 1 else 0

    @property
    def repetitions(self) -> int:
        """Maximum number of repetitions of each point."""
        repetitions = self.search.document.raw.get("repetitions", 1)
        return repetitions if isinstance(repetitions, int) else 1

    def _is_of(self, side: Side, point: Mapping[str, object]) -> bool:
        if not self.search.held_out:
            return True
        return self.search.is_held_out(point) == (side == "held out")


def single_flow_plan(full_plan: Plan, flow: str) -> Plan:
    """Plan the same experiments with only the given flow, and their background traffic."""
    experiments = [
        experiment.model_copy(
            update={"flows": [planned_flow for planned_flow in experiment.flows if planned_flow.name == flow]}
        )
        for experiment in full_plan.experiments
    ]
    return full_plan.model_copy(update={"experiments": experiments})


def points(plan_: Plan) -> list[int]:
    """Return the indices of the points of a plan."""
    return list(dict.fromkeys(experiment.experiment for experiment in plan_.experiments))


def digest(*parts: str) -> str:
    """Return a hash of several texts.

    >>> digest("a", "b") == digest("ab")
    False
    """
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:DIGITS]


def fingerprint(planner: Planner) -> str:
    """Return a hash of all settings of a search except the budget."""
    search = planner.search
    sides: Sequence[Side] = ("seen", "held out")
    plans = [planner.plan({}, side).model_copy(update={"scenario_toml": ""}).model_dump_json() for side in sides]
    settings = [repr(setting) for setting in (*search.parameters, *search.objectives, *search.constraints)]
    return digest(*plans, *settings, planner.engine.name, planner.engine.version)


def claim_directory(directory: Path, name: str) -> None:
    """Create the directory of a search, or check by its fingerprint that it belongs to this search.

    Raises:
        ThalwegError: If it cannot be written, or belongs to another search.
    """
    mark = directory / "search.id"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        present = mark.read_text(encoding="utf-8").strip() or None if mark.exists() else None
        if present is None and any(entry.name != "search.id" for entry in directory.iterdir()):
            present = "none"
        if present is None:
            mark.write_text(f"{name}\n", encoding="utf-8")
    except OSError as error:
        raise ThalwegError(
            "cannot-write",
            f"`{directory}` cannot be written: {(error.strerror or str(error)).lower()}",
            place=str(directory),
            hint="choose another path with --out",
            exit_code=Exit.CANNOT_WRITE,
        ) from None
    if present not in (None, name):
        raise ThalwegError(
            "other-search",
            f"`{directory}` does not belong to this search",
            place=str(directory),
            expected="an empty directory, or that of the same scenario, seed and engine; the budget may differ",
            hint="choose another directory with --out, or omit --out",
        )
