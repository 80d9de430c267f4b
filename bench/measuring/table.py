"""Results as text and JSON."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from measuring.child import Cost


@dataclass(frozen=True)
class Side:
    """One run of one simulator."""

    packets: int
    """Number of packets that the bottleneck has sent, both data and ACKs."""
    cpu_s: float
    wall_s: float
    peak_bytes: int
    goodput_bps: float
    simulated_s: float

    @property
    def speed(self) -> float:
        """Packets per CPU second."""
        return self.packets / self.cpu_s

    @staticmethod
    def of(cost: Cost, packets: int, simulated_s: float, payload: int) -> "Side":
        """Create a result from the cost and the traffic of a run; `payload` is in bytes."""
        goodput_bps = 8 * payload / simulated_s
        return Side(packets, cost.cpu_s, cost.wall_s, cost.peak_bytes, goodput_bps, simulated_s)


@dataclass(frozen=True)
class Row:
    """A case with several runs of each simulator; no runs of the peer if it is not installed."""

    case: str
    target: float | None
    ours: Sequence[Side]
    peer: Sequence[Side]

    def as_json(self) -> dict[str, Any]:
        """Return all measurements, and the medians of the table."""
        values: dict[str, Any] = {"case": self.case, "target_packets_per_cpu_s": self.target}
        for name, runs in (("ours", self.ours), ("peer", self.peer)):
            values[name] = {"speed_packets_per_cpu_s": _median(runs), "runs": [asdict(run) for run in runs]}
        values["ratio"] = self.ratio
        return values

    @property
    def ratio(self) -> float | None:
        """Return the speed relative to the peer's."""
        return median(run.speed for run in self.ours) / median(run.speed for run in self.peer) if self.peer else None


def text(rows: Sequence[Row]) -> str:
    """Return the rows as a table: median speeds with ranges in brackets, the largest memory of all runs, and packets
    and goodput of the first run.
    """
    head = ("case", "packets", "per CPU second", "target", "goodput", "memory", "ns-3", "goodput", "memory", "ratio")
    lines = [head, *(_cells(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if at == 0 else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        for line in lines
    )


def _cells(row: Row) -> tuple[str, ...]:
    target = "" if row.target is None else _count(row.target)
    ours = (row.case, _count(row.ours[0].packets), _speed(row.ours), target, *_carried(row.ours))
    ratio = "" if row.ratio is None else f"{row.ratio:.0f}"
    return (*ours, _speed(row.peer), *_carried(row.peer), ratio)


def _speed(runs: Sequence[Side]) -> str:
    if not runs:
        return "-"
    low, high = (_count(choose(run.speed for run in runs)) for choose in (min, max))
    return f"{_count(median(run.speed for run in runs))} [{low}, {high}]"


def _carried(runs: Sequence[Side]) -> tuple[str, str]:
    if not runs:
        return "-", "-"
    return f"{runs[0].goodput_bps / 1e6:.1f} Mbit/s", f"{max(run.peak_bytes for run in runs) / 2**20:.0f} MiB"


def _count(number: float) -> str:
    return f"{number / 1e6:.2f} M" if number >= 1e5 else f"{number / 1e3:.1f} k"


def _median(runs: Sequence[Side]) -> float | None:
    return median(run.speed for run in runs) if runs else None
