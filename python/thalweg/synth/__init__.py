"""Synthetic records of a CDN, with known differences between the algorithms.

    settings = Settings(rows=1_000_000, seed=1, truth="paradox")
    write(make(settings), Path("synthetic"))
    pools = simulate(Path("synthetic-runs"), quick=True)  # a truth that is not planted needs the simulator
    write(make(Settings(), pools), Path("simulated"))
docs/reference/synth.md describes the records and their purpose.
"""

from thalweg.synth.classes import CLASSES, CONTROL, TREATMENT, PathClass
from thalweg.synth.fleet import PREFIXES, RECORDS, TRUTH, Written, check_free, write
from thalweg.synth.planted import PLANTED
from thalweg.synth.settings import DESIGNS, SIMULATED, TRUTHS, Settings, check
from thalweg.synth.simulate import simulate
from thalweg.synth.truths import truth
from thalweg.synth.world import Fleet, make

__all__ = [
    "CLASSES",
    "CONTROL",
    "DESIGNS",
    "PLANTED",
    "PREFIXES",
    "RECORDS",
    "SIMULATED",
    "TREATMENT",
    "TRUTH",
    "TRUTHS",
    "Fleet",
    "PathClass",
    "Settings",
    "Written",
    "check",
    "check_free",
    "make",
    "simulate",
    "truth",
    "write",
]
