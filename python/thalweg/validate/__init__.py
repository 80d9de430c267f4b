"""Two engines on the same grid of scenarios, compared cell by cell.

    grid = load_grid([], quick=True)
    parts = [Part(document, engines, known.engines) for document in grid]
    ... each side of each part is run with `thalweg.run.execute` ...
    cells = [cell for part in parts for cell in compare(part)]
    overall(cells)

The second engine is the reference: errors are those of the first. docs/reference/validation.md defines them.
"""

from thalweg.validate.compare import Cell, Compared, compare
from thalweg.validate.errors import ERRORS, Error, Overall, overall
from thalweg.validate.grid import Grid, load_grid, ready_made
from thalweg.validate.part import Part, Side

__all__ = [
    "ERRORS",
    "Cell",
    "Compared",
    "Error",
    "Grid",
    "Overall",
    "Part",
    "Side",
    "compare",
    "load_grid",
    "overall",
    "ready_made",
]
