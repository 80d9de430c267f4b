"""Plans: a scenario's experiments, resolved for one engine.

document = scenario.load("itc.toml")
plan = make(document, engine, capabilities.engines)
"""

from thalweg.plan.copies import warning as copies_warning
from thalweg.plan.experiments import make
from thalweg.plan.folders import folder_of
from thalweg.plan.honours import check as unsupported
from thalweg.plan.honours import wrong_algorithms
from thalweg.plan.models import Experiment, Plan
from thalweg.plan.possible import Possible, possible

__all__ = [
    "Experiment",
    "Plan",
    "Possible",
    "copies_warning",
    "folder_of",
    "make",
    "possible",
    "unsupported",
    "wrong_algorithms",
]
