#!/usr/bin/env python3
"""Measures time and memory of `thalweg advise` for a hundred million rows that are not in the page cache.

    make bench                                    with the others: many minutes
    .venv/bin/python bench/advising.py --quick    a smoke test: 200,000 rows
    ... --records DIR                             existing records instead of synthetic ones
    ... --before DIR                              alternating with the version in another checkout
    ... --out FILE                                all measurements, for programs

The records are those of `thalweg synth cdn`. The page cache is dropped before each run, which needs root; otherwise the
output states that the runs were warm. Memory is the largest resident set of the process.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from measuring import child

ROWS = 100_000_000
QUICK_ROWS = 200_000
RUNS = 3
GOAL_S, GOAL_BYTES = 30, 4 * 2**30
"""Limits for `ROWS` rows on two cores."""
CACHES = Path("/proc/sys/vm/drop_caches")
THALWEG = [sys.executable, "-m", "thalweg"]


@dataclass(frozen=True)
class Run:
    """One run of `thalweg advise`."""

    by: str
    is_before: bool
    """Whether it is the version to compare with."""
    seconds: float
    peak_bytes: int
    is_cold: bool
    rows: int
    samples: int
    parts: int


def main() -> None:
    """Run the requested measurements."""
    parser = argparse.ArgumentParser(description="Measure the time and the memory that thalweg advise needs.")
    parser.add_argument("--quick", action="store_true", help="quick test: 200,000 rows, once")
    parser.add_argument("--rows", type=int, help="number of rows of the synthetic records")
    parser.add_argument("--records", type=Path, metavar="DIR", help="existing records to use")
    parser.add_argument("--before", type=Path, metavar="DIR", help="checkout of the version to compare with")
    parser.add_argument("--out", type=Path, metavar="FILE", help="JSON file for all measurements")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="thalweg-bench-") as folder:
        records = chosen.records
        if records is None:
            rows = chosen.rows or (QUICK_ROWS if chosen.quick else ROWS)
            command = [*THALWEG, "synth", "cdn", "--rows", str(rows), "--truth", "correlated", "--out", folder]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            records = Path(folder) / "records"
        runs = [
            judged(records, by, before)
            for by in ("rtt,retransmits", "pop,cgroup")
            for _ in range(1 if chosen.quick else RUNS)
            for before in ((None, chosen.before) if chosen.before else (None,))
        ]
    for run in runs:
        cold = "cold" if run.is_cold else "warm"
        version = ", before" if run.is_before else ""
        print(
            f"{run.rows:,} rows by {run.by}, {cold}{version}: {run.seconds:.1f} s, {run.peak_bytes / 2**30:.2f} GiB,"
            f" {run.samples:,} samples, {run.parts} parts",
            flush=True,
        )
    print(f"goal: {ROWS:,} rows on two cores in {GOAL_S} s, within {GOAL_BYTES / 2**30:g} GiB")
    if chosen.out:
        chosen.out.write_text(json.dumps([asdict(run) for run in runs], indent=2) + "\n")


def judged(records: Path, by: str, before: Path | None) -> Run:
    """Run `thalweg advise` once, of this checkout or another one, in a separate process."""
    is_cold = emptied()
    start = time.monotonic()
    command: list[str | Path] = [*THALWEG, "advise", records, "--by", by, "--json"]
    if before:
        command = child.of_checkout(command, before)
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout, "it is a pipe"
    output = process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    seconds = time.monotonic() - start
    if status:
        sys.exit(f"bench: thalweg advise ended with code {os.waitstatus_to_exitcode(status)}: {output.decode()[:500]}")
    peak = used.ru_maxrss * 1024
    document = json.loads(output)
    return Run(
        by, before is not None, seconds, peak, is_cold, document["rows"], document["samples"], len(document["parts"])
    )


def emptied() -> bool:
    """Drop the page cache, if permitted; return whether it was dropped."""
    os.sync()
    try:
        CACHES.write_text("3")
    except OSError:
        return False
    return True


if __name__ == "__main__":
    main()
