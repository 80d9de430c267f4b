"""Types of the plan in run.json, limited to the keys that are read here; python/thalweg/plan/plan.schema.json describes
all of it.

Keys that depend on `kind`, or that older run directories do not have, may be missing.
"""

from collections.abc import Mapping, Sequence
from typing import NotRequired, TypedDict

SweptValue = bool | int | float | str


class StepDocument(TypedDict):
    """A rate, and the time at which it starts."""

    at_ns: int
    rate_bps: int


class CapacityDocument(TypedDict):
    """Capacity of a link."""

    kind: str
    steps: NotRequired[Sequence[StepDocument]]
    trace: NotRequired[str]


class BufferDocument(TypedDict):
    """Capacity of a queue."""

    kind: str
    bytes: NotRequired[int]
    packets: NotRequired[int]


class QueueDocument(TypedDict):
    """A queue discipline."""

    kind: str


class LossDocument(TypedDict):
    """Random loss of a link."""

    kind: str
    ratio: NotRequired[float]
    p: NotRequired[float]
    r: NotRequired[float]
    loss_bad: NotRequired[float]
    loss_good: NotRequired[float]


class PolicerDocument(TypedDict):
    """A token bucket that drops excess packets."""

    rate_bps: int
    burst_bytes: int
    after: bool


class AggregationDocument(TypedDict):
    """Aggregation of packets."""

    interval_ns: int
    max_bytes: int | None


class ProfilePointDocument(TypedDict):
    """Conditions, and the time at which they start; None: unchanged."""

    at_ns: int
    rate_bps: int | None
    delay_ns: int | None
    loss: float | None


class ProfileDocument(TypedDict):
    """Conditions that change over time."""

    period_ns: int | None
    points: Sequence[ProfilePointDocument]


class LinkDocument(TypedDict):
    """A direction of the path."""

    capacity: CapacityDocument
    buffer: BufferDocument
    queue: QueueDocument
    loss: LossDocument
    duplicate: float
    delay_ns: int
    jitter_ns: int
    allow_reordering: NotRequired[bool]
    reorder: float
    reorder_delay_ns: int
    policer: NotRequired[PolicerDocument | None]
    aggregation: NotRequired[AggregationDocument | None]
    offloads: NotRequired[bool]
    ack_thinning: NotRequired[int | None]
    profile: NotRequired[str | None]


class CpuDocument(TypedDict):
    """CPU restriction of a host."""

    slice_ns: int
    period_ns: int


class HostDocument(TypedDict):
    """A host of the path."""

    sndbuf_max_bytes: int
    rcvbuf_max_bytes: int
    delay_jitter_ns: int
    cpu: NotRequired[CpuDocument | None]
    co_tenants: NotRequired[int]
    qdisc: NotRequired[str | None]
    offloads: NotRequired[bool]
    interrupt_coalescing_ns: NotRequired[int]


class AppDocument(TypedDict):
    """An application."""

    kind: str
    bitrates_bps: NotRequired[Sequence[int]]
    objects: NotRequired[int]
    sizes_bytes: NotRequired[Sequence[int]]
    frame_bytes: NotRequired[int]
    size_bytes: NotRequired[int]
    interval_ns: NotRequired[int]
    mean_gap_ns: NotRequired[int]


class LoadDocument(TypedDict):
    """Load of a connection."""

    kind: str
    app: NotRequired[AppDocument]
    sizes_bytes: NotRequired[Sequence[int]]
    size_bytes: NotRequired[int]
    think_ns: NotRequired[int]
    count: NotRequired[int | None]


class RepeatDocument(TypedDict):
    """Repetition of a flow's connections after the first one."""

    kind: str
    gap_ns: NotRequired[int]
    mean_gap_ns: NotRequired[int]
    until: NotRequired[str | None]
    count: NotRequired[int | None]


class FlowDocument(TypedDict):
    """A flow."""

    name: str
    cc: str
    cc_params: Mapping[str, float]
    paced: NotRequired[bool]
    start_ns: int
    stop_ns: int | None
    load: LoadDocument
    repeat: RepeatDocument
    count: int
    extra_rtt_ns: int
    host: str
    up: NotRequired[bool]


class BackgroundDocument(TypedDict):
    """A UDP flow in the background."""

    rate_bps: int
    start_ns: int
    stop_ns: int | None
    up: NotRequired[bool]


class ExperimentDocument(TypedDict):
    """One repetition of one sweep point."""

    experiment: int
    repetition: int
    sweep: Mapping[str, SweptValue]
    seed: int
    duration_ns: int | None
    sample_interval_ns: int
    start_jitter_ns: int
    rtt_ns: int
    forward: LinkDocument
    reverse: LinkDocument
    hosts: Mapping[str, HostDocument]
    flows: Sequence[FlowDocument]
    background: Sequence[BackgroundDocument]


class PlanDocument(TypedDict):
    """A plan."""

    name: str
    about: str
    source: str
    scenario_toml: NotRequired[str]
    traces: Mapping[str, Sequence[int]]
    profiles: NotRequired[Mapping[str, ProfileDocument]]
    experiments: Sequence[ExperimentDocument]
