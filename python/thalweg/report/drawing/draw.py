"""Converts a figure to a drawing: a Vega-Lite template with its rows, panels and line styles, which is instantiated
where it is shown.
"""

import math
from dataclasses import dataclass

import polars as pl

from thalweg.report.drawing.colours import Colour, line_colours
from thalweg.report.drawing.figure import Figure, Scaled
from thalweg.report.drawing.plots import Layers, PlotSide, heatmap, marks, parallel, series, steps
from thalweg.report.page_json import PageJson
from thalweg.report.text.labels import joined
from thalweg.report.text.numbers import Scale, rounded, scale_for

PATTERNS = [[1, 0], [6, 3], [2, 2], [9, 3, 2, 3]]
"""Dashes of lines, which distinguish lines with the same shape of points."""
THEORY = [[5, 3], [2, 2], [9, 3, 2, 3], [1, 3]]
SHAPES = ["circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right", "triangle-left"]
MAX_POINTS = 25
MAX_WHISKERS = 12
"""Maximum number of x values for which intervals of lines are whiskers instead of bands."""
MAX_TICKS = 8
"""Maximum number of values along a logarithmic axis with individual ticks."""
OUTLIER = 2.0
"""The colour scale is clipped if the largest distance from the middle is more than this many times the quantile
`NEARLY_ALL` of the distances.
"""
NEARLY_ALL = 0.95
DARK = 0.6
"""Position on the colour scale above which the number in a cell is white."""


@dataclass(frozen=True)
class DrawnLine:
    """Style and name of a line, or of a group of bars."""

    name: str
    colour: Colour
    dash: list[int]
    shape: str
    is_theory: bool = False


@dataclass(frozen=True)
class Drawing:
    """A figure in the form in which pages and files draw it."""

    kind: str
    spec: PageJson
    rows: list[PageJson]
    panels: list[str]
    lines: list[DrawnLine]
    x_domain: list[str]
    """Categories of the x axis, if its values are texts."""
    y_domain: list[str]
    """Categories of the y axis, if its values are texts."""
    description: str
    note: str = ""


def draw(figure: Figure) -> Drawing:
    """Convert a figure to a drawing."""
    table = _placed(figure.rows)
    if figure.kind == "heatmap":
        return _heatmap(figure, table)
    if figure.kind == "cdf":
        return _steps(figure, table)
    if figure.kind == "series":
        return _series(figure, table)
    if figure.kind == "parallel":
        return _parallel(figure, table)
    return _marks(figure, table)


def packed(drawing: Drawing) -> PageJson:
    """Return a drawing as JSON for the page's script: columns, not rows, and texts as indices of distinct values."""
    names = _unique([name for row in drawing.rows for name in row])
    columns: dict[str, list[object]] = {name: [row.get(name) for row in drawing.rows] for name in names}
    texts = {}
    for name, values in columns.items():
        if any(isinstance(value, str) for value in values):
            distinct = {value: number for number, value in enumerate(dict.fromkeys(v for v in values if v is not None))}
            texts[name] = list(distinct)
            columns[name] = [None if value is None else distinct[value] for value in values]
    return {
        "kind": drawing.kind,
        "spec": drawing.spec,
        "rows": {"columns": columns, "texts": texts},
        "panels": drawing.panels,
        "lines": [
            {
                "name": line.name,
                "colour": [line.colour.light, line.colour.dark],
                "dash": line.dash,
                "shape": line.shape,
                "is_theory": line.is_theory,
            }
            for line in drawing.lines
        ],
        "x_domain": drawing.x_domain,
        "y_domain": drawing.y_domain,
        "description": drawing.description,
    }


def _placed(rows: pl.DataFrame) -> pl.DataFrame:
    """Add the columns `name` (the line) and `place` (the panel, with the engine if there are several); non-finite
    numbers become null.
    """
    engines = rows["engine"].drop_nulls().n_unique() if "engine" in rows.columns else 0
    parts = [pl.col("panel").cast(pl.String)] if "panel" in rows.columns else []
    parts += [pl.col("engine").cast(pl.String)] if engines > 1 else []
    panel = pl.concat_str(parts, separator=" · ", ignore_nulls=True) if parts else pl.lit("")
    name = pl.col("series").cast(pl.String).fill_null("") if "series" in rows.columns else pl.lit("")
    floats = pl.selectors.float()
    finite = rows.with_columns(pl.when(floats.is_finite()).then(floats).name.keep())
    return finite.with_columns(panel.alias("place"), name.alias("name"))


