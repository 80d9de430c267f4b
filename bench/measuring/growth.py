"""Measurements of `bench/scaling.py`: costs of one process at several sizes."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from thalweg import engine

from measuring import child

THALWEG = [sys.executable, "-m", "thalweg"]

FLOWS = """
name = "flows"
about = "CUBIC and BBR flows share a bottleneck of 1 Gbit/s; {flows} in total."
duration = "10s"
sample_interval = "{interval}"
path = {{ rate = "1Gbps", rtt = "40ms", buffer = "1bdp" }}
"""
"""A bottleneck whose number of packets is nearly independent of the number of flows."""

EXPERIMENTS = """
name = "experiments"
about = "One CUBIC flow for two seconds, with random loss; {points} points, 5 repetitions each."
duration = "2s"
repetitions = 5
path = {{ rate = "10Mbps", rtt = "20ms", buffer = "1bdp", loss = 0.001 }}

[[flow]]
name = "main"
cc = "cubic"

[sweep]
"path.rtt" = [{rtts}]
"""
REPETITIONS = 5


@dataclass(frozen=True)
class Measured:
    """Costs of one process at one size: medians over its repetitions."""

    curve: str
    series: str
    size: int
    units: int
    """Number of packets, rows or experiments by which the cost is divided."""
    cpu_s: float
    peak_bytes: int

    @property
    def cost_s(self) -> float:
        """CPU seconds per unit."""
        return self.cpu_s / self.units

    def as_json(self) -> dict[str, Any]:
        """Return the measurement as JSON."""
        return asdict(self) | {"cost_s": self.cost_s}


@dataclass(frozen=True)
class Step:
    """A process whose cost is measured, and a function that returns its number of units."""

    series: str
    command: Sequence[str | Path]
    units: Callable[[], int]


@dataclass(frozen=True)
class Curve:
    """A cost over a range of sizes."""

    title: str
    unit: str
    size: str
    """Quantity that is varied."""
    sizes: Sequence[int]
    steps: Callable[[int, Path], Iterator[Step]]
    """Returns the processes to run in order, for a size, in a separate folder."""


def measure(name: str, sizes: Sequence[int], runs: int) -> list[Measured]:
    """Measure a curve at several sizes, which alternate."""
    costs: dict[tuple[str, int], list[tuple[int, child.Cost]]] = {}
    for number in range(runs):
        for size in sizes:
            print(f"bench: {name} {size:,}, {number + 1} of {runs}", file=sys.stderr, flush=True)
            for series, units, cost in _measured_once(CURVES[name], size):
                costs.setdefault((series, size), []).append((units, cost))
    return [
        Measured(
            name, series, size, taken[0][0],
            median(cost.cpu_s for _, cost in taken), int(median(cost.peak_bytes for _, cost in taken)),
        )
        for (series, size), taken in costs.items()
    ]  # fmt: skip


def _measured_once(curve: Curve, size: int) -> Iterator[tuple[str, int, child.Cost]]:
    with tempfile.TemporaryDirectory(prefix="thalweg-bench-") as folder:
        for step in curve.steps(size, Path(folder)):
            cost = child.run(step.command)
            yield step.series, step.units(), cost


def _flows(size: int, folder: Path) -> Iterator[Step]:
    """Run the same bottleneck with a number of flows, with and without samples."""
    for series, interval in (("without samples", "0s"), ("100 samples a second", "10ms")):
        scenario, plan, out = (folder / f"{series}.{suffix}" for suffix in ("toml", "json", "run"))
        counts = {"cubic": size - size // 2, "bbr": size // 2}
        groups = [f'[[flow]]\nname = "{cc}"\ncc = "{cc}"\ncount = {n}\n' for cc, n in counts.items() if n]
        scenario.write_text(FLOWS.format(flows=size, interval=interval) + "\n".join(groups))
        _write_plan(scenario, plan)
        yield Step(series, _engine(plan, out), partial(_sum_of_events, out, "packets"))


def _rows(size: int, folder: Path) -> Iterator[Step]:
    """Measure advice on synthetic records."""
    command: list[str | Path] = [
        *THALWEG,
        "synth",
        "cdn",
        "--rows",
        str(size),
        "--truth",
        "correlated",
        "--out",
        folder,
    ]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    answer = folder / "answer.json"
    advise: list[str | Path] = [*THALWEG, "advise", folder / "records", "--by", "rtt,retransmits", "--json"]
    yield Step("advise", _to_file(advise, answer), lambda: int(json.loads(answer.read_text())["rows"]))


def _experiments(size: int, folder: Path) -> Iterator[Step]:
    """Create a plan, run it and write its report: the steps of `thalweg run`, as separate processes."""
    scenario, plan, out = folder / "experiments.toml", folder / "plan.json", folder / "run"
    points = max(1, size // REPETITIONS)
    rtts = ", ".join(f'"{20_000 + 10 * point}us"' for point in range(points))
    scenario.write_text(EXPERIMENTS.format(points=points, rtts=rtts))
    check: list[str | Path] = [*THALWEG, "check", scenario, "--json"]
    yield Step("plan", _to_file(check, plan), lambda: size)
    yield Step("engine", _engine(plan, out), lambda: _finished(out))
    yield Step("report", [*THALWEG, "report", out, "--out", folder / "report.html"], lambda: size)


def _engine(plan: Path, out: Path) -> list[str | Path]:
    # The events of many experiments exceed a pipe's capacity.
    command: list[str | Path] = [engine.find(), "run", "--plan", plan, "--out", out, "--threads", "1"]
    return _to_file(command, out.with_suffix(".events"))


def _to_file(command: Sequence[str | Path], file: Path) -> list[str | Path]:
    """Return a command whose standard output is a file: `child.run` reads a pipe only at the end."""
    return ["sh", "-c", 'out="$1"; shift; exec "$@" >"$out" 2>"$out.log"', "sh", file, *command]


def _write_plan(scenario: Path, plan: Path) -> None:
    with plan.open("w") as file:
        subprocess.run([*THALWEG, "check", scenario, "--json"], check=True, stdout=file)


def _events(run: Path) -> Iterator[dict[str, Any]]:
    for line in (run / "events.jsonl").read_text().splitlines():
        event = json.loads(line)
        if event["event"] == "finished":
            yield event


def _sum_of_events(run: Path, key: str) -> int:
    return sum(int(event[key]) for event in _events(run))


def _finished(run: Path) -> int:
    return sum(1 for _ in _events(run))


CURVES = {
    "flows": Curve("Cost per packet", "packet", "flows", (1, 10, 100, 1000, 10_000), _flows),
    "rows": Curve("Cost per row of advice", "row", "rows", (10**5, 10**6, 10**7, 10**8), _rows),
    "experiments": Curve("Cost per experiment", "experiment", "experiments", (10, 100, 1000, 10_000), _experiments),
}
"""Curves by name."""
