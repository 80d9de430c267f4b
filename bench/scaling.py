#!/usr/bin/env python3
"""Measures how costs grow with size: per packet over the number of flows, per row over the number of records, and per
experiment over the size of a run.

    make bench                                   with the others: most of an hour
    .venv/bin/python bench/scaling.py --quick    a smoke test: the smallest two sizes of each curve, once
    ... --runs N --largest rows=10000000         repetitions of each size; a smaller range of a curve
    ... --page FILE                              the Markdown page; its figures are in a folder beside it
    ... --out FILE                               all measurements, for programs

Costs are CPU seconds of entire processes, including their start, divided by the number of packets, rows or experiments;
memory is the largest resident set. Sizes alternate, and medians are shown. If a cost grows by more than a factor of two
over its range, the page states the reason if it is known.
"""

import argparse
import json
import shlex
from pathlib import Path

from measuring import growth, growth_page

RUNS = 3


def main() -> None:
    """Run the requested measurements."""
    parser = argparse.ArgumentParser(description="Measure how costs grow with flows, records and experiments.")
    parser.add_argument("--quick", action="store_true", help="quick test: the two smallest sizes of each curve, once")
    parser.add_argument("--runs", type=int, default=RUNS, help=f"number of measurements of each size (default: {RUNS})")
    parser.add_argument("--largest", action="append", default=[], metavar="CURVE=SIZE", help="largest size of a curve")
    parser.add_argument("--curve", action="append", choices=list(growth.CURVES), help="curve to measure (default: all)")
    parser.add_argument("--page", type=Path, default=Path("runs/scaling.md"), metavar="FILE", help="Markdown page")
    parser.add_argument("--out", type=Path, metavar="FILE", help="JSON file for all measurements")
    chosen = parser.parse_args()
    largest = {name: int(size) for name, _, size in (measured.partition("=") for measured in chosen.largest)}
    measurements: list[growth.Measured] = []
    for name in chosen.curve or growth.CURVES:
        sizes = growth.CURVES[name].sizes
        sizes = sizes[:2] if chosen.quick else [size for size in sizes if size <= largest.get(name, size)]
        measurements += growth.measure(name, sizes, 1 if chosen.quick else chosen.runs)
    for line in growth_page.lines(measurements):
        print(line)
    growth_page.write(measurements, chosen.page, _command(chosen))
    print(f"page: {chosen.page}")
    if chosen.out:
        chosen.out.write_text(json.dumps([measured.as_json() for measured in measurements], indent=2) + "\n")


def _command(chosen: argparse.Namespace) -> str:
    """Return the command that reproduces the measurement."""
    words = ["bench/scaling.py", "--quick"] if chosen.quick else ["bench/scaling.py", "--runs", str(chosen.runs)]
    for option in ("largest", "curve"):
        words += [word for value in getattr(chosen, option) or () for word in (f"--{option}", value)]
    return shlex.join([*words, "--page", str(chosen.page)])


if __name__ == "__main__":
    main()
