"""How long a flow takes to reach its share of the link, and to stay there.

The share that is available to a flow is the rate of the moment of its direction's link less unresponsive background,
evenly over the parallel copies of flows of that direction that are active then, times the flow's own copies. It is
constant between changes: steps of the rate, background that starts or stops, copies that start or end.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from thalweg.analysis.measuring.counters import Copy, by_flow, total
from thalweg.analysis.measuring.stability import bin_us
from thalweg.analysis.tables.derived import MICROSECOND_NS, PACKET_BYTES
from thalweg.analysis.tables.directions import LINKS, of_flow
from thalweg.analysis.tables.flows import BITS, MICROSECONDS
from thalweg.analysis.tables.thin import Numbers
from thalweg.analysis.tables.window import Window
from thalweg.results.plan_document import BackgroundDocument, ExperimentDocument, StepDocument

TOLERANCE = 0.1
"""How far a rate may be from the share, as a part of it."""

MEAN_US = 500_000
"""Time over which a rate is taken: BBR's cycle of probing, eight round trips, is shorter than that up to 60 ms."""

STAY_US = 1_000_000
"""Time for which the rate has to stay."""


def convergence_times(
    of_experiment: Sequence[Copy], planned: ExperimentDocument, sample_interval_us: int, window: Window
) -> dict[str, float | None]:
    """Return the time in s that each flow took; None if it did not get there, or no share can be told.

    `planned` is the experiment in the plan.
    """
    found: dict[str, float | None] = {}
    for direction, link in LINKS.items():
        capacity = planned[link]["capacity"]
        copies = [copy for copy in of_experiment if copy.direction == direction]
        if capacity["kind"] != "steps" or not copies:
            continue
        background = [each for each in planned["background"] if of_flow(each) == direction]
        shares = _Shares(copies, capacity["steps"], background)
        width_us = bin_us(sample_interval_us)
        found |= {flow: _convergence_s(own, shares, width_us, window) for flow, own in by_flow(copies).items()}
    return found


class _Shares:
    """What is available to flows, from one change to the next."""

    def __init__(
        self, copies: Sequence[Copy], steps: Sequence[StepDocument], background: Sequence[BackgroundDocument]
    ) -> None:
        self.copies = copies
        self.steps = [(step["at_ns"] / MICROSECOND_NS, float(step["rate_bps"])) for step in steps]
        self.background = [
            (
                each["start_ns"] / MICROSECOND_NS,
                np.inf if each["stop_ns"] is None else each["stop_ns"] / MICROSECOND_NS,
                float(each["rate_bps"]),
            )
            for each in background
        ]
        moments = {at for at, _ in self.steps} | {at for start, stop, _ in self.background for at in (start, stop)}
        moments |= {at for copy in copies for at in (copy.start_us, copy.end_us)}
        self.changes = sorted(moments)

    def of(self, own: Sequence[Copy], at_us: float) -> float:
        """Return the share of the copies `own` from `at_us` on, in bit/s."""
        rate = [bps for since, bps in self.steps if since <= at_us][-1]
        rate -= sum(bps for start, stop, bps in self.background if start <= at_us < stop)
        return rate * _active(own, at_us) / max(1, _active(self.copies, at_us))


def _active(copies: Sequence[Copy], at_us: float) -> int:
    return sum(copy.start_us <= at_us < copy.end_us for copy in copies)


def _convergence_s(own: Sequence[Copy], shares: _Shares, width_us: int, window: Window) -> float | None:
    start = max(min(copy.start_us for copy in own), window.from_us)
    end = min(max(copy.end_us for copy in own), window.to_us)
    moments = [start, *(change for change in shares.changes if start < change < end), end]
    stretches = [(since, until) for since, until in pairwise(moments) if until - since >= max(STAY_US, width_us)]
    if not stretches:
        return None
    since, until = stretches[-1]
    share = shares.of(own, since)
    edges: Numbers = np.arange(since, until + 1, width_us, dtype=np.float64)
    if share <= 0 or len(edges) < 2:
        return None
    rates = np.diff(total(own, "delivered", edges)) * PACKET_BYTES * BITS * MICROSECONDS / width_us
    mean, stay = max(1, MEAN_US // width_us), max(1, STAY_US // width_us)
    if len(rates) < stay:
        return None
    is_near = np.abs(np.convolve(rates, np.full(mean, 1 / mean), "valid") - share) <= TOLERANCE * share
    stays = np.convolve(is_near, np.ones(stay - mean + 1), "valid") > stay - mean
    return float(np.argmax(stays)) * width_us / MICROSECONDS if stays.any() else None
