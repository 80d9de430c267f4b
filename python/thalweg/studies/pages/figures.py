"""Converts figures of claims.toml to figures of the report."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from thalweg.analysis import CONFIDENCE
from thalweg.checks import expressions
from thalweg.report.drawing.figure import PREFIXED, AxisUnit, Figure, Scaled
from thalweg.report.text.labels import joined, key_title, value_text
from thalweg.studies.claims.advice_measures import unit_and_title
from thalweg.studies.claims.keys import DERIVED, number, unit
from thalweg.studies.claims.load import Study
from thalweg.studies.claims.models import Curve, Quantity
from thalweg.studies.claims.models import PaperFigure as Wanted
from thalweg.studies.judging.data import NotRun, PartData
from thalweg.studies.judging.estimates import SeveralPartners
from thalweg.studies.judging.grouping import numbers as numbered
from thalweg.studies.judging.grouping import point_text
from thalweg.studies.judging.judge import quantities
from thalweg.studies.pages.shares import pooled, with_shares
from thalweg.studies.pages.timelines import scaled, timelines
from thalweg.studies.running.reproduce import Reproduced

NUMBERS = ("lines", "points")
"""Kinds of figures with a numeric x axis if the key is numeric; other kinds have one position per value."""

TITLES = {
    "rate_bps": "Rate of the bottleneck",
    "rtt_s": "Round-trip time of the path",
    "bdp_bytes": "Bandwidth-delay product",
    "buffer_bytes": "Buffer",
    "buffer_bdp": "Buffer (BDP)",
    "loss": "Random loss",
    "rcvbuf_bytes": "Receive buffer",
    "flows": "Flows",
    "bbr_fraction": "Share of the flows that run BBR",
    "cpu_share": "Share of the CPU",
    "cpu_slice_s": "Time on CPU",
    "cpu_period_s": "Period of the slices",
}


@dataclass
class DrawnFigures:
    """Figures, and reasons for missing ones."""

    figures: list[Figure] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    """Sentences about figures for which an engine has no data, with the reason."""


def draw(study: Study, reproduced: Sequence[Reproduced]) -> DrawnFigures:
    """Return the figures of a study from the engines' measurements."""
    figures = DrawnFigures()
    missing: dict[tuple[str, str], list[str]] = {}
    times = Counter(planned.paper for planned in study.claims.figures)
    for planned in study.claims.figures:
        frames, curves = [], []
        for result in reproduced:
            data = result.parts.get(planned.part)
            try:
                if data is None:
                    raise NotRun("it was not run")
                rows = _rows(planned, result.parts, data)
                frames.append(rows.with_columns(pl.lit(result.engine.name).alias("engine")))
                curves.append(_curves(planned, data))
            except (NotRun, SeveralPartners) as error:
                name = planned.paper if planned.paper and times[planned.paper] == 1 else planned.title
                missing.setdefault((result.engine.name, str(error)), []).append(name)
        frames = [frame for frame in frames if frame.height]
        if frames:
            units = _units((planned.x, planned.y), reproduced, planned.part)
            figures.figures.append(_figure(planned, pl.concat(frames, how="diagonal_relaxed"), curves, units))
    for (name, why), titles in missing.items():
        titles_text = joined([f"“{title}”" for title in dict.fromkeys(titles)])
        figures.left_out.append(f"{titles_text}: without {name}, because {why}")
    return figures


def _rows(planned: Wanted, parts: dict[str, PartData], data: PartData) -> pl.DataFrame:
    if planned.kind == "series":
        return timelines(planned, data)
    assert planned.value
    value = Quantity(**{**dict(planned.value), "where": {**planned.where, **planned.value.where}})
    if planned.kind == "cdf":
        picked = data.pick(value)
        rows = pooled(data, picked, value)
        points = rows.select("experiment").join(picked.points, on="experiment", how="left", maintain_order="left")
        rows = _grouped(planned, points, rows.select("value"))
        return with_shares(rows, [name for name in ("series", "panel") if name in rows.columns])
    estimated = quantities(planned.part, value, planned.against, planned.as_, parts)
    low, high = estimated.intervals(CONFIDENCE)
    has_interval = estimated.df > 0
    numbers = {
        "value" if planned.kind == "heatmap" else "y": estimated.estimate,
        "low": np.where(has_interval, low, np.nan),
        "high": np.where(has_interval, high, np.nan),
    }
    finite = {name: np.where(np.isfinite(values), values, np.nan) for name, values in numbers.items()}
    rows = pl.DataFrame(finite).fill_nan(None)
    assert planned.x
    columns = [_axis(planned, estimated.points[planned.x]).alias("x")]
    if planned.kind == "heatmap":
        assert planned.y
        columns.append(_axis(planned, estimated.points[planned.y]).alias("y"))
    return _grouped(planned, estimated.points, rows.with_columns(columns))


def _axis(planned: Wanted, column: pl.Series) -> pl.Series:
    """Return the values of an axis: numbers if all are numbers, or quantities in a figure of lines or points; otherwise
    texts.
    """
    values = column.to_list()
    numbers = [number(value) for value in values]
    if all(value_number is not None for value_number in numbers) and (
        planned.kind in NUMBERS or column.dtype.is_numeric()
    ):
        return pl.Series([_rounded(value_number) for value_number in numbers], dtype=pl.Float64)
    return pl.Series([value_text(value) for value in values])


def _rounded(value: float | None) -> float | None:
    """Round a position on an axis: derived keys are quotients of integers, so half a BDP may be 0.49998."""
    return None if value is None else float(f"{value:.4g}")


