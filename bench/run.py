#!/usr/bin/env python3
"""Measures the speed of the simulator, and of ns-3 if installed.

    make bench                            with the others: some minutes
    .venv/bin/python bench/run.py --quick a smoke test: half a second of two cases
    ... --out FILE                       all measurements, for programs

Packets are those that the bottleneck sends, data and ACKs; CPU seconds are those of the entire process, including
writing tables with 100 samples per second. Both simulators alternate, so that other load of the machine affects both.
ns-3 writes no samples and simulates less time, because it is much slower.
"""

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path

from measuring import cases, ours, peer, table
from measuring.table import Row, Side

RUNS = 5
"""Number of runs of a case."""
PER_CORE = 4
"""Experiments per core in the case with all cores: enough that the last ones to finish matter little."""
LENGTHS_S = (60.0, 600.0)
"""Simulated durations whose memory is compared."""


def main() -> None:
    """Run the requested measurements."""
    parser = argparse.ArgumentParser(description="Measure the speed of the simulator compared with ns-3.")
    parser.add_argument("--quick", action="store_true", help="quick test: half a second of two cases, once")
    parser.add_argument("--runs", type=int, default=RUNS, help=f"number of runs of each case (default: {RUNS})")
    parser.add_argument("--out", type=Path, metavar="FILE", help="JSON file for all measurements")
    chosen = parser.parse_args()
    runs = 1 if chosen.quick else chosen.runs
    missing = peer.why_not()
    if missing:
        print(f"bench: no comparison: {missing}", file=sys.stderr)
    with tempfile.TemporaryDirectory(prefix="thalweg-bench-") as folder:
        program = None if missing else peer.compile_into(Path(folder))
        rows = [measure(case, program, runs, chosen.quick) for case in cases.CASES if is_due(case, chosen.quick)]
    print(table.text(rows), flush=True)
    length = cases.QUICK_SECONDS if chosen.quick else None
    one, all_cores = cores(length)
    count = os.cpu_count() or 1
    gain = (all_cores.packets / all_cores.wall_s) / (one.packets / one.wall_s)
    print(f"\n{count} cores instead of one: {gain:.2f} times the packets per second", flush=True)
    memory = [(seconds, unsampled(seconds)) for seconds in ((1.0, 2.0) if chosen.quick else LENGTHS_S)]
    memory_text = ", ".join(f"{side.peak_bytes / 2**20:.1f} MiB for {seconds:.0f} s" for seconds, side in memory)
    print(f"one CUBIC flow without samples: {memory_text}")
    if chosen.out:
        document = {
            "cases": [row.as_json() for row in rows],
            "peer_missing": missing,
            "cores": {"count": count, "gain": gain},
            "memory": [{"simulated_s": seconds, "peak_bytes": side.peak_bytes} for seconds, side in memory],
        }
        chosen.out.write_text(json.dumps(document, indent=2) + "\n")


def is_due(case: cases.Case, is_quick: bool) -> bool:
    """Return whether the case is to be measured."""
    return not is_quick or case.name in cases.QUICK


def measure(case: cases.Case, program: Path | None, runs: int, is_quick: bool) -> Row:
    """Run a case on both simulators, alternating."""
    print(f"bench: {case.name}", file=sys.stderr)
    plan = cases.plan_of(case.name, cases.QUICK_SECONDS if is_quick else None)
    peer_seconds = cases.QUICK_SECONDS if is_quick else case.peer_seconds
    our_runs: list[Side] = []
    peer_runs: list[Side] = []
    for _ in range(runs):
        our_runs.append(ours.run(plan, threads=1))
        if program is not None:
            peer_runs.append(peer.run(program, plan.experiments[0], peer_seconds))
    return Row(case.name, case.target, our_runs, peer_runs)


def cores(seconds: float | None) -> tuple[Side, Side]:
    """Run the same experiments on one core and on all cores."""
    count = os.cpu_count() or 1
    plan = cases.plan_of("one-cubic", seconds, repetitions=PER_CORE * count)
    return ours.run(plan, threads=1), ours.run(plan, threads=count)


def unsampled(seconds: float) -> Side:
    """Simulate an experiment without samples, so that any growth of memory is due to simulated time."""
    return ours.run(cases.plan_of("one-cubic", seconds, is_sampled=False), threads=1)


if __name__ == "__main__":
    main()
