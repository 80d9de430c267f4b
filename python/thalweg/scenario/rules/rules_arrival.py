"""Rules about deliverability: a flow that cannot deliver its first bytes is an error.

A connection needs two round trips: one for the handshake, one for the data. Other traffic, queues, CPUs and random
delays are ignored, because they can only delay a packet further.
"""

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from thalweg.scenario import traces, values
from thalweg.scenario.document import Raw
from thalweg.scenario.mistakes import Mistakes
from thalweg.scenario.positions import KeyPath
from thalweg.scenario.rules import rules_direction
from thalweg.scenario.rules.carriers import Carrier
from thalweg.scenario.text import quantities
from thalweg.scenario.text.quantities import time_text

HEADER_BYTES = 40
"""Minimum overhead of a segment: headers of IPv4 and TCP without options."""

MSS_BYTES = 1448
"""Payload of a full-sized packet, with timestamps."""

FORWARD: KeyPath = ("path",)
REVERSE: KeyPath = ("path", "reverse")

PATH_KEYS = ("rtt", "rate", "steps", "trace", "loss", "reverse")
"""Keys of [path] that these rules read."""


@dataclass(frozen=True)
class Course:
    """Both directions of a path for one flow: `forward` carries its data, `reverse` its acknowledgements."""

    rtt_ns: int
    forward: Carrier
    reverse: Carrier
    key_paths: tuple[KeyPath, KeyPath] = (FORWARD, REVERSE)

    def answered(self, at_ns: Fraction | None, size_bytes: int) -> Fraction | None:
        """Return the arrival time of the answer to a packet that is sent at `at_ns`; None: never."""
        arrived = None if at_ns is None else self.forward.sent(at_ns, size_bytes)
        back = None if arrived is None else self.reverse.sent(arrived + Fraction(self.rtt_ns, 2), HEADER_BYTES)
        return None if back is None else back + Fraction(self.rtt_ns, 2)

    def delivers(self, start_ns: int, payload_bytes: int, end_ns: int) -> bool:
        """Return whether the first segment of a connection can be acknowledged before the end."""
        connected = self.answered(Fraction(start_ns), HEADER_BYTES)
        delivered = self.answered(connected, HEADER_BYTES + payload_bytes)
        return delivered is not None and delivered < end_ns


def check(raw: Raw, folder: Path, mistakes: Mistakes) -> None:
    """Check that every flow can deliver data; relative names of traces are resolved in `folder`."""
    path = values.table(raw, "path")
    reverse = values.table(path, "reverse")
    _loss(path, FORWARD, "nothing arrives", mistakes)
    _loss(reverse, REVERSE, "no ACK arrives, so nothing counts as delivered", mistakes)
    end = values.quantity(raw, "duration", quantities.time)
    rtt = _smallest_rtt(path)
    links = Carrier.of(path, folder), Carrier.of(reverse, folder)
    if not end or not rtt or links[0] is None or links[1] is None:
        return
    for index, flow in values.tables(raw, "flow"):
        start = values.quantity(flow, "start", quantities.time, "0s")
        extra = values.quantity(flow, "extra_rtt", quantities.time, "0s")
        stop = values.quantity(flow, "stop", quantities.time)
        if start is None or extra is None or start >= end or (stop is not None and stop <= start):
            continue  # the error is reported elsewhere
        course = Course(rtt + extra, links[0], links[1])
        if rules_direction.goes_up(flow):
            course = Course(rtt + extra, links[1], links[0], (REVERSE, FORWARD))
        if stop is not None and not _connects(course, start, stop):
            _stops(flow, index, course.rtt_ns, mistakes)
        elif not course.delivers(start, _first_bytes(flow), end):
            _too_late(flow, index, start, course, end, mistakes)


def _smallest_rtt(path: Raw) -> int | None:
    """Return the smallest RTT that the path has at any time; None if `rtt` is missing or malformed."""
    rtt = values.quantity(path, "rtt", quantities.time)
    steps = [values.quantity(step, "rtt", quantities.time) for _, step in values.tables(path, "steps")]
    return None if rtt is None else min([rtt, *(step for step in steps if step is not None)])


def _loss(link: Raw, key_path: KeyPath, effect: str, mistakes: Mistakes) -> None:
    if _loses_everything(link.get("loss")):
        message = f"`{'.'.join(map(str, key_path))}.loss` loses every packet: {effect}"
        mistakes.add("nothing-arrives", (*key_path, "loss"), message, expected="a loss below 1")


def _loses_everything(loss: object) -> bool:
    """Return whether all packets are lost; with two states, the first transition may occur before the first packet."""
    if isinstance(loss, dict):
        good, bad = loss.get("loss_good", 0) == 1, loss.get("loss_bad", 1) == 1
        p, r = loss.get("p"), loss.get("r")
        return (good and (bad or p == 0)) or (bad and p == 1 and r == 0)
    return loss == 1 and not isinstance(loss, bool)


def _connects(course: Course, start: int, stop: int) -> bool:
    connected = course.answered(Fraction(start), HEADER_BYTES)
    return connected is not None and connected < stop


def _stops(flow: Raw, index: int, rtt: int, mistakes: Mistakes) -> None:
    mistakes.add(
        "nothing-arrives",
        ("flow", index, "stop"),
        f"the flow `{flow.get('name', index)}` stops before it can connect, so that no data can arrive",
        found=f"stop {flow['stop']}, start {flow.get('start', '0s')}",
        expected=f"a stop more than one round trip after the start ({time_text(rtt)}, plus the time that the SYN"
        " waits for the path)",
    )


def _too_late(flow: Raw, index: int, start: int, course: Course, end: int, mistakes: Mistakes) -> None:
    """Report why no data arrives in time: the round trips take too long, or a direction of the path is too slow."""
    payload = _first_bytes(flow)
    free = Carrier()
    if not Course(course.rtt_ns, free, free).delivers(start, payload, end):
        begins = f"it starts at {time_text(start)} and" if start else "it"
        mistakes.add(
            "nothing-arrives",
            ("flow", index, "start") if start else ("duration",),
            f"no data of the flow `{flow.get('name', index)}` can arrive before the experiment ends: {begins} needs"
            f" two round trips of {time_text(course.rtt_ns)}, to connect and to deliver",
            found=f"a duration of {time_text(end)}",
            expected=f"more than {time_text(start + 2 * course.rtt_ns)}",
        )
        return
    is_forward = not Course(course.rtt_ns, course.forward, free).delivers(start, payload, end)
    is_data = is_forward or not course.reverse.key
    slow, key_path = (course.forward, course.key_paths[0]) if is_data else (course.reverse, course.key_paths[1])
    name = ".".join(map(str, (*key_path, slow.key)))
    packet_kind = "nothing" if is_data else "no ACK"
    mistakes.add(
        "nothing-arrives",
        (*key_path, slow.key),
        f"`{name}` is too slow: {packet_kind} can arrive within the {time_text(end)} of the experiment ({slow})",
        expected="a faster path, or a longer duration",
        hint=traces.HINT if slow.trace_ms else None,
    )


def _first_bytes(flow: Raw) -> int:
    """Return the payload of the flow's smallest first segment."""
    sizes = values.table(flow, "repeat").get("sizes", [values.table(flow, "requests").get("size", flow.get("size"))])
    texts = sizes if isinstance(sizes, list) else []
    read = [values.quantity({"size": text}, "size", quantities.size) for text in texts]
    return min([MSS_BYTES, *(size for size in read if size)])