def _grouped(planned: Wanted, points: pl.DataFrame, rows: pl.DataFrame) -> pl.DataFrame:
    """Add the names of lines and panels; texts are in the order of their keys' numbers."""
    added: list[pl.Series] = []
    for name, keys in (("series", planned.series), ("panel", planned.panels)):
        if keys:
            labels = [point_text(point) for point in points.select(keys).iter_rows(named=True)]
            added.append(pl.Series(name, labels, dtype=pl.String))
    sorted_by = dict.fromkeys((*planned.panels, *planned.series, *filter(None, (planned.x, planned.y))))
    order = [pl.Series(f"_{key}", numbered(points[key].to_list())) for key in sorted_by]
    rows = rows.with_columns(*added, *order)
    return rows.sort([each.name for each in order], maintain_order=True).drop([series.name for series in order])


def _curves(planned: Wanted, data: PartData) -> pl.DataFrame | None:
    """Return theoretical curves at the points of the figure; a curve may differ between series."""
    if not planned.curves or planned.kind not in NUMBERS or planned.value is None:
        return None
    value = Quantity(**{**dict(planned.value), "where": {**planned.where, **planned.value.where}})
    points = data.pick(value).points
    rows = [row for curve in planned.curves for row in _curve(planned, curve, points)]
    schema = {"name": pl.String, "x": pl.Float64, "y": pl.Float64, "panel": pl.String}
    return pl.DataFrame(rows, schema=schema, orient="row").unique(maintain_order=True).sort("name", "x")


def _curve(planned: Wanted, curve: Curve, points: pl.DataFrame) -> list[tuple[str, float, float, str | None]]:
    assert planned.x
    points_ = []
    for point in points.iter_rows(named=True):
        x = _rounded(number(point[planned.x]))
        y = expressions.value(curve.y, {key: point[key] for key in DERIVED})
        if x is not None and y is not None:
            panel = point_text({key: point[key] for key in planned.panels}) if planned.panels else None
            points_.append((point_text({key: point[key] for key in planned.series}), x, y, panel))
    heights: dict[tuple[float, str | None], set[float]] = {}
    for _, x, y, panel in points_:
        heights.setdefault((x, panel), set()).add(float(f"{y:.6g}"))
    is_one = all(len(height) == 1 for height in heights.values())
    return [
        (curve.name if is_one or not series else f"{curve.name}, {series}", x, float(f"{y:.6g}"), panel)
        for series, x, y, panel in points_
    ]


def _figure(
    planned: Wanted, rows: pl.DataFrame, curves: Sequence[pl.DataFrame | None], units: Mapping[str, AxisUnit]
) -> Figure:
    theory = [curve for curve in curves if curve is not None and curve.height]
    name = "" if planned.value is None else _title(planned)
    quantity = Scaled(
        name, "" if planned.value is None else _unit(planned), planned.log_y and planned.kind != "heatmap"
    )
    x, y = _key_axis(planned.x, rows, "x", units, is_log=planned.log_x), quantity
    value = Scaled()
    if planned.kind == "heatmap":
        y, value = _key_axis(planned.y, rows, "y", units, is_log=planned.log_y), quantity
    elif planned.kind == "cdf":
        x, y = Scaled(name, _unit(planned), planned.log_x), Scaled("Share", "ratio")
    elif planned.kind == "series":
        x, y = Scaled("Time", "s"), scaled(planned)
    return Figure(
        id=planned.id,
        title=planned.title,
        kind=planned.kind,
        rows=rows,
        x=x,
        y=y,
        value=value,
        about=planned.about.strip(),
        paper=planned.paper,
        middle={"gain": 0.0, "ratio": 1.0, "difference": 0.0}.get(planned.as_),
        curves=pl.concat(theory).unique(maintain_order=True) if theory else None,
    )


def _key_axis(
    key: str | None, rows: pl.DataFrame, column: str, units: Mapping[str, AxisUnit], *, is_log: bool
) -> Scaled:
    if key is None:
        return Scaled()
    if key in DERIVED:
        return Scaled(TITLES.get(key, key), _as_unit(unit(key, None)), is_log)
    title = key_title(key)
    if not rows[column].dtype.is_numeric():
        return Scaled(title[0].upper() + title[1:])
    return Scaled(title[0].upper() + title[1:], units.get(key, ""), is_log)


def _units(keys: Iterable[str | None], reproduced: Sequence[Reproduced], part: str) -> dict[str, AxisUnit]:
    """Return the units of keys; keys whose values have different units are excluded."""
    by_key: dict[str, AxisUnit] = {}
    for key in filter(None, keys):
        values = (value for result in reproduced if result.parts.get(part) for value in result.parts[part].column(key))
        units = {unit(key, value) for value in values}
        if len(units) == 1:
            by_key[key] = _as_unit(units.pop())
    return by_key


def _title(planned: Wanted) -> str:
    assert planned.value
    unit_title = unit_and_title(planned.value.measure)
    title = unit_title[1] if unit_title else planned.value.measure.replace("_", " ").capitalize()
    lowered = title[0].lower() + title[1:]
    words = {"ratio": f"Ratio of {lowered}", "gain": f"Gain in {lowered}", "harm": f"Harm to {lowered}"}
    return words.get(planned.as_, f"Difference in {lowered}" if planned.as_ == "difference" else title)


def _unit(planned: Wanted) -> AxisUnit:
    assert planned.value
    if planned.as_ == "ratio":
        return ""
    unit_title = unit_and_title(planned.value.measure)
    return "ratio" if planned.as_ in ("gain", "harm") else unit_title[0] if unit_title else ""


def _as_unit(text: str) -> AxisUnit:
    return PREFIXED.get(text, "")
