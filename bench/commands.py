#!/usr/bin/env python3
"""Measures the CPU time of the commands that users wait for, each beside a peer.

    make bench                                  with the others: a minute
    .venv/bin/python bench/commands.py --quick  a smoke test: once, and a report of six experiments
    ... --before DIR                            alternating with the version in another checkout, which is set up
    ... --out FILE                              all measurements, for programs

CPU seconds are those of the entire process and of those that it starts. The peer of a command is the part of it that
no change of thalweg's Python saves: the start of the interpreter, or the engine without a report.

The output is a table in Markdown.
"""

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from measuring import cases, child
from thalweg import engine

ROOT = Path(__file__).resolve().parents[1]
QUICKSTART = ROOT / "scenarios" / "quickstart.toml"
RUNS = 5
THALWEG: list[str | Path] = [sys.executable, "-m", "thalweg"]
BUFFERS = ["0.5bdp", "4bdp", "1bdp", "2bdp", "8bdp"]
"""Buffers of the report, with three repetitions each; the first two are those of the quickstart."""


@dataclass(frozen=True)
class Work:
    """A command, its peer, and its goal in CPU seconds."""

    name: str
    command: Sequence[str | Path]
    peer: Sequence[str | Path]
    goal_s: float
    is_goal_over_peer: bool = False
    """Whether the goal is a difference from the peer."""


@dataclass(frozen=True)
class Measured:
    """The CPU seconds of each run of a command, of its peer and, if requested, of the earlier version."""

    name: str
    goal_s: float
    ours_s: list[float]
    peer_s: list[float]
    before_s: list[float]


def main() -> None:
    """Run the requested measurements."""
    parser = argparse.ArgumentParser(description="Measure the CPU time of thalweg's commands.")
    parser.add_argument("--quick", action="store_true", help="quick test: each command once, and a smaller report")
    parser.add_argument("--runs", type=int, default=RUNS, help=f"number of runs of each command (default: {RUNS})")
    parser.add_argument("--before", type=Path, metavar="DIR", help="checkout, set up, of the version to compare with")
    parser.add_argument("--out", type=Path, metavar="FILE", help="JSON file for all measurements")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="thalweg-bench-") as folder:
        works = prepared(Path(folder), chosen.quick)
        measured = [measure(work, Path(folder), 1 if chosen.quick else chosen.runs, chosen.before) for work in works]
    print(table(measured))
    if chosen.out:
        chosen.out.write_text(json.dumps([asdict(row) for row in measured], indent=2) + "\n")


def prepared(folder: Path, is_quick: bool) -> list[Work]:
    """Run what the commands need first; return the commands, whose outputs are in `folder`/out."""
    finished, plan, out = folder / "finished", folder / "plan.json", folder / "out"
    buffers = BUFFERS[:2] if is_quick else BUFFERS
    sweep = folder / "sweep.toml"
    sweep.write_text(QUICKSTART.read_text().replace(json.dumps(BUFFERS[:2]), json.dumps(buffers)))
    child.run([*THALWEG, "run", sweep, "--no-report", "--out", finished])
    plan.write_text(cases.resolved(QUICKSTART).model_dump_json())
    interpreter = [sys.executable, "-c", "pass"]
    count = len(cases.resolved(sweep).experiments)
    report = [*THALWEG, "report", finished, "--out", out]
    alone: list[str | Path] = [engine.find(), "run", "--plan", plan, "--out", out]
    return [
        Work("`thalweg --help`", [*THALWEG, "--help"], interpreter, 0.25),
        Work("`thalweg check scenarios/quickstart.toml`", [*THALWEG, "check", QUICKSTART], interpreter, 0.25),
        Work(f"report of {count} experiments", report, interpreter, 1.0),
        Work("quickstart with report", [*THALWEG, "run", QUICKSTART, "--out", out], alone, 1.5, is_goal_over_peer=True),
    ]


def measure(work: Work, folder: Path, runs: int, before: Path | None) -> Measured:
    """Run a command, its peer and the earlier version in turn."""
    print(f"bench: {work.name}", file=sys.stderr)
    commands = {"ours": work.command, "peer": work.peer}
    if before:
        commands["before"] = child.of_checkout(work.command, before)
    taken: dict[str, list[float]] = {"ours": [], "peer": [], "before": []}
    for _ in range(runs):
        for name, command in commands.items():
            taken[name].append(child.run(command).cpu_s)
            remove(folder / "out")
    goal_s = work.goal_s + (median(taken["peer"]) if work.is_goal_over_peer else 0)
    return Measured(work.name, goal_s, taken["ours"], taken["peer"], taken["before"])


def remove(path: Path) -> None:
    """Remove the output of a command, so that the next one does not find it."""
    if path.is_dir():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)


def table(measured: Sequence[Measured]) -> str:
    """Return the medians in CPU seconds, with ranges in brackets, as a Markdown table."""
    has_before = any(row.before_s for row in measured)
    lines = [["Command", "CPU seconds", *(["before"] if has_before else []), "without thalweg's Python", "goal"]]
    lines.append(["---"] * len(lines[0]))
    for row in measured:
        before = [cell(row.before_s)] if has_before else []
        lines.append([row.name, cell(row.ours_s), *before, cell(row.peer_s), f"{row.goal_s:.2f}"])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def cell(seconds: Sequence[float]) -> str:
    """Return the median, and the range of several runs."""
    text = f"{median(seconds):.2f}"
    return text if len(seconds) == 1 else f"{text} [{min(seconds):.2f}, {max(seconds):.2f}]"


if __name__ == "__main__":
    main()
