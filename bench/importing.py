#!/usr/bin/env python3
"""Measures the speed of `thalweg import` in lines per second, and that of goaccess if installed.

    make bench                                 with the others: some minutes
    .venv/bin/python bench/importing.py --quick    a smoke test: 20,000 lines of each format, once
    ... --form nginx --lines 1000000           one format, another length
    ... --before DIR                           alternating with the version in another checkout
    ... --out FILE                             all measurements, for programs

The logs are synthetic, from a seed; about one row in 1000 is malformed (bench/measuring/logs.py). Time and memory are
those of the entire process, including its start. goaccess counts the requests of the same nginx log and writes JSON; it
stores sums, while `thalweg import` stores every request.

The last output before the goal is the table of docs/reference/performance.md, in Markdown.
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

from measuring import child, logs

RUNS = 5
LINES = {"nginx": 200_000, "varnish": 100_000, "csv": 100_000, "ndt": 100_000, "ss": 40_000}
"""Number of lines of each log."""
QUICK_LINES = 20_000
OURS, BEFORE, PEER = "thalweg import", "before", "goaccess"
"""Programs that are measured."""
GOAL = 250_000
"""Required speed for nginx logs, in lines per second on all cores."""
PEER_FORMAT = '%h %^ %^ %^ %^ %^ [%d:%t %^] "%r" %s %b %^ %T %^ %^ %^ "%R" "%u"'
"""The format of logs.NGINX in the notation of goaccess."""


@dataclass(frozen=True)
class Run:
    """One import of one log."""

    form: str
    lines: int
    program: str
    wall_s: float
    cpu_s: float
    peak_bytes: int


@dataclass(frozen=True)
class Log:
    """A log to write and to import."""

    form: str
    lines: int
    seed: int


def main() -> None:
    """Run the requested measurements."""
    parser = argparse.ArgumentParser(description="Measure how many lines per second thalweg import reads.")
    parser.add_argument("--quick", action="store_true", help="quick test: 20,000 lines of each format, once")
    parser.add_argument("--runs", type=int, default=RUNS, help=f"number of imports of each log (default: {RUNS})")
    parser.add_argument("--form", choices=logs.FORMS, action="append", help="format to measure (default: all)")
    parser.add_argument("--lines", type=int, help="number of lines of each log")
    parser.add_argument("--before", type=Path, metavar="DIR", help="checkout of the version to compare with")
    parser.add_argument("--seed", type=int, default=1, help="seed of the logs (default: 1)")
    parser.add_argument("--out", type=Path, metavar="FILE", help="JSON file for all measurements")
    chosen = parser.parse_args()
    goaccess = shutil.which("goaccess")
    if not goaccess:
        print("bench: no comparison: goaccess is missing, install it with `apt-get install goaccess`", file=sys.stderr)
    runs: list[Run] = []
    for form in chosen.form or logs.FORMS:
        lines = chosen.lines or (QUICK_LINES if chosen.quick else LINES[form])
        log = Log(form, lines, chosen.seed)
        measured = measure(log, 1 if chosen.quick else chosen.runs, goaccess, chosen.before)
        for program in dict.fromkeys(run.program for run in measured):
            print(text([run for run in measured if run.program == program]), flush=True)
        runs += measured
    print(f"\n{table(runs)}\n")
    print(f"goal: {GOAL:,} lines of nginx per second, on all cores")
    if chosen.out:
        chosen.out.write_text(json.dumps([asdict(run) for run in runs], indent=2) + "\n")


def measure(log: Log, runs: int, goaccess: str | None, before: Path | None) -> list[Run]:
    """Import a log alternately with this version, the earlier version and the peer."""
    with tempfile.TemporaryDirectory(prefix="thalweg-bench-") as folder:
        file = Path(folder) / f"{log.form}.log"
        written = logs.write(log.form, file, log.lines, log.seed)
        ours: list[str | Path] = [
            sys.executable, "-m", "thalweg", "import", log.form, file, *logs.options(log.form), "--out",
            Path(folder) / "records",
        ]  # fmt: skip
        commands = {OURS: ours}
        if before:
            commands[BEFORE] = child.of_checkout(ours, before)
        if goaccess and log.form == "nginx":
            commands[PEER] = [
                goaccess, file, f"--log-format={PEER_FORMAT}", "--date-format=%d/%b/%Y", "--time-format=%H:%M:%S",
                "--no-progress", "-o", Path(folder) / "peer.json",
            ]  # fmt: skip
        return [
            Run(log.form, written, program, cost.wall_s, cost.cpu_s, cost.peak_bytes)
            for _ in range(runs)
            for program, command in commands.items()
            for cost in [child.run(command)]
        ]


def text(runs: Sequence[Run]) -> str:
    """Describe the runs of one program: median speeds with ranges in brackets, and the peak memory."""
    first = runs[0]
    walls, cpus = sorted(run.lines / run.wall_s for run in runs), sorted(run.lines / run.cpu_s for run in runs)
    peak = max(run.peak_bytes for run in runs)
    return (
        f"{first.form:<8} {first.program:<14} {first.lines:>9,} lines: {median(walls):>9,.0f} lines/s"
        f" [{walls[0]:,.0f}, {walls[-1]:,.0f}], {median(cpus):>9,.0f} per CPU second"
        f" [{cpus[0]:,.0f}, {cpus[-1]:,.0f}], {peak / 2**20:.0f} MiB"
    )


def table(runs: Sequence[Run]) -> str:
    """Return the median lines per CPU second as a Markdown table, including the earlier version if it was measured."""
    has_before = any(run.program == BEFORE for run in runs)
    columns = ["lines per CPU second before", "after", "ratio"] if has_before else ["lines per CPU second"]
    head = ["Format", "lines", *columns]
    rows = [head, ["---"] * len(head)]
    for form in dict.fromkeys(run.form for run in runs):
        after = _speed(runs, form, OURS)
        cells = [form, f"{next(run.lines for run in runs if run.form == form):,}"]
        if has_before:
            before = _speed(runs, form, BEFORE)
            cells += [_thousands(before), _thousands(after), f"{after / before:.1f}"]
        else:
            cells.append(_thousands(after))
        rows.append(cells)
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _speed(runs: Sequence[Run], form: str, program: str) -> float:
    return median(run.lines / run.cpu_s for run in runs if (run.form, run.program) == (form, program))


def _thousands(count: float) -> str:
    return f"{count / 1e3:.1f} k"


if __name__ == "__main__":
    main()
