"""What an executor is given."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from thalweg.engine_output import EngineEvent
from thalweg.plan import Plan

ExperimentKey = tuple[int, int]
"""An experiment's point and repetition."""


def _ignore(event: EngineEvent) -> None:
    """Do nothing with an event."""


@dataclass(frozen=True)
class Work:
    """A plan, and where and how it is to be run."""

    plan: Plan
    out: Path
    """The run directory."""
    binary: Path
    """The engine of this machine."""
    threads: int | None = None
    """Experiments at a time: on this machine, or in each shard. None: one per CPU here, one in a shard."""
    command: Sequence[str] = ()
    """What the user typed; the run directory keeps it."""
    listener: Callable[[EngineEvent], None] = _ignore
    """Called with every event."""
    due: Sequence[ExperimentKey] | None = None
    """What is to be run now; None: all of the plan."""
    shards: int | None = None
    """Number of shards; None: the executor decides. `local` has none."""
