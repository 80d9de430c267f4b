"""Figures of claims.toml as figures of the report: the same quantities that claims are judged on, drawn."""

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
"""Kinds whose x are numbers where the key has numbers; others have a place for each value."""

TITLES = {
    "rate_bps": "Rate of the bottleneck",
    "rtt_s": "Round-trip time of the path",
    "bdp_bytes": "Bandwidth-delay product",
    "buffer_bytes": "Buffer",
    "buffer_bdp": "Buffer (BDP)",
    "loss": "Random loss",
    "rcvbuf_bytes": "Receive buffer",
    "flows": "Flows",
    "bbr_fraction": "Part of the flows that run BBR",
    "cpu_share": "Share of the CPU",
    "cpu_slice_s": "Time on CPU",
    "cpu_period_s": "Time from slice to slice",
}


@dataclass
class DrawnFigures:
    """Figures, and what is missing in them."""

    figures: list[Figure] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    """A sentence for figures that an engine has nothing for, and why."""


def draw(study: Study, reproduced: Sequence[Reproduced]) -> DrawnFigures:
    """Draw the figures of a study with what the engines measured."""
    drawn = DrawnFigures()
    missing: dict[tuple[str, str], list[str]] = {}
    times = Counter(wanted.paper for wanted in study.claims.figures)
    for wanted in study.claims.figures:
        frames, curves = [], []
        for each in reproduced:
            data = each.parts.get(wanted.part)
            try:
                if data is None:
                    raise NotRun("it was not run")
                rows = _rows(wanted, each.parts, data)
                frames.append(rows.with_columns(pl.lit(each.engine.name).alias("engine")))
                curves.append(_curves(wanted, data))
            except (NotRun, SeveralPartners) as error:
                name = wanted.paper if wanted.paper and times[wanted.paper] == 1 else wanted.title
                missing.setdefault((each.engine.name, str(error)), []).append(name)
        frames = [frame for frame in frames if frame.height]
        if frames:
            units = _units((wanted.x, wanted.y), reproduced, wanted.part)
            drawn.figures.append(_figure(wanted, pl.concat(frames, how="diagonal_relaxed"), curves, units))
    for (name, why), titles in missing.items():
        which = joined([f"“{title}”" for title in dict.fromkeys(titles)])
        drawn.left_out.append(f"{which}: nothing of {name} in it, because {why}")
    return drawn


def _rows(wanted: Wanted, parts: dict[str, PartData], data: PartData) -> pl.DataFrame:
    if wanted.kind == "series":
        return timelines(wanted, data)
    assert wanted.value
    value = Quantity(**{**dict(wanted.value), "where": {**wanted.where, **wanted.value.where}})
    if wanted.kind == "cdf":
        picked = data.pick(value)
        rows = pooled(data, picked, value)
        points = rows.select("experiment").join(picked.points, on="experiment", how="left", maintain_order="left")
        rows = _grouped(wanted, points, rows.select("value"))
        return with_shares(rows, [name for name in ("series", "panel") if name in rows.columns])
    found = quantities(wanted.part, value, wanted.against, wanted.as_, parts)
    low, high = found.intervals(CONFIDENCE)
    has_interval = found.df > 0
    numbers = {
        "value" if wanted.kind == "heatmap" else "y": found.estimate,
        "low": np.where(has_interval, low, np.nan),
        "high": np.where(has_interval, high, np.nan),
    }
    finite = {name: np.where(np.isfinite(each), each, np.nan) for name, each in numbers.items()}
    rows = pl.DataFrame(finite).fill_nan(None)
    assert wanted.x
    columns = [_axis(wanted, found.points[wanted.x]).alias("x")]
    if wanted.kind == "heatmap":
        assert wanted.y
        columns.append(_axis(wanted, found.points[wanted.y]).alias("y"))
    return _grouped(wanted, found.points, rows.with_columns(columns))


def _axis(wanted: Wanted, column: pl.Series) -> pl.Series:
    """Return an axis: numbers where all values are ordered numbers, else texts."""
    values = column.to_list()
    known = [number(value) for value in values]
    if all(each is not None for each in known) and (wanted.kind in NUMBERS or column.dtype.is_numeric()):
        return pl.Series([_rounded(each) for each in known], dtype=pl.Float64)
    return pl.Series([value_text(value) for value in values])


def _rounded(value: float | None) -> float | None:
    """Round a place on an axis: a derived key is a quotient of whole numbers, and half a BDP is there as 0.49998."""
    return None if value is None else float(f"{value:.4g}")


