"""The traces of a plan; each is stored once for any number of names and uses."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path

from thalweg.plan import models as plan
from thalweg.scenario import traces
from thalweg.scenario.traces import Conditions, Point


@dataclass(frozen=True)
class Added:
    """A trace file in the plan, and its mean rate in bit/s."""

    trace: str | None
    """Name of its transmission opportunities, if any."""
    conditions: Conditions | None
    """Conditions of a CSV, for a profile."""
    rate_bps: Fraction


class Traces:
    """Traces and profiles by the hash of their content."""

    def __init__(self) -> None:
        self.by_name: dict[str, list[int]] = {}
        self.profiles: dict[str, plan.Profile] = {}
        self._known: dict[Path, Added] = {}

    def add(self, file: Path) -> Added:
        """Read a trace file, once; add its transmission opportunities, if it has any, to `by_name`."""
        if file not in self._known:
            trace = traces.read(file)
            name = None
            if not isinstance(trace, Conditions):
                digest = hashlib.sha256("\n".join(map(str, trace.times_ms)).encode("ascii")).hexdigest()
                name = digest[:16]
                self.by_name[name] = list(trace.times_ms)
            conditions = trace if isinstance(trace, Conditions) else None
            self._known[file] = Added(name, conditions, trace.mean_rate_bps)
        return self._known[file]

    def add_profile(self, points: Sequence[Point], period_ns: int | None) -> str:
        """Add varying conditions; return their name in the plan."""
        rows: list[Mapping[str, int | float | None]] = [asdict(point) for point in points]
        digest = hashlib.sha256(json.dumps([period_ns, rows]).encode("ascii")).hexdigest()[:16]
        if digest not in self.profiles:
            profile_points = [plan.ProfilePoint.model_validate(row) for row in rows]
            self.profiles[digest] = plan.Profile(period_ns=period_ns, points=profile_points)
        return digest
