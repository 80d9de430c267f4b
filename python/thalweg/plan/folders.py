"""Names of run directories, which depend on the plan and the engine."""

import hashlib
from pathlib import Path

from thalweg.engine import Engine
from thalweg.plan.models import Plan

DIGITS = 8
"""Hexadecimal digits of the plan's hash in a directory's name."""


def folder_of(parent: Path, name: str, engine: Engine, planned: Plan) -> Path:
    """Return the run directory of a plan; an edited scenario, or another version of the engine, gets a
    different one.
    """
    key = hashlib.sha256(f"{engine.version}\n{planned.model_dump_json()}".encode()).hexdigest()
    return parent / f"{name}-{key[:DIGITS]}"
