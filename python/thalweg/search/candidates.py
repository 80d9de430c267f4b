"""Results of a candidate, and the number of its repetitions.

After each round of repetitions, a candidate is compared with the best ones so far, repetition by repetition, because
these share seeds. It stops when the 95 % intervals of the mean differences show that it is worse than one of them in
every objective, or, if there is a best one, when the interval of a constraint is beyond its bound.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import ceil

from thalweg import analysis
from thalweg.analysis import Estimate
from thalweg.scenario.document import Value
from thalweg.search.table import Search

FIRST = 3
"""Minimum number of repetitions for a comparison; an interval of fewer is too wide."""

GROWTH = 1.5

PerRepetition = Sequence[float | None]
"""Values of one quantity by repetition; None: the repetition has no value."""


@dataclass(frozen=True)
class Candidate:
    """An evaluated candidate, or the scenario as written."""

    number: int | None
    """Number of the candidate; None: the default, which is the scenario as written."""
    settings: dict[str, Value]
    values: Sequence[PerRepetition] = ()
    """Values by quantity: objectives, then constraints."""
    stopped: str = ""
    """Reason why it was stopped early; empty if it was not."""
    failed: str = ""
    estimates: Sequence[Estimate | None] = field(init=False)
    """Estimates by quantity; None: no repetition has a value."""

    def __post_init__(self) -> None:
        present = [[value for value in of_one if value is not None] for of_one in self.values]
        estimates = [analysis.estimate(values) if values else None for values in present]
        object.__setattr__(self, "estimates", estimates)

    @property
    def name(self) -> str:
        """Name of the candidate in tables."""
        return "default" if self.number is None else str(self.number)

    @property
    def repetitions(self) -> int:
        """Number of repetitions, up to the last one with a value."""
        return max((len(values) for values in self.values), default=0)

    @property
    def is_measured(self) -> bool:
        """Whether it has not failed, and every quantity has a value."""
        return not self.failed and bool(self.values) and all(self.estimates)

    def excesses(self, search: Search) -> list[float]:
        """Return the excess of the mean over each constraint; at most 0 if the constraint is met."""
        of_constraints = self.estimates[len(search.objectives) :]
        return [
            constraint.excess(estimate.mean) if estimate else float("inf")
            for constraint, estimate in zip(search.constraints, of_constraints, strict=True)
        ]

    def is_feasible(self, search: Search) -> bool:
        """Return whether the candidate has values, and its means satisfy every constraint."""
        return self.is_measured and all(excess <= 0 for excess in self.excesses(search))

    def objectives(self, search: Search) -> list[float]:
        """Return the mean of each objective of a measured candidate."""
        return [estimate.mean for estimate in self.estimates[: len(search.objectives)] if estimate]


def rounds(max_repetitions: int) -> list[int]:
    """Return the cumulative number of repetitions after each round.

    >>> rounds(10), rounds(2)
    ([3, 5, 8, 10], [2])
    """
    counts = [min(FIRST, max_repetitions)]
    while counts[-1] < max_repetitions:
        counts.append(min(max_repetitions, ceil(counts[-1] * GROWTH)))
    return counts


def dominates(first: Sequence[float], second: Sequence[float], search: Search) -> bool:
    """Return whether the first is better in at least one objective and worse in none."""
    pairs = list(zip(search.objectives, first, second, strict=True))
    return any(goal.is_better(first_value, second_value) for goal, first_value, second_value in pairs) and not any(
        goal.is_better(second_value, first_value) for goal, first_value, second_value in pairs
    )


def front(candidates: Sequence[Candidate], search: Search) -> list[Candidate]:
    """Return the feasible candidates, except stopped ones, that no other one dominates; of equal settings only the
    first one.
    """
    feasible = [candidate for candidate in candidates if candidate.is_feasible(search) and not candidate.stopped]
    distinct = list({tuple(candidate.settings.items()): candidate for candidate in reversed(feasible)}.values())[::-1]
    means = [candidate.objectives(search) for candidate in distinct]
    return [
        candidate for candidate, objectives in zip(distinct, means, strict=True)
        if not any(dominates(other, objectives, search) for other in means)
    ]  # fmt: skip


def reason_to_stop(candidate: Candidate, best: Sequence[Candidate], search: Search) -> str:
    """Return the reason why a candidate needs no more repetitions; empty if it may be one of the best."""
    of_constraints = candidate.values[len(search.objectives) :]
    for constraint, values in zip(search.constraints, of_constraints, strict=True):
        excess = analysis.estimate([constraint.excess(value) for value in values if value is not None] or [0.0])
        if best and excess.low is not None and excess.low > 0:
            return f"breaks {constraint.text}"
    for other in best:
        if all(
            _is_worse(candidate.values[number], other.values[number], is_maximised=objective.is_maximised)
            for number, objective in enumerate(search.objectives)
        ):
            return f"worse than {other.name}"
    return ""


def _is_worse(own: PerRepetition, other: PerRepetition, *, is_maximised: bool) -> bool:
    """Return whether the interval of the paired differences lies on the worse side of zero."""
    lost = [
        (other_value - own_value) * (1 if is_maximised else -1)
        for own_value, other_value in zip(own, other, strict=False)
        if own_value is not None and other_value is not None
    ]
    difference = analysis.estimate(lost) if lost else None
    return difference is not None and difference.low is not None and difference.low > 0