def _marks(figure: Figure, table: pl.DataFrame) -> Drawing:
    table = table.drop_nulls(["x", "y"])
    is_text = figure.kind == "bars" or not table["x"].dtype.is_numeric()
    if not is_text and figure.x.is_log:
        table = table.filter(pl.col("x") > 0)
    if figure.y.is_log:
        table = table.filter(pl.col("y") > 0)
    x = _scale(figure.x, table["x"])
    y = _scale(figure.y, table["y"])
    texts = _ordered(table["x"], x) if is_text else {}
    rows = [
        {
            "x": texts[row["x"]] if is_text else rounded(row["x"] / x.size),
            "y": rounded(row["y"] / y.size),
            "low": rounded(_low(figure, row["low"], row["y"]) / y.size) if row["low"] is not None else None,
            "high": rounded(row["high"] / y.size) if row["high"] is not None else None,
            "series": row["name"],
            "panel": row["place"],
            "engine": row.get("engine"),
            "text": _with_interval(y, row["y"], row["low"], row["high"]),
        }
        for row in table.iter_rows(named=True)
    ]
    names, panels = _texts(table["name"]), _texts(table["place"])
    theory = [] if is_text else _theory(figure, panels, x, y)
    distinct = table["x"].n_unique()
    spec = marks(
        figure.kind,
        PlotSide(_title(figure.x, x), is_text, figure.x.is_log, _ticks(figure.x, [row["x"] for row in rows], is_text)),
        PlotSide(_title(figure.y, y), False, figure.y.is_log, _decades(figure.y, [row["y"] for row in rows])),
        Layers(
            groups=len(rows) > len({(row["x"], row["panel"]) for row in rows}),
            intervals=any(row["low"] is not None for row in rows),
            bands=distinct > MAX_WHISKERS and not is_text,
            points=distinct <= MAX_POINTS,
            theory=bool(theory),
        ),
    )
    lines = _lines(names, _unique([str(row["series"]) for row in theory]))
    return Drawing(
        figure.kind, spec, rows + theory, panels, lines, list(texts.values()), [], _description(figure, lines, panels)
    )


def _low(figure: Figure, low: float, mean: float) -> float:
    """Return the drawn lower end of an interval; half the mean if a logarithmic axis cannot show the end."""
    if figure.y.is_log and low <= 0:
        return mean / 2
    return low


def _theory(figure: Figure, panels: list[str], x: Scale, y: Scale) -> list[PageJson]:
    if figure.curves is None:
        return []
    theory_rows = []
    for row in figure.curves.drop_nulls(["x", "y"]).iter_rows(named=True):
        if (figure.x.is_log and row["x"] <= 0) or (figure.y.is_log and row["y"] <= 0):
            continue
        own_panel = row.get("panel")
        for panel in panels:
            if own_panel is None or panel == own_panel or panel.startswith(f"{own_panel} · "):
                position = {"x": rounded(row["x"] / x.size), "y": rounded(row["y"] / y.size)}
                theory_rows.append(position | {"series": row["name"], "panel": panel, "kind": "theory"})
    return theory_rows


