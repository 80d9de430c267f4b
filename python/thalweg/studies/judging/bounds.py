"""Comparison of numbers and intervals with the bounds of a claim."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from thalweg.analysis.tables.thin import Numbers
from thalweg.report.text.claim_verdicts import ClaimVerdict
from thalweg.studies.claims.models import Judge

Flags = npt.NDArray[np.bool_]

SLACK = 1e-9
"""Relative: a number that differs less from a bound than this differs by the arithmetic of floating point only."""


@dataclass(frozen=True)
class Bounds:
    """Allowed range."""

    at_least: float
    at_most: float

    @classmethod
    def of(cls, judge: Judge) -> "Bounds":
        """Return those of a claim."""
        return cls.between(judge.at_least, judge.at_most)

    @classmethod
    def between(cls, at_least: float | None, at_most: float | None) -> "Bounds":
        """Make bounds of two ends; None: unbounded."""
        low = -np.inf if at_least is None else at_least - SLACK * abs(at_least)
        high = np.inf if at_most is None else at_most + SLACK * abs(at_most)
        return cls(float(low), float(high))

    def inside(self, low: Numbers, high: Numbers) -> Flags:
        """Return whether whole intervals are allowed."""
        return np.asarray((low >= self.at_least) & (high <= self.at_most))

    def outside(self, low: Numbers, high: Numbers) -> Flags:
        """Return whether intervals are completely outside the bounds."""
        return np.asarray((high < self.at_least) | (low > self.at_most))

    def margin(self, low: Numbers, high: Numbers) -> Numbers:
        """Return how far intervals are from the nearer bound; below 0 where they pass it."""
        return np.asarray(np.minimum(low - self.at_least, self.at_most - high))

    def verdict(self, centre: float, low: float, high: float) -> ClaimVerdict:
        """Return the verdict on one number; NaN ends are an unbounded interval, and a NaN number is outside."""
        if np.isnan(centre) or self.outside(np.array(low), np.array(high)).item():
            return "does not hold"
        return "holds" if self.inside(np.array(low), np.array(high)).item() else "not settled"
