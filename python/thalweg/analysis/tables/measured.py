"""What an engine measured of itself, over the experiments of a run: how late its link was, what its work cost."""

from dataclasses import dataclass

import numpy as np

from thalweg.results import Run


@dataclass(frozen=True)
class OwnMeasure:
    """One thing that an engine measured of itself in each experiment."""

    name: str
    """As the engine calls it; it carries its unit, as in `relay_lateness_p99_us`."""
    n: int
    """Experiments that have it."""
    median: float
    largest: float


def measured(run: Run) -> list[OwnMeasure]:
    """Return each thing that the engine measured, in the order in which it first told them.

    Untrustworthy experiments count: these numbers are what shows why they are.
    """
    values: dict[str, list[float]] = {}
    for experiment in run.measured:
        for name, value in experiment.numbers.items():
            values.setdefault(name, []).append(value)
    return [OwnMeasure(name, len(numbers), float(np.median(numbers)), max(numbers)) for name, numbers in values.items()]