def _heatmap(figure: Figure, table: pl.DataFrame) -> Drawing:
    table = table.drop_nulls(["x", "y", "value"])
    x, y, value = (
        _scale(side, table[name]) for name, side in (("x", figure.x), ("y", figure.y), ("value", figure.value))
    )
    x_texts, y_texts = _ordered(table["x"], x), _ordered(table["y"], y)
    low, high, note = _ends(figure, table["value"], value)
    middle = None if figure.middle is None else figure.middle / value.size
    rows = []
    for row in table.iter_rows(named=True):
        scaled = row["value"] / value.size
        rows.append(
            {
                "x": x_texts[row["x"]],
                "y": y_texts[row["y"]],
                "value": rounded(scaled),
                "number": f"{scaled:.2g}" if abs(scaled) < 10 else f"{scaled:.0f}",
                "is_dark": _part(scaled, low, high, middle, figure.value.is_log) > DARK,
                "panel": row["place"],
                "engine": row.get("engine"),
                "choice": row.get("choice"),
                "text": _with_interval(value, row["value"], row["low"], row["high"]),
            }
        )
    sides = PlotSide(_title(figure.x, x), True), PlotSide(_title(figure.y, y), True)
    spec = heatmap(*sides, PlotSide(_title(figure.value, value), is_log=figure.value.is_log), (low, high), middle)
    panels = _texts(table["place"])
    # The largest y value is at the top, as on any other axis.
    upwards = list(reversed(y_texts.values()))
    return Drawing(
        figure.kind, spec, rows, panels, [], list(x_texts.values()), upwards, _description(figure, [], panels), note
    )


def _ends(figure: Figure, values: pl.Series, scale: Scale) -> tuple[float, float, str]:
    """Return the ends of the colour scale, in the displayed unit, and a note if extreme cells are clipped."""
    if values.is_empty():
        return 0.0, 1.0, ""
    low, high = float(values.min()) / scale.size, float(values.max()) / scale.size  # type: ignore[arg-type]
    if figure.middle is None:
        if figure.value.is_log:
            low = max(low, high / 1e6, 1e-9)
        return low, high if high > low else low + 1, ""
    middle = figure.middle / scale.size
    distances = (values / scale.size - middle).abs()
    farthest = float(distances.max()) or 1.0  # type: ignore[arg-type]
    usual = float(distances.quantile(NEARLY_ALL, "lower") or 0.0)
    if usual and farthest > OUTLIER * usual:
        unit = f" {scale.unit}" if scale.unit else ""
        return (
            middle - usual,
            middle + usual,
            f"The colour scale ends at {usual:.3g}{unit} from its middle; the numbers do not.",
        )
    return middle - farthest, middle + farthest, ""


def _part(value: float, low: float, high: float, middle: float | None, is_log: bool) -> float:
    """Return the position of a value on the colour scale, from 0 (light) to 1 (dark)."""
    if middle is not None:
        return abs(value - middle) / (high - middle)
    if is_log:
        return math.log(max(value, low) / low) / math.log(high / low)
    return (value - low) / (high - low)


def _steps(figure: Figure, table: pl.DataFrame) -> Drawing:
    table = table.drop_nulls(["value", "share"])
    if figure.x.is_log:
        table = table.filter(pl.col("value") > 0)
    x = _scale(figure.x, table["value"])
    rows = [
        {
            "x": rounded(row["value"] / x.size),
            "y": rounded(row["share"]),
            "series": row["name"],
            "panel": row["place"],
            "engine": row.get("engine"),
        }
        for row in table.iter_rows(named=True)
    ]
    lines, panels = _lines(_texts(table["name"])), _texts(table["place"])
    spec = steps(PlotSide(_title(figure.x, x), False, figure.x.is_log, _decades(figure.x, [row["x"] for row in rows])))
    return Drawing(figure.kind, spec, rows, panels, lines, [], [], _description(figure, lines, panels))


def _series(figure: Figure, table: pl.DataFrame) -> Drawing:
    flow = pl.col("flow").cast(pl.String)
    both = pl.when(pl.col("name") == "").then(flow).otherwise(flow + ", " + pl.col("name"))
    table = table.drop_nulls(["t_s", "value"]).with_columns(both.alias("name"))
    y = _scale(figure.y, table["value"])
    rows = [
        {
            "x": rounded(row["t_s"]),
            "y": rounded(row["value"] / y.size),
            "series": row["name"],
            "line": f"{row['name']} {row.get('line', '')}",
            "panel": row["place"],
            "engine": row.get("engine"),
        }
        for row in table.iter_rows(named=True)
    ]
    lines, panels = _lines(_texts(table["name"])), _texts(table["place"])
    spec = series(PlotSide("time (s)"), PlotSide(_title(figure.y, y)))
    return Drawing(figure.kind, spec, rows, panels, lines, [], [], _description(figure, lines, panels))


