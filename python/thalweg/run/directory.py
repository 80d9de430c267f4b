"""The default run directory."""

from pathlib import Path

from thalweg.engine import Engine
from thalweg.plan import Plan, folder_of

RUNS = Path("runs")
"""Folder of run directories, in the current directory."""


def default_directory(plan: Plan, engine: Engine, folder: Path = RUNS) -> Path:
    """Return a run directory whose name depends on the plan and the version of the engine's results.

    The same command resumes it; an edited scenario or another version gets a different directory.
    """
    return folder_of(folder, f"{plan.name}-{plan.engine}", engine, plan)
