"""Max-min fair allocation of a rate among flows, some of which need less than their share.

Bertsekas, Gallager, "Data Networks", 2nd ed., 1992, sec. 6.5.2.
"""

from collections.abc import Sequence

import numpy as np

from thalweg.analysis.tables.thin import Numbers


def max_min(rate: float, demands: Sequence[float]) -> list[float]:
    """Return the rate of each flow, in the unit of `rate`: no flow can get more without reducing one that
    does not have more.

    >>> max_min(10.0, [1.0, float("inf"), float("inf")])
    [1.0, 4.5, 4.5]
    >>> max_min(10.0, [2.0, 3.0])
    [2.0, 3.0]
    """
    distinct, index = np.unique(np.asarray(demands, dtype=np.float64), return_inverse=True)
    counts = np.bincount(index, minlength=len(distinct)).astype(np.float64)[:, np.newaxis]
    allocations = allocate(np.array([rate], dtype=np.float64), distinct, counts)
    return [float(allocations[number, 0]) for number in index]


def allocate(rates: Numbers, demands: Numbers, counts: Numbers) -> Numbers:
    """Return the rate of a flow of each demand, for each step of the shared rate.

    Args:
        rates: The rate to share, by time; shape (times,).
        demands: Distinct demands in ascending order, `inf` for flows without a limit; shape (demands,).
        counts: Number of active flows of each demand; shape (demands, times).
    """
    allocations = np.zeros_like(counts)
    available, flows = rates.copy(), counts.sum(axis=0)
    for index, demand in enumerate(demands):
        share = np.divide(available, flows, out=np.zeros_like(available), where=flows > 0)
        allocations[index] = np.minimum(demand, share)
        available = np.maximum(available - allocations[index] * counts[index], 0)
        flows = flows - counts[index]
    return allocations
