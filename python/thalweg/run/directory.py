"""The default run directory."""

import hashlib
from pathlib import Path

from thalweg.plan import Plan

RUNS = Path("runs")
"""Folder of run directories, in the current directory."""

DIGITS = 8
"""Hexadecimal digits of the plan's hash in the name: enough to tell one's own runs apart."""


def default_directory(plan: Plan, folder: Path = RUNS, kernel: str = "") -> Path:
    """Name a run directory after its plan, and after the kernel that the user chose, if any.

    The same command resumes it; an edited scenario gets a directory of its own.
    """
    digest = hashlib.sha256(f"{plan.model_dump_json()}{kernel}".encode()).hexdigest()
    return folder / f"{plan.name}-{plan.engine}-{digest[:DIGITS]}"
