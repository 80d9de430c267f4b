"""JSON output of `thalweg-engine`; some unused keys are omitted."""

from collections.abc import Mapping, Sequence
from typing import NotRequired, TypedDict, TypeGuard

from pydantic import JsonValue


class EngineEvent(TypedDict):
    """An event of `thalweg-engine`, or a line of a run's journal; its keys depend on `event`."""

    event: str
    id: NotRequired[str]
    experiment: NotRequired[int]
    repetition: NotRequired[int]
    experiments: NotRequired[int]
    present: NotRequired[int]
    pending: NotRequired[int]
    threads: NotRequired[int]
    measured: NotRequired[JsonValue]
    reason: NotRequired[str]
    code: NotRequired[str]
    message: NotRequired[str]
    place: NotRequired[str]
    found: NotRequired[str]
    expected: NotRequired[str]
    hint: NotRequired[str]


def is_event(line: JsonValue) -> TypeGuard[EngineEvent]:
    """Return whether a JSON value is an event."""
    return isinstance(line, dict) and "event" in line


class LiveMachine(TypedDict):
    """CPU state of the machine during the measurement."""

    cpus: int
    steal_percent: float | None
    pressure_percent: float | None
    stalled_percent: float
    longest_stall_us: int
    is_realtime: bool


class LiveConnection(TypedDict):
    """A connection whose data was acknowledged during the measurement."""

    netns: int
    netns_name: str | None
    local: str
    remote: str
    algorithm: str
    goodput_bps: float | None
    bw_bps: int | None
    srtt_us: int | None
    min_rtt_us: int | None
    short_percent: float | None
    verdict: str


class LiveNamespace(TypedDict):
    """A network namespace that was sampled."""

    netns: int
    name: str | None
    own: bool
    established: int


class LiveMissed(TypedDict):
    """Namespaces that could not be sampled."""

    namespaces: Sequence[str]
    hidden_processes: int


class Live(TypedDict):
    """Measurements of the binary on this machine and its connections."""

    lasted_ms: int
    machine: LiveMachine
    connections: Sequence[LiveConnection]
    established: int
    namespaces: Sequence[LiveNamespace]
    missed: LiveMissed


class PolicySpread(TypedDict):
    """Median and worst decile of a number over the simulated populations; of `settled` and `settled_after_change`, over
    the destinations of all populations.
    """

    median: float
    worst_decile: float


class PolicySummary(TypedDict):
    """Scores of a policy over the simulated populations."""

    policy: str
    regret_percent: PolicySpread
    regret_with_holdout_percent: PolicySpread
    regret_while_busy_percent: PolicySpread | None
    good_percent: PolicySpread
    harm_percent: PolicySpread
    settled: PolicySpread | None
    settled_after_change: PolicySpread | None
    by_kind_percent: dict[str, float]


class PlayedPolicies(TypedDict):
    """Results of simulating policies."""

    policies: Sequence[PolicySummary]


class RangeCapability(TypedDict):
    """Valid values of a parameter."""

    min: float
    max: float
    whole: bool


class AlgorithmCapability(TypedDict):
    """A congestion control of an engine."""

    name: str
    about: NotRequired[str]
    params: dict[str, str]
    ranges: NotRequired[Mapping[str, RangeCapability]]


class LackCapability(TypedDict):
    """A congestion control that an engine lacks now, but could have on this machine."""

    name: str
    why: str
    hint: str


class EngineRefusal(TypedDict):
    """Reason why a machine cannot run a plan."""

    experiment: int
    """The first experiment that it concerns."""
    code: str
    message: str
    hint: str


class EngineCapability(TypedDict):
    """Capabilities of an engine."""

    name: str
    about: str
    version: str
    available: bool
    why_not: str | None
    cc: Sequence[AlgorithmCapability]
    honours: Sequence[str]
    generations: NotRequired[Mapping[str, str | None] | None]
    real_time: NotRequired[bool]
    lacks: NotRequired[Sequence[LackCapability]]
