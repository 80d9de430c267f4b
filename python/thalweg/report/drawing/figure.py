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

All kinds may have the columns series (a line or a group of bars; not heatmap), panel (a part of the figure) and engine;
a column that is not there is the same everywhere. x (and y of a heatmap) may be numbers or texts: numbers have their
place on an axis, texts stand in the order in which they appear.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import polars as pl

from thalweg.analysis.tables.series import SampledQuantity
from thalweg.errors import ThalwegError

FigureKind = Literal["lines", "points", "bars", "heatmap", "cdf", "series"]
DrawnKind = Literal[FigureKind, "parallel"]
"""Kinds of pages; studies use the others."""
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
"""Required columns of each kind."""


@dataclass(frozen=True)
class Scaled:
    """An axis, or the colours of a heat map: what it shows, and how."""

    title: str = ""
    unit: AxisUnit = ""
    """Unit of numbers: they are written with a suitable prefix (40e6 bit/s: 40 Mbit/s); empty: unchanged."""
    is_log: bool = False


PREFIXED: Mapping[str, AxisUnit] = {"bit/s": "bit/s", "s": "s", "B": "B"}
"""Units of quantities over time that are written with prefixes; others are in the title."""


def quantity_axis(quantity: SampledQuantity) -> Scaled:
    """Describe the axis of a quantity over time."""
    unit = PREFIXED.get(quantity.unit, "")
    return Scaled(quantity.title if unit or not quantity.unit else f"{quantity.title} ({quantity.unit})", unit)


@dataclass(frozen=True)
class Figure:
    """A figure; see the module for `rows`."""

    id: str
    """A name for files and links: letters, digits, `-` and `_`."""
    title: str
    kind: DrawnKind
    rows: pl.DataFrame
    x: Scaled = Scaled()
    y: Scaled = Scaled()
    value: Scaled = Scaled()
    """Meaning of the colours of a heat map."""
    about: str = ""
    """Explanation: a sentence or two below the figure."""
    paper: str = ""
    """The paper's figure that it reproduces, such as `Figure 2`."""
    middle: float | None = None
    """Value at which the colours of a heat map change from one hue to the other (0 for gains); None: from low to high.
    """
    curves: pl.DataFrame | None = None
    """Theory drawn over lines or points, dashed: name, x (numbers), y, and perhaps panel (null: in every panel)."""

    def __post_init__(self) -> None:
        """Hold the caller to the columns of the kind: a mistake shows here and not in a reader's browser."""
        missing = [name for name in COLUMNS[self.kind] if name not in self.rows.columns]
        if missing:
            raise ThalwegError(
                "figure-columns",
                f"the figure `{self.id}` of kind {self.kind} has no column {', '.join(missing)}",
                place=self.id,
                hint=f"it needs {', '.join(COLUMNS[self.kind])}",
            )
