"""The work of an executor: a plan, and the options of its run."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from thalweg.engine_output import EngineEvent
from thalweg.plan import Plan

ExperimentKey = tuple[int, int]
"""Point and repetition of an experiment."""


def _ignore(event: EngineEvent) -> None:
    """Discard an event."""


@dataclass(frozen=True)
class Work:
    """A plan with its run directory and options."""

    plan: Plan
    out: Path
    binary: Path
    """The engine of this machine."""
    threads: int | None = None
    """Experiments that run in parallel on this machine, or in each shard. None: the engine's default for `local`, one
    per shard for the others.
    """
    command: Sequence[str] = ()
    """The user's command, which the run directory stores."""
    listener: Callable[[EngineEvent], None] = _ignore
    """Called with events. Cluster executors omit some, and pass those of a shard once it is merged."""
    due: Sequence[ExperimentKey] | None = None
    """Experiments to run; None: the entire plan."""
    shards: int | None = None
    """Number of shards; None: the executor decides. `local` ignores it."""
