"""Harm to a competitor.

Ware, Mukerjee, Seshan, Sherry, "Beyond Jain's Fairness Index: Setting the Bar For The Deployment of Congestion Control
Algorithms", HotNets 2019, sec. 3.
"""


def harm(value: float, solo: float, more_is_better: bool) -> float | None:
    """Return the fraction of its solo performance that a flow loses beside a competitor: 0 none, 1 all, negative a
    gain.

    `value` is its performance beside the competitor. None if the reference is zero: a goodput of 0 alone, or a
    completion time of 0 beside the competitor.

    >>> harm(5e6, solo=20e6, more_is_better=True)  # goodput
    0.75
    >>> harm(4.0, solo=1.0, more_is_better=False)  # completion time
    0.75
    >>> harm(5.0, solo=0.0, more_is_better=True)
    """
    better, worse = (solo, value) if more_is_better else (value, solo)
    return (better - worse) / better if better > 0 else None
