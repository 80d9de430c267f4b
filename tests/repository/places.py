"""CPU placements with which the benchmarks measure the cost of the agent's programs; with one CPU there is only one."""

import os

PLACES = ["on one CPU", *(["between two CPUs"] if len(os.sched_getaffinity(0)) > 1 else [])]
