"""Thinning: reduces the points of a curve but preserves its shape."""

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]


def peaks(t: Numbers, y: Numbers, limit: int) -> npt.NDArray[np.intp]:
    """Choose at most `limit` indices, or 4 if `limit` is smaller, including both ends and the extremes.

    The minimum and the maximum of each of equal bins are kept, so that a spike of one sample remains.
    """
    if len(t) <= limit:
        return np.arange(len(t))
    bins = max(1, (limit - 2) // 2)
    edges = np.linspace(t[0], t[-1], bins + 1)
    of_bin = np.clip(np.searchsorted(edges, t, side="right") - 1, 0, bins - 1)
    # Sorted by bin and then by value, each bin begins with its smallest value and ends with its largest.
    order = np.lexsort((y, of_bin))
    starts = np.flatnonzero(np.diff(of_bin[order], prepend=-1))
    ends = np.append(starts[1:], len(t)) - 1
    return np.unique(np.concatenate([order[starts], order[ends], [0, len(t) - 1]]))
