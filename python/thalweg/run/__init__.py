"""Runs plans with `thalweg-engine` and follows its events.

outcome = execute(plan, Path("runs/mine"), binary=engine.find())
"""

from thalweg.run.directory import default_directory
from thalweg.run.execute import Outcome, execute, real_time_s
from thalweg.run.progress import Progress, duration
from thalweg.run.session import Connection, Ended, connections_of, hold, new_directory

__all__ = [
    "Connection",
    "Ended",
    "Outcome",
    "Progress",
    "connections_of",
    "default_directory",
    "duration",
    "execute",
    "hold",
    "new_directory",
    "real_time_s",
]
