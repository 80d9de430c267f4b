"""One point of the sweep, resolved: no units to parse, no defaults to guess.

The point has been checked, so that what is looked up here is there and well-formed.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, TypedDict

from pydantic import TypeAdapter

from thalweg.errors import ThalwegError
from thalweg.plan import models as plan
from thalweg.plan.flows import resolve_flow
from thalweg.plan.traces import Traces
from thalweg.scenario import models, values
from thalweg.scenario.document import Raw, TomlValue
from thalweg.scenario.rules import rules_host
from thalweg.scenario.text import quantities
from thalweg.scenario.text.quantities import PacketCount, Rtts

NO_LIMIT_BYTES = 2**31 - 1
"""Socket buffers and queues where nothing is said: the largest that tcp_wmem and tcp_rmem can hold in Linux."""

REORDER_RTT_SHARE = 8
"""A packet that is held back without a delay of its own waits for this part of path.rtt: RACK's window is a quarter."""

DEFAULT_REVERSE = models.Reverse()

FIFO = plan.QueueFifo()


class PointFields(TypedDict, total=False):
    """Fields of `plan.Experiment` that all repetitions of a point share."""

    duration_ns: int | None
    sample_interval_ns: int
    start_jitter_ns: int
    rtt_ns: int
    forward: plan.Link
    reverse: plan.Link
    hosts: dict[str, plan.Host]
    flows: list[plan.Flow]
    background: list[plan.Background]
    engine: plan.Choices


@dataclass(frozen=True)
class Resolved:
    """What all repetitions of a point share."""

    fields: PointFields

    def experiment(
        self, *, experiment: int, repetition: int, sweep: dict[str, plan.SweepValue], seed: int
    ) -> plan.Experiment:
        """Make one experiment of the point."""
        return plan.Experiment(**self.fields, experiment=experiment, repetition=repetition, sweep=sweep, seed=seed)


class Resolver:
    """Resolves the points of one sweep; what several points share is resolved once."""

    def __init__(self, folder: Path, traces: Traces) -> None:
        """Look up relative names of traces in `folder`; `traces` collects those that are used."""
        self._folder = folder
        self._traces = traces
        self._parts = self._how()
        self._known: dict[tuple[str, int], tuple[TomlValue, PointFields]] = {}
        self._reverse: tuple[models.Reverse, int, plan.Link] | None = None
        """The last reverse direction, its round-trip time, and what they resolve to."""

    def resolve(self, raw: Raw) -> Resolved:
        """Resolve a point, as `sweep.scenarios` returns it."""
        fields: PointFields = {}
        for key, resolve in self._parts.items():
            value = raw.get(key)
            at = key, id(value)
            if at not in self._known:
                # The value is kept, so that no other one gets its id.
                self._known[at] = value, resolve(_read(key, raw))
            fields |= self._known[at][1]
        fields["start_jitter_ns"] = in_time(_read("start_jitter", raw), fields["rtt_ns"])
        return Resolved(fields)

    def _how(self) -> dict[str, Callable[[Any], PointFields]]:
        """Return how each key of the scenario's top is resolved that depends on no other."""
        return {
            "duration": lambda text: {"duration_ns": _optional(quantities.time, text)},
            "sample_interval": lambda text: {"sample_interval_ns": quantities.time(text)},
            "path": self._path,
            "host": lambda hosts: {
                "hosts": {
                    name: _host(hosts.get(name, models.Host())) for name in sorted({"sender", "receiver", *hosts})
                }
            },
            "flow": lambda flows: {"flows": [resolve_flow(flow, self._folder) for flow in flows]},
            "background": lambda background: {"background": [_background(each) for each in background]},
            "engine": lambda engine: {"engine": _choices(engine or models.Engine())},
        }

    def _path(self, path: models.Path) -> PointFields:
        rtt_ns = quantities.time(path.rtt)
        one_way = rtt_ns // 2
        backward = path.reverse or DEFAULT_REVERSE
        if self._reverse is None or self._reverse[:2] != (backward, rtt_ns):
            link = _link(backward, self._folder, self._traces, rtt_ns, rtt_ns - one_way)
            self._reverse = backward, rtt_ns, link
        return {
            "rtt_ns": rtt_ns,
            "forward": _link(path, self._folder, self._traces, rtt_ns, one_way),
            "reverse": self._reverse[2],
        }


@cache
def _adapter(key: str) -> TypeAdapter[Any]:
    kind = models.Scenario.model_fields[key].annotation
    assert kind is not None
    return TypeAdapter(kind)


def _read(key: str, raw: Raw) -> Any:
    """Return the value of a key of the scenario's top as its model, or its default."""
    if key in raw:
        return _adapter(key).validate_python(raw[key])
    return models.Scenario.model_fields[key].get_default(call_default_factory=True)


def in_time(text: str, rtt_ns: int) -> int:
    """Give a time or a number of round-trip times in nanoseconds, rounded down.

    >>> in_time("0.5rtt", 45_000_001)
    22500000
    """
    value = quantities.time_or_rtt(text)
    return int(value.factor * rtt_ns) if isinstance(value, Rtts) else value


