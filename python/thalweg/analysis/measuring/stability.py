"""Stability: the variation of a flow's goodput after startup."""

import math
from collections.abc import Sequence

import numpy as np

from thalweg.analysis.measuring.counters import Copy, total
from thalweg.analysis.tables.thin import Numbers
from thalweg.analysis.tables.window import Window

BIN_US = 100_000
"""Minimum length of a goodput bin."""

MIN_BINS = 10


def bin_us(sample_interval_us: int) -> int:
    """Return the length of a goodput bin, a multiple of the sampling interval.

    >>> bin_us(10_000), bin_us(30_000), bin_us(1_000_000)
    (100000, 120000, 1000000)
    """
    return math.ceil(BIN_US / sample_interval_us) * sample_interval_us


def stability(copies: Sequence[Copy], sample_interval_us: int, window: Window) -> float | None:
    """Return the coefficient of variation of a flow's goodput after its start-up, over bins within the window.

    Start-up ends with the first bin in which the flow reaches its own mean goodput. None if there are too few bins, or
    no bytes in them.
    """
    start, end = min(copy.start_us for copy in copies), max(copy.end_us for copy in copies)
    width = bin_us(sample_interval_us)
    edges: Numbers = np.arange(math.ceil(start / width), math.floor(end / width) + 1, dtype=np.float64) * width
    if len(edges) <= MIN_BINS:
        return None
    goodputs = np.diff(total(copies, "acked_bytes", edges))
    mean = float(np.diff(total(copies, "acked_bytes", np.array([start, end])))[0]) / (end - start) * width
    reached = np.flatnonzero(goodputs >= mean)
    begin = reached[0] + 1 if len(reached) else 0
    inside = (edges[:-1] >= window.from_us) & (edges[1:] <= window.to_us)
    steady = goodputs[begin:][inside[begin:]]
    if len(steady) < MIN_BINS or steady.mean() <= 0:
        return None
    return float(steady.std(ddof=1) / steady.mean())
