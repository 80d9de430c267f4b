"""The verdict of an engine on a claim, and shared code of the methods of judging."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from thalweg.analysis.tables.thin import Numbers
from thalweg.report.text.claim_verdicts import ClaimVerdict
from thalweg.studies.judging.estimates import Quantities

Experiments = frozenset[tuple[str, int]]
"""Names of parts with the indices of their points."""


@dataclass(frozen=True)
class Judged:
    """An engine's result for a claim."""

    verdict: ClaimVerdict
    value: float | None = None
    low: float | None = None
    """Lower end of the 95 % interval; None if unknown, as with one repetition."""
    high: float | None = None
    n: int | None = None
    """Number of repetitions behind the number, at the point with the fewest; for a sample, the number of its points."""
    points: int = 0
    """Number of points, or of groups of points along a key, that were judged."""
    where: str = ""
    """Name of the number's point, if there are several."""
    note: str = ""
    looked_at: Experiments = frozenset()
    """Points that the claim uses."""
    unsure: Experiments = frozenset()
    """Points whose interval is missing, or wider than the claim's tolerance."""


def experiments_of(estimated: Quantities, rows: Iterable[int]) -> list[Experiments]:
    """Return the experiments behind each of the rows."""
    listed = []
    for row in rows:
        at = {(estimated.value.part, int(estimated.value.experiment[row]))}
        if estimated.against is not None:
            at.add((estimated.against.part, int(estimated.against.experiment[row])))
        listed.append(frozenset(at))
    return listed


def quantiles(draws: Numbers, number: float, confidence: float) -> tuple[float, float]:
    """Return the ends of an interval from draws; NaN if more than 1 - `confidence` of the draws have no value.

    The interval is extended to the number itself, because noise shifts most draws of a share or a spread to one side.
    """
    if np.isnan(draws).mean() > 1 - confidence:
        return float("nan"), float("nan")
    tail = (1 - confidence) / 2
    low, high = np.nanquantile(draws, [tail, 1 - tail])
    return float(np.fmin(low, number)), float(np.fmax(high, number))


def finite_or_none(value: float) -> float | None:
    """Return a number, or None if it is not finite."""
    return float(value) if np.isfinite(value) else None