def _parallel(figure: Figure, table: pl.DataFrame) -> Drawing:
    ends = [{"x": row["x"], "y": row["y"], "end": row["end"], "panel": ""}
            for row in table.drop_nulls("end").iter_rows(named=True)]  # fmt: skip
    crossings = table.filter(pl.col("end").is_null()).drop_nulls("y")
    rows = [
        {
            "x": row["x"],
            "y": rounded(row["y"]),
            "series": row["name"],
            "line": row["line"],
            "text": row["text"],
            "panel": "",
        }
        for row in crossings.iter_rows(named=True)
    ]
    lines = _lines(_texts(crossings["name"]))
    return Drawing(
        figure.kind, parallel(), rows + ends, [""], lines, _texts(table["x"]), [], _description(figure, lines, [])
    )


def _scale(side: Scaled, values: pl.Series) -> Scale:
    if not side.unit or not values.dtype.is_numeric():
        return Scale("", 1.0, 3)
    return scale_for(side.unit, values.drop_nulls().to_list())


def _title(side: Scaled, scale: Scale) -> str:
    return f"{side.title} ({scale.unit})" if scale.unit else side.title


def _ticks(side: Scaled, values: list[float], is_text: bool) -> list[float] | None:
    """Return ticks of a logarithmic axis at the values of the sweep, if these are few; otherwise as `_decades`."""
    if is_text:
        return None
    distinct = sorted(set(values))
    return distinct if side.is_log and len(distinct) <= MAX_TICKS else _decades(side, values)


def _decades(side: Scaled, values: list[float]) -> list[float] | None:
    """Return ticks of a logarithmic axis at powers of ten; on short axes also at two and five times them."""
    if not side.is_log or not values:
        return None
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    factors = (1, 2, 5) if high - low <= 2 else (1,)
    every = max(1, math.ceil((high - low) / MAX_TICKS))
    return [float(f"{factor}e{power}") for power in range(low, high + 1, every) for factor in factors]


def _ordered(values: pl.Series, scale: Scale) -> dict[float | str, str]:
    """Return the values of a side as texts: numbers ascending, texts in order of appearance or of their type (Enum)."""
    distinct = values.unique(maintain_order=True).to_list()
    if isinstance(values.dtype, pl.Enum):
        return {value: value for value in values.dtype.categories if value in distinct}
    if not values.dtype.is_numeric():
        return {value: str(value) for value in distinct}
    return {value: f"{value / scale.size:.6g}" for value in sorted(distinct)}


def _with_interval(scale: Scale, value: float, low: float | None, high: float | None) -> str:
    def text(number: float) -> str:
        return f"{number / scale.size:.4g}"

    unit = f" {scale.unit}" if scale.unit else ""
    if low is None or high is None:
        return text(value) + unit
    return f"{text(value)}{unit} ({text(low)} to {text(high)})"


def _texts(values: pl.Series) -> list[str]:
    return [str(value) for value in values.unique(maintain_order=True).to_list()]


def _unique(names: list[str]) -> list[str]:
    return list(dict.fromkeys(names))


def _lines(names: list[str], theory: list[str] | None = None) -> list[DrawnLine]:
    hues = line_colours(names)
    lines = [
        DrawnLine(name, hues[name], PATTERNS[number // len(SHAPES) % len(PATTERNS)], SHAPES[number % len(SHAPES)])
        for number, name in enumerate(names)
    ]
    ink = Colour("#1a222c", "#e3e8ee")
    return lines + [
        DrawnLine(name, ink, THEORY[number % len(THEORY)], "circle", True) for number, name in enumerate(theory or [])
    ]


def _description(figure: Figure, lines: list[DrawnLine], panels: list[str]) -> str:
    line_names = [line.name for line in lines if line.name]
    lines_text = f", with {joined(line_names)}" if 0 < len(line_names) <= 8 else ""
    parts = f" In {len(panels)} panels." if len(panels) > 1 else ""
    return f"{figure.title}: {figure.kind}{lines_text}.{parts}"
