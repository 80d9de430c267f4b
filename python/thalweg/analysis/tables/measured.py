"""Measurements of engines about themselves, such as lateness and CPU cost."""

from dataclasses import dataclass

import numpy as np

from thalweg.results import Run


@dataclass(frozen=True)
class OwnMeasure:
    """One measurement of an engine about itself, in each experiment."""

    name: str
    """The engine's name of the measurement, such as `relay_lateness_p99_us`."""
    n: int
    median: float
    largest: float


def measured(run: Run) -> list[OwnMeasure]:
    """Return each measurement of the engine, in the order of first report.

    Untrustworthy experiments are included, because these measurements may show why they are untrustworthy.
    """
    values: dict[str, list[float]] = {}
    for experiment in run.measured:
        for name, value in experiment.numbers.items():
            values.setdefault(name, []).append(value)
    return [OwnMeasure(name, len(numbers), float(np.median(numbers)), max(numbers)) for name, numbers in values.items()]
