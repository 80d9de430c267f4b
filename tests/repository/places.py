"""CPUs on which the benches measure the cost of the agent's programs: with one CPU there is one place."""

import os

PLACES = ["on one CPU", *(["between two CPUs"] if len(os.sched_getaffinity(0)) > 1 else [])]
