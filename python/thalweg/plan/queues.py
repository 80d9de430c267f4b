"""Queue disciplines of a plan: tc's parameters, with defaults for those that a scenario does not set."""

from collections.abc import Callable
from fractions import Fraction
from types import MappingProxyType

from thalweg.plan import models as plan
from thalweg.scenario import models
from thalweg.scenario.rules.rules_queue import MTU_BYTES
from thalweg.scenario.text import quantities

LIMITS_PACKETS = MappingProxyType(
    {"codel": 1000, "fq_codel": 10240, "pie": 1000, "fq_pie": 10240, "fq": 10000, "dualpi2": 10000, "cake": 10240}
)
"""Default limits in packets, from Linux's sch_*.c."""

FRAME_BYTES = 1514
"""Full-sized frame in Linux's disciplines, including the Ethernet header."""

MEMORY_LIMIT_BYTES = 32 << 20

PIE_ALPHA, PIE_BETA = 2, 20
"""Defaults of pie, in sixteenths of 1/s."""

DUALPI2_ALPHA, DUALPI2_BETA = 0.16, 3.2
"""Defaults of dualpi2, in 1/s."""

RED_AVPKT_BYTES, RED_PROBABILITY = 1000, 0.02
"""Defaults of red: a recommendation and a default of tc-red(8)."""

FIFO = plan.QueueFifo()


def resolve(
    queue: models.Queue, buffer: plan.Buffer, rate_bps: Fraction | None, *, is_buffer_set: bool
) -> tuple[plan.Queue, plan.Buffer]:
    """Return the discipline and its limit.

    Args:
        queue: The discipline in the scenario.
        buffer: The link's buffer: the limit of fifo, and of red unless it sets a limit.
        rate_bps: The rate at which red's average decays while the queue is idle; None: 10 Mbit/s, as in tc.
        is_buffer_set: Whether the scenario sets the buffer, which then also limits the other disciplines, unless they
            set a limit.
    """
    table = queue if isinstance(queue, models.QueueTable) else models.QueueTable(name=queue)
    if table.name == "fifo":
        return FIFO, buffer
    if table.name == "red":
        limit_bytes = table.limit or _in_bytes(buffer)
        return _red(table, limit_bytes, rate_bps), plan.BufferBytes(bytes=limit_bytes)
    packets = table.limit or (_in_packets(buffer) if is_buffer_set else LIMITS_PACKETS[table.name])
    return DISCIPLINES[table.name](table), plan.BufferPackets(packets=packets)


def _in_bytes(buffer: plan.Buffer) -> int:
    return buffer.bytes if isinstance(buffer, plan.BufferBytes) else buffer.packets * MTU_BYTES


def _in_packets(buffer: plan.Buffer) -> int:
    return buffer.packets if isinstance(buffer, plan.BufferPackets) else max(1, buffer.bytes // MTU_BYTES)


def _time(text: str | None, default: str) -> int:
    return quantities.time(text or default)


def _size(text: str | None, default: int) -> int:
    return quantities.size(text) if text else default


def _optional_time(text: str | None) -> int | None:
    return quantities.time(text) if text else None


def _codel(table: models.QueueTable) -> plan.QueueCodel:
    return plan.QueueCodel(
        target_ns=_time(table.target, "5ms"),
        interval_ns=_time(table.interval, "100ms"),
        ecn=bool(table.ecn),
        ce_threshold_ns=_optional_time(table.ce_threshold),
    )


def _fq_codel(table: models.QueueTable) -> plan.QueueFqCodel:
    return plan.QueueFqCodel(
        flows=table.flows or 1024,
        quantum_bytes=_size(table.quantum, FRAME_BYTES),
        memory_limit_bytes=_size(table.memory_limit, MEMORY_LIMIT_BYTES),
        drop_batch=table.drop_batch or 64,
        target_ns=_time(table.target, "5ms"),
        interval_ns=_time(table.interval, "100ms"),
        ecn=table.ecn is not False,
        ce_threshold_ns=_optional_time(table.ce_threshold),
    )


def _weight(value: float | None, default: int) -> int:
    return default if value is None else int(value)


def _pie(table: models.QueueTable) -> plan.QueuePie:
    return plan.QueuePie(
        target_ns=_time(table.target, "15ms"),
        tupdate_ns=_time(table.tupdate, "15ms"),
        alpha=_weight(table.alpha, PIE_ALPHA),
        beta=_weight(table.beta, PIE_BETA),
        ecn=bool(table.ecn),
    )


def _fq_pie(table: models.QueueTable) -> plan.QueueFqPie:
    return plan.QueueFqPie(
        flows=table.flows or 1024,
        quantum_bytes=_size(table.quantum, FRAME_BYTES),
        memory_limit_bytes=_size(table.memory_limit, MEMORY_LIMIT_BYTES),
        target_ns=_time(table.target, "15ms"),
        tupdate_ns=_time(table.tupdate, "15ms"),
        alpha=_weight(table.alpha, PIE_ALPHA),
        beta=_weight(table.beta, PIE_BETA),
        ecn=bool(table.ecn),
        ecn_prob=10 if table.ecn_prob is None else table.ecn_prob,
    )


def _fq(table: models.QueueTable) -> plan.QueueFq:
    return plan.QueueFq(
        flow_limit=table.flow_limit or 100,
        quantum_bytes=_size(table.quantum, 2 * FRAME_BYTES),
        initial_quantum_bytes=_size(table.initial_quantum, 10 * FRAME_BYTES),
        ce_threshold_ns=_optional_time(table.ce_threshold),
    )


def _dualpi2(table: models.QueueTable) -> plan.QueueDualpi2:
    return plan.QueueDualpi2(
        target_ns=_time(table.target, "15ms"),
        tupdate_ns=_time(table.tupdate, "16ms"),
        alpha=DUALPI2_ALPHA if table.alpha is None else table.alpha,
        beta=DUALPI2_BETA if table.beta is None else table.beta,
        step_thresh_ns=_time(table.step_thresh, "1ms"),
        coupling_factor=table.coupling_factor or 2,
        classic_protection=10 if table.classic_protection is None else table.classic_protection,
    )


def _cake(table: models.QueueTable) -> plan.QueueCake:
    return plan.QueueCake(rtt_ns=_time(table.rtt, "100ms"))


def _red(table: models.QueueTable, limit_bytes: int, rate_bps: Fraction | None) -> plan.QueueRed:
    """Resolve red with tc's defaults; tc has none for `avpkt`."""
    set_min = quantities.size(table.min) if table.min else None
    max_bytes = _size(table.max, 3 * set_min if set_min else max(1, limit_bytes // 4))
    min_bytes = set_min or max(1, max_bytes // 3)
    avpkt_bytes = max(1, _size(table.avpkt, RED_AVPKT_BYTES))
    return plan.QueueRed(
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        avpkt_bytes=avpkt_bytes,
        burst=table.burst or max(1, (2 * min_bytes + max_bytes) // (3 * avpkt_bytes)),
        probability=RED_PROBABILITY if table.probability is None else table.probability,
        bandwidth_bps=int(rate_bps or 10**7),
        ecn=bool(table.ecn),
    )


DISCIPLINES: MappingProxyType[str, Callable[[models.QueueTable], plan.Queue]] = MappingProxyType(
    {
        "codel": _codel,
        "fq_codel": _fq_codel,
        "pie": _pie,
        "fq_pie": _fq_pie,
        "fq": _fq,
        "dualpi2": _dualpi2,
        "cake": _cake,
    }
)
"""Disciplines whose limit counts packets."""