def _grouped(wanted: Wanted, points: pl.DataFrame, rows: pl.DataFrame) -> pl.DataFrame:
    """Attach what tells lines and panels apart; texts appear in the order of their keys' numbers."""
    added: list[pl.Series] = []
    for name, keys in (("series", wanted.series), ("panel", wanted.panels)):
        if keys:
            named = [point_text(point) for point in points.select(keys).iter_rows(named=True)]
            added.append(pl.Series(name, named, dtype=pl.String))
    sorted_by = dict.fromkeys((*wanted.panels, *wanted.series, *filter(None, (wanted.x, wanted.y))))
    order = [pl.Series(f"_{key}", numbered(points[key].to_list())) for key in sorted_by]
    rows = rows.with_columns(*added, *order)
    return rows.sort([each.name for each in order], maintain_order=True).drop([each.name for each in order])


def _curves(wanted: Wanted, data: PartData) -> pl.DataFrame | None:
    """Compute theory at the points of the figure; a curve that differs between series has one for each."""
    if not wanted.curves or wanted.kind not in NUMBERS or wanted.value is None:
        return None
    value = Quantity(**{**dict(wanted.value), "where": {**wanted.where, **wanted.value.where}})
    points = data.pick(value).points
    rows = [row for curve in wanted.curves for row in _curve(wanted, curve, points)]
    schema = {"name": pl.String, "x": pl.Float64, "y": pl.Float64, "panel": pl.String}
    return pl.DataFrame(rows, schema=schema, orient="row").unique(maintain_order=True).sort("name", "x")


def _curve(wanted: Wanted, curve: Curve, points: pl.DataFrame) -> list[tuple[str, float, float, str | None]]:
    assert wanted.x
    found = []
    for point in points.iter_rows(named=True):
        x = _rounded(number(point[wanted.x]))
        y = expressions.value(curve.y, {key: point[key] for key in DERIVED})
        if x is not None and y is not None:
            panel = point_text({key: point[key] for key in wanted.panels}) if wanted.panels else None
            found.append((point_text({key: point[key] for key in wanted.series}), x, y, panel))
    heights: dict[tuple[float, str | None], set[float]] = {}
    for _, x, y, panel in found:
        heights.setdefault((x, panel), set()).add(float(f"{y:.6g}"))
    is_one = all(len(height) == 1 for height in heights.values())
    return [
        (curve.name if is_one or not series else f"{curve.name}, {series}", x, float(f"{y:.6g}"), panel)
        for series, x, y, panel in found
    ]


def _figure(
    wanted: Wanted, rows: pl.DataFrame, curves: Sequence[pl.DataFrame | None], units: Mapping[str, AxisUnit]
) -> Figure:
    theory = [curve for curve in curves if curve is not None and curve.height]
    name = "" if wanted.value is None else _title(wanted)
    quantity = Scaled(name, "" if wanted.value is None else _unit(wanted), wanted.log_y and wanted.kind != "heatmap")
    x, y = _key_axis(wanted.x, rows, "x", units, is_log=wanted.log_x), quantity
    value = Scaled()
    if wanted.kind == "heatmap":
        y, value = _key_axis(wanted.y, rows, "y", units, is_log=wanted.log_y), quantity
    elif wanted.kind == "cdf":
        x, y = Scaled(name, _unit(wanted), wanted.log_x), Scaled("Share", "ratio")
    elif wanted.kind == "series":
        x, y = Scaled("Time", "s"), scaled(wanted)
    return Figure(
        id=wanted.id,
        title=wanted.title,
        kind=wanted.kind,
        rows=rows,
        x=x,
        y=y,
        value=value,
        about=wanted.about.strip(),
        paper=wanted.paper,
        middle={"gain": 0.0, "ratio": 1.0, "difference": 0.0}.get(wanted.as_),
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
    """Return the units of keys' numbers; a key whose values have different units is left out."""
    found: dict[str, AxisUnit] = {}
    for key in filter(None, keys):
        values = (value for each in reproduced if each.parts.get(part) for value in each.parts[part].column(key))
        units = {unit(key, value) for value in values}
        if len(units) == 1:
            found[key] = _as_unit(units.pop())
    return found


def _title(wanted: Wanted) -> str:
    assert wanted.value
    known = unit_and_title(wanted.value.measure)
    title = known[1] if known else wanted.value.measure.replace("_", " ").capitalize()
    lowered = title[0].lower() + title[1:]
    words = {"ratio": f"Ratio of {lowered}", "gain": f"Gain in {lowered}", "harm": f"Harm to {lowered}"}
    return words.get(wanted.as_, f"Difference in {lowered}" if wanted.as_ == "difference" else title)


def _unit(wanted: Wanted) -> AxisUnit:
    assert wanted.value
    if wanted.as_ == "ratio":
        return ""
    known = unit_and_title(wanted.value.measure)
    return "ratio" if wanted.as_ in ("gain", "harm") else known[0] if known else ""


def _as_unit(text: str) -> AxisUnit:
    return PREFIXED.get(text, "")
