"""Errors between two engines, of which the second is the reference, and their statistics."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np

MIN_RETRANSMIT_RATIO = 0.001
"""Lower bound of retransmit ratios in errors; without it, random differences of very small ratios would be the largest
errors.
"""

ErrorKind = Literal["relative", "points", "factor"]


@dataclass(frozen=True)
class Error:
    """Definition of the error of a measure."""

    measure: str
    """Name of the measure in `thalweg.analysis.MEASURES`."""
    title: str
    kind: ErrorKind
    of: Callable[[float, float], float | None]
    """Function of the value and the reference; None if the reference does not permit a comparison."""

    def size(self, error: float) -> float:
        """Return the magnitude of an error."""
        return max(error, 1 / error) if self.kind == "factor" else abs(error)


def relative(value: float, reference: float) -> float | None:
    """Return the difference as a fraction of the reference.

    >>> relative(18.0, 20.0), relative(0.0, 0.0), relative(1.0, 0.0)
    (-0.1, 0.0, None)
    """
    if reference == 0:
        return 0.0 if value == 0 else None
    return (value - reference) / reference


def points(value: float, reference: float) -> float | None:
    """Return the difference of two fractions.

    >>> points(0.5, 0.75)
    -0.25
    """
    return value - reference


def factor(value: float, reference: float) -> float | None:
    """Return the quotient of two retransmit ratios, with both raised to at least `MIN_RETRANSMIT_RATIO`.

    >>> factor(0.02, 0.01), factor(0.0, 0.0), factor(0.0, 0.0004), factor(0.0, 0.004)
    (2.0, 1.0, 1.0, 0.25)
    """
    return max(value, MIN_RETRANSMIT_RATIO) / max(reference, MIN_RETRANSMIT_RATIO)


ERRORS: dict[str, Error] = {
    error.measure: error
    for error in (
        Error("goodput", "goodput", "relative", relative),
        Error("utilisation", "utilisation", "relative", relative),
        Error("retransmit_ratio", "retransmits", "factor", factor),
        Error("rtt_mean", "mean RTT", "relative", relative),
        Error("share", "share", "points", points),
        Error("completion_time", "completion time", "relative", relative),
    )
}


@dataclass(frozen=True)
class Overall:
    """Summary of the errors of a measure over all cells with an error."""

    measure: str
    n: int
    median: float
    p90: float


def overall(errors: Iterable[tuple[str, float]]) -> list[Overall]:
    """Return the median and the 90th percentile of the magnitudes of errors, per measure."""
    sizes: dict[str, list[float]] = {}
    for measure, error in errors:
        sizes.setdefault(measure, []).append(ERRORS[measure].size(error))
    return [
        Overall(name, len(sizes[name]), float(np.median(sizes[name])), float(np.quantile(sizes[name], 0.9)))
        for name in ERRORS
        if name in sizes
    ]
