"""The measured cases, each a scenario in `bench/cases`."""

from dataclasses import dataclass
from pathlib import Path

from thalweg import engine, plan, scenario
from thalweg.plan.models import BufferBytes, CapacitySteps, Experiment, LossBernoulli, Plan

FOLDER = Path(__file__).resolve().parents[1] / "cases"


@dataclass(frozen=True)
class Case:
    """A scenario, and the time that the much slower peer simulates."""

    name: str
    target: float | None
    """Required speed in packets per CPU second; None: no requirement."""
    peer_seconds: float


CASES = [
    Case("one-cubic", 3e6, 3),
    Case("one-bbr", 2e6, 0.4),
    Case("one-bbr-deep", 2e6, 0.5),
    Case("mixed", 4e6, 1),
    Case("lossy-cubic", 2e6, 30),
    Case("lossy-bbr", 2e6, 0.3),
    Case("lossy-mixed", 3e6, 1),
]

QUICK = ["one-cubic", "lossy-cubic"]
"""The cases of a smoke test."""
QUICK_SECONDS = 0.5
"""Duration of the cases in a smoke test, on both sides."""


def resolved(file: Path) -> Plan:
    """Resolve a scenario for the simulator."""
    capabilities = engine.capabilities()
    return plan.make(scenario.load(file), capabilities.engines[engine.DEFAULT], capabilities.engines)


def plan_of(name: str, seconds: float | None = None, repetitions: int = 1, is_sampled: bool = True) -> Plan:
    """Resolve the scenario of a case; `seconds` replaces its duration."""
    case_plan = resolved(FOLDER / f"{name}.toml")
    changes: dict[str, object] = {}
    if seconds is not None:
        changes["duration_ns"] = int(seconds * 1e9)
    if not is_sampled:
        changes["sample_interval_ns"] = 0
    one = case_plan.experiments[0].model_copy(update=changes)
    experiments = [one.model_copy(update={"repetition": number}) for number in range(repetitions)]
    return case_plan.model_copy(update={"experiments": experiments})


def peer_arguments(experiment: Experiment, seconds: float) -> list[str]:
    """Return the arguments of `bench/ns3/dumbbell.cc` for the same dumbbell."""
    link = experiment.forward
    # The cases contain no other kinds of capacity, buffer and loss, which the peer would not simulate.
    assert isinstance(link.capacity, CapacitySteps)
    assert isinstance(link.buffer, BufferBytes)
    assert isinstance(link.loss, LossBernoulli)
    groups = [f"{flow.cc}:{flow.count}:{flow.extra_rtt_ns}" for flow in experiment.flows]
    (step,) = link.capacity.steps
    return [
        str(step.rate_bps),
        str(link.delay_ns),
        str(link.buffer.bytes),
        str(link.loss.ratio),
        str(seconds),
        *groups,
    ]
