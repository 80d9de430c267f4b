"""Compares numbers and intervals with the bounds of a claim."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from thalweg.analysis.tables.thin import Numbers
from thalweg.report.text.claim_verdicts import ClaimVerdict
from thalweg.studies.claims.models import Judge

Flags = npt.NDArray[np.bool_]

SLACK = 1e-9
"""Relative tolerance for rounding errors of floating-point arithmetic."""


@dataclass(frozen=True)
class Bounds:
    """Permitted range of a number."""

    at_least: float
    at_most: float

    @classmethod
    def of(cls, judge: Judge) -> "Bounds":
        """Return the bounds of a claim."""
        return cls.between(judge.at_least, judge.at_most)

    @classmethod
    def between(cls, at_least: float | None, at_most: float | None) -> "Bounds":
        """Create bounds from two ends; None: unbounded."""
        low = -np.inf if at_least is None else at_least - SLACK * abs(at_least)
        high = np.inf if at_most is None else at_most + SLACK * abs(at_most)
        return cls(float(low), float(high))

    def inside(self, low: Numbers, high: Numbers) -> Flags:
        """Return whether intervals are entirely inside the bounds."""
        return np.asarray((low >= self.at_least) & (high <= self.at_most))

    def outside(self, low: Numbers, high: Numbers) -> Flags:
        """Return whether intervals are entirely outside the bounds."""
        return np.asarray((high < self.at_least) | (low > self.at_most))

    def margin(self, low: Numbers, high: Numbers) -> Numbers:
        """Return the distance between intervals and the nearer bound; negative if they cross it."""
        return np.asarray(np.minimum(low - self.at_least, self.at_most - high))

    def verdict(self, centre: float, low: float, high: float) -> ClaimVerdict:
        """Return the verdict on one number; NaN ends are an unbounded interval, and a NaN number does not hold."""
        if np.isnan(centre) or self.outside(np.array(low), np.array(high)).item():
            return "does not hold"
        return "holds" if self.inside(np.array(low), np.array(high)).item() else "not settled"
