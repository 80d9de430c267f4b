"""Rules about the amount of data of an experiment, which must fit into memory.

Only predictable amounts are counted: samples of flows that last until their stop or the end, random arrivals, and
messages of applications.
"""

from fractions import Fraction
from pathlib import Path

from thalweg.scenario import values
from thalweg.scenario.document import Raw
from thalweg.scenario.mistakes import Mistakes
from thalweg.scenario.rules import rules_app, rules_repeat
from thalweg.scenario.text import quantities

SHORTEST_SAMPLE_INTERVAL_NS = 1000
"""Minimum sampling interval, because tables have times in whole microseconds."""

MAX_SAMPLES = 10_000_000
"""Maximum number of samples of flows in one experiment."""

MAX_ARRIVALS = 10_000_000
"""Maximum number of connections, or messages of the application, of a flow in one experiment."""


def check(raw: Raw, _folder: Path, mistakes: Mistakes) -> None:
    """Check the number of samples, of arrivals and of messages."""
    interval = values.quantity(raw, "sample_interval", quantities.time, "10ms")
    if interval and interval < SHORTEST_SAMPLE_INTERVAL_NS:
        mistakes.add(
            "out-of-range",
            ("sample_interval",),
            "`sample_interval` is too short: times are recorded in microseconds",
            found=str(raw["sample_interval"]),
            expected='"1us" or more, or "0s" for no time series',
        )
    elif interval:
        _samples(raw, interval, mistakes)
    for index, flow in values.tables(raw, "flow"):
        arrivals = _arrivals(flow, _active_ns(flow, raw))
        if arrivals > MAX_ARRIVALS:
            mistakes.add(
                "out-of-range",
                ("flow", index, "repeat", "rate"),
                f"about {int(arrivals)} connections of `flow.{flow.get('name', index)}` would arrive",
                expected=f"at most {MAX_ARRIVALS} in an experiment",
                hint="choose a lower rate, or a shorter duration",
            )
        messages = rules_app.messages_per_second(flow) * _active_ns(flow, raw) * _copies(flow) / values.NANOS
        if messages > MAX_ARRIVALS:
            mistakes.add(
                "out-of-range",
                ("flow", index, "app"),
                f"the application of `flow.{flow.get('name', index)}` would send about {int(messages)} messages",
                expected=f"at most {MAX_ARRIVALS} in an experiment",
                hint="choose a lower rate, or a shorter duration",
            )


def _samples(raw: Raw, interval_ns: int, mistakes: Mistakes) -> None:
    flows = list(values.tables(raw, "flow"))
    endings = rules_repeat.Endings(flows)
    sampled_flows = [flow for _, flow in flows if endings.is_endless({k: v for k, v in flow.items() if k != "stop"})]
    active_ns = sum(_active_ns(flow, raw) * _copies(flow) for flow in sampled_flows)
    samples = active_ns // interval_ns
    if samples > MAX_SAMPLES:
        mistakes.add(
            "out-of-range",
            ("sample_interval",),
            f"an experiment would take {samples} samples of its flows",
            found=str(raw.get("sample_interval", "10ms")),
            expected=f"at most {MAX_SAMPLES} samples",
            hint=f'sample_interval = "{_round_time(active_ns // MAX_SAMPLES)}", or "0s" for no time series',
        )


def _active_ns(flow: Raw, raw: Raw) -> int:
    """Return the maximum duration of a flow; 0 if unknown."""
    ends = (values.quantity(table, key, quantities.time) for table, key in ((flow, "stop"), (raw, "duration")))
    end = min((end_ns for end_ns in ends if end_ns is not None), default=0)
    return max(0, end - (values.quantity(flow, "start", quantities.time, "0s") or 0))


def _arrivals(flow: Raw, active_ns: int) -> Fraction:
    """Return the mean number of random arrivals of a flow, over all copies."""
    repeat = values.table(flow, "repeat")
    rate = values.quantity(repeat, "rate", quantities.arrival_rate)
    if rate is None:
        return Fraction(0)
    count = repeat.get("count")
    limit = Fraction(count * _copies(flow)) if isinstance(count, int) else None
    if limit is not None and not active_ns:
        return limit
    if isinstance(rate, quantities.PerSecond):
        per_second = rate.arrivals
    else:
        drawn_sizes = repeat.get("sizes", [flow.get("size")])
        texts = [{"size": text} for text in drawn_sizes] if isinstance(drawn_sizes, list) else []
        sizes = [size for text in texts if (size := values.quantity(text, "size", quantities.size))]
        per_second = Fraction(rate * len(sizes), 8 * sum(sizes)) if sizes else Fraction(0)
    arrivals = per_second * active_ns * _copies(flow) / values.NANOS
    return arrivals if limit is None else min(arrivals, limit)


def _copies(flow: Raw) -> int:
    count = flow.get("count", 1)
    return count if isinstance(count, int) else 1


def _round_time(least_ns: int) -> str:
    """Return a longer time as text: the next of 1, 10 or 100 of a unit; the next whole second from 100 s.

    >>> _round_time(20_000_001), _round_time(999)
    ('100ms', '1us')
    """
    units = {"us": 10**3, "ms": 10**6, "s": 10**9}
    steps = ((number * ns, f"{number}{unit}") for unit, ns in units.items() for number in (1, 10, 100))
    return next((text for ns, text in steps if ns > least_ns), f"{least_ns // 10**9 + 1}s")
