"""A figure as data: the content of a chart, before drawing.

`rows` contains the numbers in the units of the analysis (bit/s, s, B, ratio, count); drawing chooses prefixes and
digits. Their columns depend on the kind:

| Kind | Columns | |
| --- | --- | --- |
| lines, points, bars | x, y, low, high | a mean and its interval (both empty: none) |
| heatmap | x, y, value, low, high | a cell per pair of x and y |
| cdf | value, share | the share (0 to 1) of the values that are at most `value` |
| series | t_s, value, flow | a curve over time per flow; per connection with a column `line` that distinguishes them |
| parallel | x, y, line, text, end | lines over the axes x, crossed at y (0 to 1); rows with an `end` are labels |

All kinds except heatmap may have the column series (a line or a group of bars), and all except parallel panel (a part
of the figure) and engine; a heatmap also choice (the value of a selection list for which a cell is shown). A missing
column has one value everywhere. x (and y of a heatmap) may be numbers or texts: numbers are in ascending order, texts
in order of appearance or of their type (Enum).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import polars as pl

from thalweg.analysis.tables.series import SampledQuantity
from thalweg.errors import ThalwegError

FigureKind = Literal["lines", "points", "bars", "heatmap", "cdf", "series"]
DrawnKind = Literal[FigureKind, "parallel"]
"""Kinds of figures on pages; studies use all except `parallel`."""
AxisUnit = Literal["", "bit/s", "s", "B", "ratio", "count", "1/s"]

COLUMNS: dict[DrawnKind, tuple[str, ...]] = {
    "lines": ("x", "y", "low", "high"),
    "points": ("x", "y", "low", "high"),
    "bars": ("x", "y", "low", "high"),
    "heatmap": ("x", "y", "value", "low", "high"),
    "cdf": ("value", "share"),
    "series": ("t_s", "value", "flow"),
    "parallel": ("x", "y", "line", "text", "end"),
}


@dataclass(frozen=True)
class Scaled:
    """An axis, or the colour scale of a heat map."""

    title: str = ""
    unit: AxisUnit = ""
    """Unit of numbers, which are shown with a prefix (40e6 bit/s: 40 Mbit/s); empty: unchanged."""
    is_log: bool = False


PREFIXED: Mapping[str, AxisUnit] = {"bit/s": "bit/s", "s": "s", "B": "B"}
"""Units of quantities over time that are shown with prefixes; other units are in the title."""


def quantity_axis(quantity: SampledQuantity) -> Scaled:
    """Return the axis of a quantity over time."""
    unit = PREFIXED.get(quantity.unit, "")
    return Scaled(quantity.title if unit or not quantity.unit else f"{quantity.title} ({quantity.unit})", unit)


@dataclass(frozen=True)
class Figure:
    """A figure; the module describes `rows`."""

    id: str
    """Identifier for files and links: letters, digits, `-`, `_` and `.`."""
    title: str
    kind: DrawnKind
    rows: pl.DataFrame
    x: Scaled = Scaled()
    y: Scaled = Scaled()
    value: Scaled = Scaled()
    """Meaning of the colours of a heat map."""
    about: str = ""
    """Explanation below the figure, in one or two sentences."""
    paper: str = ""
    """The paper's figure that this one reproduces, such as `Figure 2`."""
    middle: float | None = None
    """Value at which the colours of a heat map change hue (0 for gains); None: colours from light to dark."""
    curves: pl.DataFrame | None = None
    """Reference curves over lines or points: name, x (numbers), y, and optionally panel (null: every panel)."""

    def __post_init__(self) -> None:
        """Check the columns of the kind, so that a mistake is detected here and not in a browser.

        Raises:
            ThalwegError: If one is missing.
        """
        missing = [name for name in COLUMNS[self.kind] if name not in self.rows.columns]
        if missing:
            raise ThalwegError(
                "figure-columns",
                f"the figure `{self.id}` of kind {self.kind} has no column {', '.join(missing)}",
                place=self.id,
                hint=f"it needs {', '.join(COLUMNS[self.kind])}",
            )
