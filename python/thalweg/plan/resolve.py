"""Resolves one checked point of the sweep: units are parsed, and defaults are filled in."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, TypedDict

from pydantic import TypeAdapter

from thalweg.plan import models as plan
from thalweg.plan import queues
from thalweg.plan.flows import resolve_flows
from thalweg.plan.traces import Traces
from thalweg.scenario import iperf3, models, values
from thalweg.scenario.document import Raw, TomlValue
from thalweg.scenario.rules import rules_credit, rules_host
from thalweg.scenario.text import quantities
from thalweg.scenario.text.quantities import PacketCount, Rtts
from thalweg.scenario.traces import Point

NO_LIMIT_BYTES = 2**31 - 1
"""Size of socket buffers without a limit, and of queues on links without a rate: the largest value that Linux accepts
in tcp_wmem and tcp_rmem.
"""

REORDER_RTT_SHARE = 8
"""A reordered packet without an explicit delay is held back for path.rtt divided by this. RACK's reordering window,
a quarter of the minimum RTT, is longer.
"""

DEFAULT_REVERSE = models.Reverse()


class PointFields(TypedDict, total=False):
    """Fields of `plan.Experiment` that all repetitions of a point share."""

    duration_ns: int | None
    sample_interval_ns: int
    start_jitter_ns: int
    rtt_ns: int
    ipv6: bool
    forward: plan.Link
    reverse: plan.Link
    hosts: dict[str, plan.Host]
    flows: list[plan.Flow]
    background: list[plan.Background]
    engine: plan.Choices


@dataclass(frozen=True)
class Resolved:
    """The part of an experiment that all repetitions of a point share."""

    fields: PointFields

    def experiment(
        self, *, experiment: int, repetition: int, sweep: dict[str, plan.SweepValue], seed: int
    ) -> plan.Experiment:
        """Return one experiment of the point."""
        return plan.Experiment(**self.fields, experiment=experiment, repetition=repetition, sweep=sweep, seed=seed)


class Resolver:
    """Resolves the points of one sweep; values that several points share are resolved once."""

    def __init__(self, folder: Path, traces: Traces) -> None:
        """Resolve relative paths of files in `folder`; `traces` collects the traces that are used."""
        self._folder = folder
        self._traces = traces
        self._parts = self._resolvers()
        self._known: dict[tuple[str, int], tuple[TomlValue, PointFields]] = {}
        self._reverse: tuple[tuple[models.Reverse, int, tuple[Point, ...]], plan.Link] | None = None
        """The last reverse direction, with its round-trip time, its delays, and the resolved link."""

    def resolve(self, raw: Raw) -> Resolved:
        """Resolve a point from `sweep.scenarios`."""
        fields: PointFields = {}
        if iperf3.is_chosen(raw):
            raw = {**raw, "flow": [iperf3.with_programs(flow) for _, flow in values.tables(raw, "flow")]}
        for key, resolve in self._parts.items():
            value = raw.get(key)
            at = key, id(value)
            if at not in self._known:
                # The value is referenced here, so that its id is not reused.
                self._known[at] = value, resolve(_read(key, raw))
            fields |= self._known[at][1]
        fields["start_jitter_ns"] = in_time(_read("start_jitter", raw), fields["rtt_ns"])
        return Resolved(fields)

    def _resolvers(self) -> dict[str, Callable[[Any], PointFields]]:
        """Return the resolver of each top-level key that depends on no other key."""
        return {
            "duration": lambda text: {"duration_ns": _optional(quantities.time, text)},
            "sample_interval": lambda text: {"sample_interval_ns": quantities.time(text)},
            "path": self._path,
            "host": lambda hosts: {
                "hosts": {
                    name: _host(hosts.get(name, models.Host())) for name in sorted({"sender", "receiver", *hosts})
                }
            },
            "flow": lambda flows: {"flows": resolve_flows(flows, self._folder)},
            "background": lambda background: {"background": [_background(traffic) for traffic in background]},
            "engine": lambda engine: {"engine": _choices(engine or models.Engine())},
        }

    def _path(self, path: models.Path) -> PointFields:
        assert path.rtt is not None, "checked by the rules"
        rtt_ns = quantities.time(path.rtt)
        one_way = rtt_ns // 2
        backward = path.reverse or DEFAULT_REVERSE
        forth, back = _rtt_steps(path.steps or [])
        key = backward, rtt_ns, tuple(back)
        if self._reverse is None or self._reverse[0] != key:
            link = _link(backward, self._folder, self._traces, rtt_ns, _Delay(rtt_ns - one_way, back))
            self._reverse = key, link
        return {
            "rtt_ns": rtt_ns,
            "ipv6": path.ip == 6,
            "forward": _link(path, self._folder, self._traces, rtt_ns, _Delay(one_way, forth)),
            "reverse": self._reverse[1],
        }


@cache
def _adapter(key: str) -> TypeAdapter[Any]:
    kind = models.Scenario.model_fields[key].annotation
    assert kind is not None
    return TypeAdapter(kind)


def _read(key: str, raw: Raw) -> Any:
    if key in raw:
        return _adapter(key).validate_python(raw[key])
    return models.Scenario.model_fields[key].get_default(call_default_factory=True)


def in_time(text: str, rtt_ns: int) -> int:
    """Convert a time or a multiple of the round-trip time to nanoseconds, rounded down.

    >>> in_time("0.5rtt", 45_000_001)
    22500000
    """
    value = quantities.time_or_rtt(text)
    return int(value.factor * rtt_ns) if isinstance(value, Rtts) else value


@dataclass(frozen=True)
class _Delay:
    at_start_ns: int
    steps: list[Point]


def _rtt_steps(steps: list[models.Step]) -> tuple[list[Point], list[Point]]:
    rtts = [(quantities.time(step.at), quantities.time(step.rtt)) for step in steps if step.rtt is not None]
    forth = [Point(at, delay_ns=rtt // 2) for at, rtt in rtts]
    back = [Point(at, delay_ns=rtt - rtt // 2) for at, rtt in rtts]
    return forth, back


def _link(link: models.Path | models.Reverse, folder: Path, traces: Traces, rtt_ns: int, delay: _Delay) -> plan.Link:
    capacity, rate_bps = _capacity(link, folder, traces)
    reorder, held_back_ns = _reorder(link.reorder, rtt_ns)
    buffer = _buffer(link.buffer, rate_bps, rtt_ns)
    queue, buffer = queues.resolve(link.queue, buffer, rate_bps, is_buffer_set="buffer" in link.model_fields_set)
    return plan.Link(
        capacity=capacity,
        buffer=buffer,
        queue=queue,
        loss=_loss(link.loss),
        duplicate=link.duplicate,
        delay_ns=delay.at_start_ns,
        jitter_ns=quantities.time(link.jitter),
        allow_reordering=link.allow_reordering,
        reorder=reorder,
        reorder_delay_ns=held_back_ns,
        policer=_policer(link.policer),
        aggregation=_aggregation(link.aggregation),
        offloads=link.offloads,
        ack_thinning=link.ack_thinning if isinstance(link, models.Reverse) else None,
        profile=_profile(link, folder, traces, delay),
    )


def _policer(policer: models.Policer | None) -> plan.Policer | None:
    if policer is None:
        return None
    rate_bps, burst_bytes = quantities.rate(policer.rate), quantities.size(policer.burst)
    return plan.Policer(rate_bps=rate_bps, burst_bytes=burst_bytes, after=policer.after)


def _aggregation(aggregation: models.Aggregation | None) -> plan.Aggregation | None:
    if aggregation is None:
        return None
    max_bytes = _optional(quantities.size, aggregation.max_bytes)
    return plan.Aggregation(interval_ns=quantities.time(aggregation.interval), max_bytes=max_bytes)


def _profile(link: models.Path | models.Reverse, folder: Path, traces: Traces, delay: _Delay) -> str | None:
    """Add a profile to `traces`: the conditions of the link's CSV trace, otherwise the steps of its delay and loss.
    Return its name; None: delay and loss are constant.
    """
    if link.trace is not None and (conditions := traces.add(folder / link.trace).conditions):
        return traces.add_profile(conditions.points, conditions.period_ns)
    points = {point.at_ns: point for point in delay.steps}
    for step in link.steps or []:
        if step.loss is not None:
            at_ns = quantities.time(step.at)
            points[at_ns] = replace(points.get(at_ns, Point(at_ns)), loss=float(step.loss))
    if not points:
        return None
    points.setdefault(0, Point(0))
    return traces.add_profile([points[at_ns] for at_ns in sorted(points)], None)


def _capacity(
    link: models.Path | models.Reverse, folder: Path, traces: Traces
) -> tuple[plan.Capacity, Fraction | None]:
    """Return the capacity, and the rate in bit/s that defines a BDP: the constant rate, that of the first step, or a
    trace's mean; None: unlimited.
    """
    if link.rate is not None:
        return _constant(link.rate)
    steps = [
        plan.Step(at_ns=quantities.time(step.at), rate_bps=quantities.rate(step.rate))
        for step in link.steps or []
        if step.rate is not None
    ]
    if steps:
        return plan.CapacitySteps(steps=steps), Fraction(steps[0].rate_bps)
    if link.trace is not None:
        added = traces.add(folder / link.trace)
        if added.trace is not None:
            return plan.CapacityTrace(trace=added.trace), added.rate_bps
        if added.rate_bps:
            return plan.CapacityProfile(), added.rate_bps
    return plan.CapacityUnlimited(), None


@lru_cache(maxsize=4096)
def _constant(rate: str) -> tuple[plan.Capacity, Fraction]:
    bps = quantities.rate(rate)
    return plan.CapacitySteps(steps=[plan.Step(at_ns=0, rate_bps=bps)]), Fraction(bps)


def _buffer(text: str, rate_bps: Fraction | None, rtt_ns: int) -> plan.Buffer:
    buffer = quantities.buffer(text)
    if isinstance(buffer, PacketCount):
        return plan.BufferPackets(packets=buffer.packets)
    # If the rate is unlimited, packets do not queue and the buffer's capacity has no effect.
    room = values.room_bytes(buffer, rate_bps, rtt_ns)
    return plan.BufferBytes(bytes=NO_LIMIT_BYTES if room is None else room)


@lru_cache
def _loss(loss: models.Loss) -> plan.Loss:
    if isinstance(loss, models.LossModel):
        return plan.LossGilbertElliott(p=loss.p, r=loss.r, loss_bad=loss.loss_bad, loss_good=loss.loss_good)
    return plan.LossBernoulli(ratio=float(loss))


def _reorder(reorder: models.Reorder, rtt_ns: int) -> tuple[float, int]:
    if isinstance(reorder, models.ReorderTable):
        return reorder.ratio, in_time(reorder.delay, rtt_ns)
    return reorder, rtt_ns // REORDER_RTT_SHARE


def _host(host: models.Host) -> plan.Host:
    return plan.Host(
        sndbuf_max_bytes=quantities.size(host.sndbuf_max) if host.sndbuf_max else NO_LIMIT_BYTES,
        rcvbuf_max_bytes=quantities.size(host.rcvbuf_max) if host.rcvbuf_max else NO_LIMIT_BYTES,
        delay_jitter_ns=quantities.time(host.delay_jitter) if host.delay_jitter else 0,
        cpu=None if host.cpu_share is None else _cpu(host, host.cpu_share),
        second_cpu=host.cpus == rules_credit.TWO_CPUS,
        co_tenants=host.co_tenants or 0,
        kernel=host.kernel,
        qdisc=host.qdisc,
        offloads=bool(host.offloads),
        interrupt_coalescing_ns=quantities.time(host.interrupt_coalescing) if host.interrupt_coalescing else 0,
    )


def _cpu(host: models.Host, share: float) -> plan.Cpu:
    slice_ns = quantities.time(host.cpu_slice or rules_host.DEFAULT_SLICE)
    return plan.Cpu(
        slice_ns=slice_ns,
        period_ns=rules_host.period_ns(share, slice_ns),
        per_packet_ns=quantities.time(host.cpu_per_packet or rules_host.DEFAULT_COST),
        per_ack_ns=quantities.time(host.cpu_per_ack or rules_host.DEFAULT_COST),
        slice_jitter_ppm=_millionths(host.cpu_slice_jitter or 0),
        credit=_credit(host, share) if host.cpu_model == "credit" else None,
    )


def _credit(host: models.Host, share: float) -> plan.Credit:
    credit_ns = quantities.time(host.cpu_credit or "0s")
    baseline_ppm = _millionths(share if host.cpu_baseline is None else host.cpu_baseline)
    max_ns = _optional(quantities.time, host.cpu_credit_max)
    return plan.Credit(
        initial_ns=credit_ns,
        max_ns=rules_credit.max_ns(credit_ns, baseline_ppm) if max_ns is None else max_ns,
        baseline_ppm=baseline_ppm,
        load_ppm=_millionths(host.cpu_load or 0),
    )


def _millionths(share: float) -> int:
    return round(Fraction(str(share)) * 10**6)


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
        traffic="builtin",
        offloads=bool(engine.offloads),
        record=bool(engine.record),
    )


def _optional(parse: Callable[[str], int], text: str | None) -> int | None:
    return None if text is None else parse(text)
