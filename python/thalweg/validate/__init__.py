"""Compares two engines on the same grid of scenarios, cell by cell.

    grid = load_grid([], quick=True)
    parts = [GridPart.plan(document, engines, capabilities.engines) for document in grid.documents]
    ... each side of each part is run with `thalweg.run.execute` ...
    comparison = EngineComparison.of(grid, parts)
    comparison.goals, comparison.disagreements

The second engine is the reference; errors are those of the first engine. docs/reference/validation.md defines them.
"""

from thalweg.validate.compare import ComparedMeasure, GridCell, compare
from thalweg.validate.comparison import EngineComparison
from thalweg.validate.errors import ERRORS, Error, Overall, overall
from thalweg.validate.goals import GOALS, Disagreement, JudgedGoal, disagreements, judge
from thalweg.validate.grid import Grid, load_grid, ready_made
from thalweg.validate.page import page, rows_csv
from thalweg.validate.part import EngineSide, GridPart

__all__ = [
    "ERRORS",
    "GOALS",
    "ComparedMeasure",
    "Disagreement",
    "EngineComparison",
    "EngineSide",
    "Error",
    "Grid",
    "GridCell",
    "GridPart",
    "JudgedGoal",
    "Overall",
    "compare",
    "disagreements",
    "judge",
    "load_grid",
    "overall",
    "page",
    "ready_made",
    "rows_csv",
]
