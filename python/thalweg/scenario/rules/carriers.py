"""Capacity of one direction of the path, for a lower bound on the time at which a packet has left it.

Other traffic, queues, loss and random delays are ignored, because they can only delay a packet further.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

from thalweg.scenario import traces, values
from thalweg.scenario.document import Raw
from thalweg.scenario.text import quantities

NANOS = 10**9

MILLIS_NS = 10**6

MAX_STEPS = 4


@dataclass(frozen=True)
class Carrier:
    """The capacity of one direction; unlimited without a key."""

    key: str = ""
    """Key of the scenario: rate, steps or trace; empty: unlimited."""
    steps: Sequence[tuple[int, int]] = ()
    """Steps of the rate: start time (ns) and rate (bit/s)."""
    trace_ms: Sequence[int] = ()

    @classmethod
    def of(cls, link: Raw, folder: Path) -> "Carrier | None":
        """Return a direction's capacity; None for a CSV of conditions, steps without a rate, and malformed values."""
        if isinstance(link.get("trace"), str):
            trace = values.trace_of(link, folder)
            return cls("trace", trace_ms=trace.times_ms) if isinstance(trace, traces.Opportunities) else None
        if "steps" in link and "rate" not in link:
            steps = [
                (at, bps)
                for _, step in values.tables(link, "steps")
                if (at := values.quantity(step, "at", quantities.time)) is not None
                and (bps := values.quantity(step, "rate", quantities.rate)) is not None
            ]
            return cls("steps", steps) if any(bps for _, bps in steps) and steps == sorted(steps) else None
        if "rate" not in link:
            return cls()
        bps = values.quantity(link, "rate", quantities.rate)
        return cls("rate", [(0, bps)]) if bps else None

    def sent(self, at_ns: Fraction, size_bytes: int) -> Fraction | None:
        """Return the time at which a packet that is ready at `at_ns` has left the idle link; None: never.

        >>> Carrier("steps", [(0, 0), (1_000, 8_000)]).sent(Fraction(0), 1)
        Fraction(1001000, 1)
        """
        if self.trace_ms:
            return Fraction(_opportunity_after(self.trace_ms, at_ns))
        if self.key == "rate":
            return at_ns + Fraction(size_bytes * 8 * NANOS, self.steps[0][1])
        bits_left = Fraction(size_bytes * 8)
        for (since, bps), (until, _) in pairwise([*self.steps, (None, 0)]):
            begin = max(at_ns, Fraction(since or 0))
            carried = None if until is None else bps * max(Fraction(0), until - begin) / NANOS
            if bps and (carried is None or carried >= bits_left):
                return begin + bits_left * NANOS / bps
            bits_left -= carried or 0
        return None if self.steps else at_ns

    def __str__(self) -> str:
        if self.trace_ms:
            return traces.in_words(traces.Opportunities(self.trace_ms))
        if len(self.steps) == 1:
            return f"the rate is {quantities.rate_text(self.steps[0][1])}"
        steps = [f"{quantities.rate_text(bps)} from {quantities.time_text(at)}" for at, bps in self.steps[:MAX_STEPS]]
        ellipsis = [] if len(self.steps) <= MAX_STEPS else ["..."]
        return f"the rate is {', '.join([*steps, *ellipsis])}"


def _opportunity_after(times_ms: Sequence[int], at_ns: Fraction) -> int:
    """Return the first opportunity of a trace after a time, in ns; a packet that arrives at an opportunity
    misses it.
    """
    period = times_ms[-1] * MILLIS_NS
    rounds, offset = divmod(at_ns, period)
    index = bisect_right(times_ms, offset / MILLIS_NS)
    rounds, index = (rounds + 1, 0) if index == len(times_ms) else (rounds, index)
    return int(rounds) * period + times_ms[index] * MILLIS_NS
