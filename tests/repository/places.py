"""Where the benches measure what the agent's programs cost: a machine with one CPU has one place."""

import os

PLACES = ["on one CPU", *(["between two CPUs"] if len(os.sched_getaffinity(0)) > 1 else [])]
