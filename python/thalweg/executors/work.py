"""The input of executors."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from thalweg.engine_output import EngineEvent
from thalweg.plan import Plan

ExperimentKey = tuple[int, int]
"""An experiment's point and repetition."""


def _ignore(event: EngineEvent) -> None:
    """Ignore an event."""


@dataclass(frozen=True)
class Work:
    """A plan, with the place and options of its run."""

    plan: Plan
    out: Path
    """The run directory."""
    binary: Path
    """The engine of this machine."""
    threads: int | None = None
    """Experiments at a time: on this machine, or in each shard. None: one per CPU here, one in a shard."""
    command: Sequence[str] = ()
    """The user's command, which the run directory stores."""
    listener: Callable[[EngineEvent], None] = _ignore
    """Called with every event."""
    due: Sequence[ExperimentKey] | None = None
    """Experiments to run now; None: the whole plan."""
    shards: int | None = None
    """Number of shards; None: the executor decides. `local` has none."""
