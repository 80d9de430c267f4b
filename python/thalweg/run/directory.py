"""The default run directory."""

from pathlib import Path

from thalweg.plan import Plan, digest

RUNS = Path("runs")
"""Folder of run directories, in the current directory."""


def default_directory(plan: Plan, folder: Path = RUNS, kernel: str = "") -> Path:
    """Name a run directory after its plan, and after the kernel that the user chose, if any.

    The same command resumes it; an edited scenario gets a directory of its own.
    """
    return folder / f"{plan.name}-{plan.engine}-{digest(f'{plan.model_dump_json()}{kernel}')}"
