"""Repeats each point until its claims' intervals are as narrow as their tolerances, or all repetitions are run.

Repetitions that were not needed are listed in the run directory, so that they do not count as missing.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from thalweg.analysis import MEASURES
from thalweg.plan import Plan
from thalweg.results.run import NOT_NEEDED, Run
from thalweg.studies.claims.models import Claim
from thalweg.studies.judging.judged import Judged

FIRST = 3
"""Minimum number of repetitions; an interval of fewer is too wide."""

GROWTH = 1.5

WHY = "the claims' intervals are narrower than their tolerances"

ExperimentKey = tuple[int, int]
"""Point and repetition of an experiment."""


@dataclass
class Schedule:
    """Determines which experiments of a plan to run next."""

    plan: Plan
    asked: set[ExperimentKey] = field(default_factory=set)
    repetitions: dict[int, int] = field(default_factory=dict)

    @property
    def all(self) -> list[ExperimentKey]:
        """All planned experiments, in order."""
        return [(experiment.experiment, experiment.repetition) for experiment in self.plan.experiments]

    def first(self, *, may_stop_early: bool) -> list[ExperimentKey]:
        """Return the first repetitions of every point, or all of them unless the run may stop early."""
        counts = {point: FIRST if may_stop_early else count for point, count in self._planned().items()}
        return self._schedule(counts)

    def next(self, part: str, claims: Iterable[Claim], judged: Mapping[str, Judged]) -> list[ExperimentKey]:
        """Return further repetitions at points where an interval is too wide.

        Points that no claim uses, or that a claim uses without a tolerance or with a measure of the study, get all
        repetitions.
        """
        judged_points: set[int] = set()
        open_: set[int] = set()
        without_end: set[int] = set()
        for claim in claims:
            judgement = judged[claim.id]
            points = {point for name, point in judgement.looked_at if name == part}
            judged_points |= points
            open_ |= {point for name, point in judgement.unsure if name == part}
            of_study = any(side is not None and side.measure not in MEASURES for side in (claim.value, claim.against))
            if claim.judge.tolerance is None or of_study:
                # A measure defined by the study compares points repetition by repetition, so all points need the same
                # repetitions.
                without_end |= points
        planned = self._planned()
        counts = {}
        for point, max_count in planned.items():
            if point not in judged_points or point in without_end:
                counts[point] = max_count
            elif point in open_:
                counts[point] = max(FIRST, round(self.repetitions.get(point, 0) * GROWTH + 0.5))
        return self._schedule(counts)

    def _planned(self) -> dict[int, int]:
        counts: dict[int, int] = {}
        for point, _ in self.all:
            counts[point] = counts.get(point, 0) + 1
        return counts

    def _schedule(self, counts: Mapping[int, int]) -> list[ExperimentKey]:
        pairs = [pair for pair in self.all if pair[1] < counts.get(pair[0], 0) and pair not in self.asked]
        self.asked |= set(pairs)
        for point, repetition in pairs:
            self.repetitions[point] = max(self.repetitions.get(point, 0), repetition + 1)
        return pairs

    def note(self, directory: Path) -> None:
        """Record in the run directory the experiments that were not needed."""
        file = directory / NOT_NEEDED
        rest = [pair for pair in self.all if pair not in self.asked]
        if rest:
            file.write_text(json.dumps({"why": WHY, "experiments": rest}) + "\n", encoding="utf-8")
        else:
            file.unlink(missing_ok=True)


def finished(run: Run | None) -> set[ExperimentKey]:
    """Return the complete experiments."""
    if run is None:
        return set()
    complete = set(run.finished_ids)
    return {
        (experiment["experiment"], experiment["repetition"])
        for experiment in run.meta["experiments"]
        if experiment["id"] in complete
    }
