"""The verdict of an engine on a claim, and helpers of all ways to judge."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from thalweg.analysis.tables.thin import Numbers
from thalweg.report.text.claim_verdicts import ClaimVerdict
from thalweg.studies.judging.estimates import Quantities

Experiments = frozenset[tuple[str, int]]
"""Parts and numbers of points."""


@dataclass(frozen=True)
class Judged:
    """An engine's result for a claim."""

    verdict: ClaimVerdict
    value: float | None = None
    low: float | None = None
    """End of the 95 % interval; None with one repetition."""
    high: float | None = None
    n: int | None = None
    """Repetitions behind the number, of the point that has fewest; of a sample, its points."""
    points: int = 0
    """Numbers that were judged, or went into the one that was."""
    where: str = ""
    """The point of the number, if there are several."""
    note: str = ""
    looked_at: Experiments = frozenset()
    """Points that the claim uses."""
    unsure: Experiments = frozenset()
    """Those whose interval is wider than the claim's tolerance."""


def experiments_of(estimated: Quantities, rows: Iterable[int]) -> list[Experiments]:
    """Return the experiments behind each of some rows."""
    listed = []
    for row in rows:
        at = {(estimated.value.part, int(estimated.value.experiment[row]))}
        if estimated.against is not None:
            at.add((estimated.against.part, int(estimated.against.experiment[row])))
        listed.append(frozenset(at))
    return listed


def quantiles(draws: Numbers, number: float, confidence: float) -> tuple[float, float]:
    """Return the quantiles of draws; NaN if more of them than an interval leaves out have no number.

    The number itself is always between the ends: noise moves most draws of a share or a spread to one side of it.
    """
    if np.isnan(draws).mean() > 1 - confidence:
        return float("nan"), float("nan")
    tail = (1 - confidence) / 2
    low, high = np.nanquantile(draws, [tail, 1 - tail])
    return float(np.fmin(low, number)), float(np.fmax(high, number))


def finite_or_none(value: float) -> float | None:
    """Return a number; None for one that is not finite."""
    return float(value) if np.isfinite(value) else None
