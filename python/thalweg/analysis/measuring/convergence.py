"""Time until a flow reaches its share of the link and stays there for a second.

The share of a flow is the current rate of its direction's link, minus unresponsive background, divided by the number of
active copies of flows in that direction, times the flow's own copies.
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

MEAN_US = 500_000
"""Averaging time of a rate, or one bin if that is longer; BBR's probing cycle of eight round trips is shorter for RTTs
up to 60 ms.
"""

STAY_US = 1_000_000


def convergence_times(
    of_experiment: Sequence[Copy], planned: ExperimentDocument, sample_interval_us: int, window: Window
) -> dict[str, float | None]:
    """Return the time in s until each flow stays at its share, from the start of the last span of constant share that
    is at least `STAY_US` and one bin long.

    None if the flow does not stay there, or has no such span. Flows of a link that is unlimited, or has a trace or a
    profile, are missing.
    """
    times: dict[str, float | None] = {}
    for direction, link in LINKS.items():
        capacity = planned[link]["capacity"]
        copies = [copy for copy in of_experiment if copy.direction == direction]
        if capacity["kind"] != "steps" or not copies:
            continue
        background = [traffic for traffic in planned["background"] if of_flow(traffic) == direction]
        shares = _Shares(copies, capacity["steps"], background)
        width_us = bin_us(sample_interval_us)
        times |= {
            flow: _convergence_s(flow_copies, shares, width_us, window) for flow, flow_copies in by_flow(copies).items()
        }
    return times


class _Shares:
    """Shares of flows, constant between changes."""

    def __init__(
        self, copies: Sequence[Copy], steps: Sequence[StepDocument], background: Sequence[BackgroundDocument]
    ) -> None:
        self.copies = copies
        self.steps = [(step["at_ns"] / MICROSECOND_NS, float(step["rate_bps"])) for step in steps]
        self.background = [
            (
                traffic["start_ns"] / MICROSECOND_NS,
                np.inf if traffic["stop_ns"] is None else traffic["stop_ns"] / MICROSECOND_NS,
                float(traffic["rate_bps"]),
            )
            for traffic in background
        ]
        moments = {at for at, _ in self.steps} | {at for start, stop, _ in self.background for at in (start, stop)}
        moments |= {at for copy in copies for at in (copy.start_us, copy.end_us)}
        self.changes = sorted(moments)

    def of(self, flow_copies: Sequence[Copy], at_us: float) -> float:
        """Return the combined share of the copies `flow_copies` from `at_us` on, in bit/s."""
        rate = [bps for since, bps in self.steps if since <= at_us][-1]
        rate -= sum(bps for start, stop, bps in self.background if start <= at_us < stop)
        return rate * _active(flow_copies, at_us) / max(1, _active(self.copies, at_us))


def _active(copies: Sequence[Copy], at_us: float) -> int:
    return sum(copy.start_us <= at_us < copy.end_us for copy in copies)


def _convergence_s(flow_copies: Sequence[Copy], shares: _Shares, width_us: int, window: Window) -> float | None:
    start = max(min(copy.start_us for copy in flow_copies), window.from_us)
    end = min(max(copy.end_us for copy in flow_copies), window.to_us)
    moments = [start, *(change for change in shares.changes if start < change < end), end]
    stretches = [(since, until) for since, until in pairwise(moments) if until - since >= max(STAY_US, width_us)]
    if not stretches:
        return None
    since, until = stretches[-1]
    share = shares.of(flow_copies, since)
    edges: Numbers = np.arange(since, until + 1, width_us, dtype=np.float64)
    if share <= 0 or len(edges) < 2:
        return None
    rates = np.diff(total(flow_copies, "delivered", edges)) * PACKET_BYTES * BITS * MICROSECONDS / width_us
    mean, steady_bins = max(1, MEAN_US // width_us), max(1, STAY_US // width_us)
    if len(rates) < steady_bins:
        return None
    is_near = np.abs(np.convolve(rates, np.full(mean, 1 / mean), "valid") - share) <= TOLERANCE * share
    is_steady = np.convolve(is_near, np.ones(steady_bins - mean + 1), "valid") > steady_bins - mean
    return float(np.argmax(is_steady)) * width_us / MICROSECONDS if is_steady.any() else None
