"""Results of a candidate's experiments."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from thalweg import analysis, executors
from thalweg.checks import HARM, Term
from thalweg.engine_output import EngineEvent
from thalweg.errors import Exit, ThalwegError
from thalweg.plan import Plan
from thalweg.results import open_run
from thalweg.run import Outcome
from thalweg.search import locks
from thalweg.search.planning import digest, points, single_flow_plan
from thalweg.search.terms import Constraint, Objective

ALONE_MEASURE = "goodput"
"""Measure from which harm is computed: goodput beside the others, and alone."""

At = tuple[int, int]
"""A point and a repetition."""

Values = Mapping[Term, Mapping[At, float]]
"""Values of measures by experiment; experiments without a value are missing."""


class Interrupted(Exception):
    """A run was interrupted before its end."""


@dataclass(frozen=True)
class Lab:
    """Runs plans on an engine, and reads the results."""

    binary: Path
    folder: Path
    """Folder of run directories with a single flow."""
    threads: int | None = None
    command: Sequence[str] = ()
    listener: Callable[[EngineEvent], None] = field(default=lambda event: None)
    executor: str = executors.DEFAULT
    _alone_known: dict[tuple[Path, int | None], Mapping[At, float]] = field(default_factory=dict)

    def run(self, plan: Plan, directory: Path, repetitions: int | None = None) -> Outcome:
        """Run the missing experiments among the first repetitions of every point; None: all repetitions.

        Raises:
            Interrupted: If the user requested a stop.
            ThalwegError: If the engine cannot run the plan.
        """
        due = None
        if repetitions is not None:
            due = [
                (experiment.experiment, experiment.repetition)
                for experiment in plan.experiments
                if experiment.repetition < repetitions
            ]
        work = executors.Work(plan, directory, self.binary, self.threads, self.command, self.listener, due)
        outcome = executors.execute(work, self.executor)
        if outcome.exit_code is Exit.INTERRUPTED:
            raise Interrupted
        return outcome

    def measure(self, plan: Plan, directory: Path, terms: Sequence[Term], repetitions: int | None = None) -> Values:
        """Run a plan as `run` does, and read measures of all its finished experiments.

        Raises:
            Interrupted: If the user requested a stop.
            ThalwegError: If an experiment failed, or the run cannot be read.
        """
        raise_failed(self.run(plan, directory, repetitions))
        values = dict(read(directory, [term for term in terms if term.measure != HARM]))
        for term in terms:
            if term.measure == HARM:
                goodput = Term(ALONE_MEASURE, term.flow)
                values[term] = _harm(read(directory, [goodput])[goodput], self._solo(plan, goodput, repetitions))
        return values

    def _solo(self, plan: Plan, term: Term, repetitions: int | None) -> Mapping[At, float]:
        """Run the flow of a term alone; candidates with equal plans for this flow share the run."""
        solo_plan = single_flow_plan(plan, str(term.flow)).model_copy(update={"scenario_toml": ""})
        directory = self.folder / f"{term.flow}-{digest(solo_plan.model_dump_json())}"
        if (directory, repetitions) not in self._alone_known:
            with locks.exclusive(directory.with_suffix(".lock")):
                raise_failed(self.run(solo_plan, directory, repetitions))
            self._alone_known[directory, repetitions] = read(directory, [term])[term]
        return self._alone_known[directory, repetitions]


def raise_failed(outcome: Outcome) -> None:
    """Check that no experiment failed.

    Raises:
        ThalwegError: If one failed; the error is that of the first one.
    """
    if outcome.failed:
        first = outcome.failed[0]
        raise ThalwegError("experiments-failed", str(first["message"]).strip().splitlines()[0], exit_code=Exit.FAILED)


def read(directory: Path, terms: Sequence[Term]) -> Values:
    """Read measures of a run directory; untrustworthy experiments have no values."""
    if not terms:
        return {}
    frame = analysis.repetitions(open_run(directory), measures={term.measure for term in terms})
    values: dict[Term, dict[At, float]] = {}
    for term in terms:
        of_flow = pl.col("flow").eq_missing(pl.lit(term.flow, pl.String))
        rows = frame.filter(pl.col("measure") == term.measure, of_flow).drop_nulls("value")
        values[term] = {
            (row[0], row[1]): row[2] for row in rows.select("experiment", "repetition", "value").iter_rows()
        }
    return values


def by_repetition(values: Values, quantity: Objective | Constraint, at: Sequence[int]) -> list[float | None]:
    """Reduce the points `at` to one value per repetition; None if a point has no value."""
    of_term = values[quantity.term]
    count = max((repetition for _, repetition in of_term), default=-1) + 1
    reduced: list[float | None] = []
    for repetition in range(count):
        present = [of_term[point, repetition] for point in at if (point, repetition) in of_term]
        reduced.append(quantity.reduce(present) if len(present) == len(at) else None)
    return reduced


def all_quantities(
    values: Values, quantities: Sequence[Objective | Constraint], plan: Plan
) -> list[list[float | None]]:
    """Reduce all points of a plan to one value per repetition, for each quantity."""
    at = points(plan)
    return [by_repetition(values, quantity, at) for quantity in quantities]


def _harm(shared: Mapping[At, float], solo: Mapping[At, float]) -> dict[At, float]:
    harms = {at: analysis.harm(value, solo[at], True) for at, value in shared.items() if at in solo}
    return {at: value for at, value in harms.items() if value is not None}