def _link(link: models.Path | models.Reverse, folder: Path, traces: Traces, rtt_ns: int, delay_ns: int) -> plan.Link:
    capacity, rate_bps = _capacity(link, folder, traces)
    held_back, held_back_ns = _reorder(link.reorder, rtt_ns)
    return plan.Link(
        capacity=capacity,
        buffer=_buffer(link.buffer, rate_bps, rtt_ns),
        queue=_queue(link.queue),
        loss=_loss(link.loss),
        duplicate=link.duplicate,
        delay_ns=delay_ns,
        jitter_ns=quantities.time(link.jitter),
        allow_reordering=link.allow_reordering,
        reorder=held_back,
        reorder_delay_ns=held_back_ns,
    )


def _capacity(
    link: models.Path | models.Reverse, folder: Path, traces: Traces
) -> tuple[plan.Capacity, Fraction | None]:
    """Give the capacity, and the rate that a BDP counts in."""
    if link.rate is not None:
        return _constant(link.rate)
    if link.steps is not None:
        steps = [plan.Step(at_ns=quantities.time(step.at), rate_bps=quantities.rate(step.rate)) for step in link.steps]
        return plan.CapacitySteps(steps=steps), Fraction(steps[0].rate_bps)
    if link.trace is not None:
        name, rate_bps = traces.add(folder / link.trace)
        return plan.CapacityTrace(trace=name), rate_bps
    return plan.CapacityUnlimited(), None


@lru_cache(maxsize=4096)
def _constant(rate: str) -> tuple[plan.Capacity, Fraction]:
    bps = quantities.rate(rate)
    return plan.CapacitySteps(steps=[plan.Step(at_ns=0, rate_bps=bps)]), Fraction(bps)


def _buffer(text: str, rate_bps: Fraction | None, rtt_ns: int) -> plan.Buffer:
    buffer = quantities.buffer(text)
    if isinstance(buffer, PacketCount):
        return plan.BufferPackets(packets=buffer.packets)
    # Nothing queues where the rate has no limit, so the room does not matter there.
    room = values.room_bytes(buffer, rate_bps, rtt_ns)
    return plan.BufferBytes(bytes=NO_LIMIT_BYTES if room is None else room)


def _queue(queue: models.Queue) -> plan.Queue:
    name = queue.name if isinstance(queue, models.QueueTable) else queue
    if name != "fifo":
        raise ThalwegError("not-honoured", f"no engine honours the queue discipline `{name}` yet", place="path.queue")
    return FIFO


@lru_cache
def _loss(loss: models.Loss) -> plan.Loss:
    if isinstance(loss, models.LossModel):
        return plan.LossGilbertElliott(p=loss.p, r=loss.r, loss_bad=loss.loss_bad, loss_good=loss.loss_good)
    return plan.LossBernoulli(ratio=float(loss))


def _reorder(reorder: models.Reorder, rtt_ns: int) -> tuple[float, int]:
    """Give the ratio of packets that are held back, and for how long."""
    if isinstance(reorder, models.ReorderTable):
        return reorder.ratio, in_time(reorder.delay, rtt_ns)
    return reorder, rtt_ns // REORDER_RTT_SHARE


def _host(host: models.Host) -> plan.Host:
    return plan.Host(
        sndbuf_max_bytes=quantities.size(host.sndbuf_max) if host.sndbuf_max else NO_LIMIT_BYTES,
        rcvbuf_max_bytes=quantities.size(host.rcvbuf_max) if host.rcvbuf_max else NO_LIMIT_BYTES,
        delay_jitter_ns=quantities.time(host.delay_jitter) if host.delay_jitter else 0,
        cpu=None if host.cpu_share is None else _cpu(host, host.cpu_share),
        co_tenants=host.co_tenants or 0,
        kernel=host.kernel,
        qdisc=host.qdisc,
    )


def _cpu(host: models.Host, share: float) -> plan.Cpu:
    slice_ns = quantities.time(host.cpu_slice or rules_host.DEFAULT_SLICE)
    return plan.Cpu(
        slice_ns=slice_ns,
        period_ns=rules_host.period_ns(share, slice_ns),
        per_packet_ns=quantities.time(host.cpu_per_packet or rules_host.DEFAULT_COST),
        per_ack_ns=quantities.time(host.cpu_per_ack or rules_host.DEFAULT_COST),
    )


def _background(background: models.Background) -> plan.Background:
    return plan.Background(
        rate_bps=quantities.rate(background.rate),
        start_ns=quantities.time(background.start),
        stop_ns=_optional(quantities.time, background.stop),
        up=background.direction == "up",
    )


def _choices(engine: models.Engine) -> plan.Choices:
    return plan.Choices(
        link=engine.link or "auto",
        traffic=engine.traffic or "builtin",
        offloads=bool(engine.offloads),
        record=bool(engine.record),
    )


def _optional(parse: Callable[[str], int], text: str | None) -> int | None:
    return None if text is None else parse(text)
