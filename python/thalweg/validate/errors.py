"""Errors between two engines, per measure, and their statistics.

The second engine is the reference. docs/reference/validation.md tells the same to users.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np

MIN_RETRANSMIT_RATIO = 0.001
"""Ratio of retransmits below which it counts as this much. One segment in a thousand costs no measurable goodput, and
whether a drop-tail queue drops 2 or 8 packets of 20,000 is chance: their ratio would be the largest error of all."""

ErrorKind = Literal["relative", "points", "factor"]


@dataclass(frozen=True)
class Error:
    """Definition of the error of a measure."""

    measure: str
    """Name as in `thalweg.analysis.MEASURES`."""
    title: str
    kind: ErrorKind
    of: Callable[[float, float], float | None]
    """From the value and the reference's; None if the reference leaves nothing to compare with."""

    def size(self, error: float) -> float:
        """Return how large an error is, whatever its direction."""
        return max(error, 1 / error) if self.kind == "factor" else abs(error)


def relative(value: float, reference: float) -> float | None:
    """Return the difference as a share of the reference.

    >>> relative(18.0, 20.0), relative(0.0, 0.0), relative(1.0, 0.0)
    (-0.1, 0.0, None)
    """
    if reference == 0:
        return 0.0 if value == 0 else None
    return (value - reference) / reference


def points(value: float, reference: float) -> float | None:
    """Return the difference of two shares.

    >>> points(0.5, 0.75)
    -0.25
    """
    return value - reference


def factor(value: float, reference: float) -> float | None:
    """Return the ratio of two ratios of retransmits, neither taken as less than `MIN_RETRANSMIT_RATIO`.

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
    """Summary of the errors of a measure over all cells that have one."""

    measure: str
    n: int
    median: float
    p90: float


def overall(errors: Iterable[tuple[str, float]]) -> list[Overall]:
    """Return median and 90th percentile of the sizes of errors, from pairs of measure and error."""
    sizes: dict[str, list[float]] = {}
    for measure, error in errors:
        sizes.setdefault(measure, []).append(ERRORS[measure].size(error))
    return [
        Overall(name, len(sizes[name]), float(np.median(sizes[name])), float(np.quantile(sizes[name], 0.9)))
        for name in ERRORS
        if name in sizes
    ]
