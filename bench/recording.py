#!/usr/bin/env python3
"""Measures the cost of `thalweg-agent record` with thousands of short connections per second, and with many open ones.

    make bench                                         with the others: a quarter of an hour, as root
    .venv/bin/python bench/recording.py --quick        a smoke test
    ... --only slowdown                                a quarter of an hour: the slowdown of connections
    ... --only kernel                                  a minute: the cost of the program in the kernel
    ... --only memory                                  a minute: 100,000 open connections
    ... --out FILE                                    all measurements, for programs

Connections run between two network namespaces over veth: a request of 200 bytes, an answer of 4 kB, then the server
closes. Only the server's end is recorded, because the client represents a different machine. The servers are nginx with
and without TLS, if it is installed or `tools/bootstrap nginx` has fetched it, and a bare server that only answers.
recorder/slowdown.py, price.py and memory.py describe the methods.
"""

import argparse
import json
import os
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from recorder import memory, price, slowdown
from recorder.machine import AGENT, Machine, nginx

OPEN = 100_000
"""Number of open connections."""
PARTS = ("slowdown", "kernel", "memory")


def main() -> None:
    """Run the requested measurements."""
    parser = argparse.ArgumentParser(description="Measure the cost of `thalweg-agent record` on a server.")
    parser.add_argument("--quick", action="store_true", help="quick test: up to two seconds of each")
    parser.add_argument("--only", choices=PARTS, help="measure only this part")
    parser.add_argument(
        "--windows",
        type=int,
        default=slowdown.WINDOWS,
        help="number of windows for the slowdown (default: %(default)s)",
    )
    parser.add_argument(
        "--open", type=int, default=OPEN, help="number of open connections for the memory (default: %(default)s)"
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="JSON file for all measurements")
    chosen = parser.parse_args()
    why_not = None if os.geteuid() == 0 else "only root may record"
    why_not = why_not or (None if AGENT.exists() else "thalweg-agent is missing: make agent")
    if why_not:
        print(f"bench: recording is left out: {why_not}", file=sys.stderr)
        return
    parts = [chosen.only] if chosen.only else PARTS
    results: dict[str, Any] = {}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="thalweg-bench-")))
        machine = Machine(folder, stack)
        print("recording:")
        if "slowdown" in parts:
            windows, window_s = (2, 0.4) if chosen.quick else (chosen.windows, slowdown.WINDOW_S)
            if not nginx():
                print("bench: nginx is left out: not installed; to fetch it: tools/bootstrap nginx", file=sys.stderr)
            for load in slowdown.LOADS:
                if (load.kind != "bare" and not nginx()) or not load.cpus():
                    continue
                slowdowns = slowdown.measure(machine, load, windows, window_s)
                results[load.name] = slowdown.report(slowdowns, load, window_s)
        if "kernel" in parts:
            windows, window_s = (1, 0.4) if chosen.quick else (price.WINDOWS, price.WINDOW_S)
            for place in price.places():
                print(f"  connections {place.name}:")
                results[f"cost {place.name}"] = price.measure(machine, place, windows, window_s).report()
        if "memory" in parts:
            count, interim_s = (200, 1) if chosen.quick else (chosen.open, memory.INTERIM_S)
            results["memory"] = memory.report(memory.measure(machine, count, interim_s))
    if chosen.out:
        chosen.out.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
