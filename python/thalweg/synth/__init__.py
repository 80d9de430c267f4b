"""Records of a CDN that does not exist, with the truth beside them.

    settings = Settings(rows=1_000_000, seed=1, truth="paradox")
    write(make(settings), Path("made-up"))

    pools = simulate(Path("made-up-runs"), quick=True)  # a truth that nobody chose takes the simulator
    write(make(Settings(), pools), Path("made-up"))

What is made, and what for, is told in docs/reference/synth.md.
"""

from thalweg.synth.classes import CLASSES, CONTROL, TREATMENT, PathClass
from thalweg.synth.fleet import PREFIXES, RECORDS, TRUTH, Written, check_free, write
from thalweg.synth.planted import PLANTED
from thalweg.synth.settings import DESIGNS, SIMULATED, TRUTHS, Settings, check
from thalweg.synth.simulate import simulate
from thalweg.synth.truths import truth
from thalweg.synth.world import World, make

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
    "PathClass",
    "Settings",
    "World",
    "Written",
    "check",
    "check_free",
    "make",
    "simulate",
    "truth",
    "write",
]
