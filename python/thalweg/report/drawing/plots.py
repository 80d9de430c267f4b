"""Vega-Lite templates for each kind of figure; each is a facet of panels that share their axes.

A text `@name` is a placeholder for a value, and a list with only such a text for a list. Columns of rows have fixed
short names, not keys of a scenario.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from thalweg.report.page_json import PageJson

DIVERGING = ["#0b4a8a", "#5b9bd1", "#f4f1ea", "#e8914a", "#8f3a06"]
"""Blue, through a light grey, to orange: distinguishable with any colour vision."""
SEQUENTIAL = ["#f2f4e8", "#a9cfc0", "#4fa0ad", "#1f6a97", "#123a6b"]
"""From light to dark: distinguishable by lightness alone."""

_COLOUR = {"field": "series", "type": "nominal", "scale": {"domain": ["@names"], "range": ["@colours"]}, "legend": None}
_DASH = {"field": "series", "type": "nominal", "scale": {"domain": ["@names"], "range": ["@dashes"]}, "legend": None}
_SHAPE = {"field": "series", "type": "nominal", "scale": {"domain": ["@names"], "range": ["@shapes"]}, "legend": None}
_TEXT = {"field": "text", "type": "nominal"}


@dataclass(frozen=True)
class PlotSide:
    """One side of a plot: its title and its scale."""

    title: str
    is_text: bool = False
    is_log: bool = False
    ticks: Sequence[float] | None = None
    """Positions of ticks; None: automatic."""


@dataclass(frozen=True)
class Layers:
    """Optional elements of a plot of lines, points or bars."""

    groups: bool
    """Whether there are several bars at one position."""
    intervals: bool
    bands: bool
    points: bool
    theory: bool


def marks(kind: str, x: PlotSide, y: PlotSide, has: Layers) -> PageJson:
    """Return lines, points or bars over x, with their intervals and theoretical curves."""
    x_encoding = _along(x)
    y_encoding = _up(y, zero=kind == "bars" or not y.is_log)
    base: PageJson = {"x": x_encoding, "y": y_encoding, "color": _COLOUR}
    group = {"xOffset": {"field": "series", "type": "nominal", "sort": ["@names"]}} if has.groups else {}
    measured = [{"filter": "datum.kind !== 'theory'"}] if has.theory else []
    bounded = [*measured, {"filter": "datum.low !== null"}]
    interval = {"y": y_encoding | {"field": "low"}, "y2": {"field": "high"}}
    layers: list[PageJson] = []
    if kind == "bars":
        bar = {"type": "bar", "width": {"band": 0.82}}
        layers.append({"mark": bar, "transform": measured, "encoding": base | group | {"tooltip": _tooltip(x, y)}})
        if has.intervals:
            rule = {"type": "rule", "color": "@ink", "strokeWidth": 1.2, "aria": False}
            layers.append({"mark": rule, "transform": bounded, "encoding": {"x": x_encoding, **group, **interval}})
        return _facet({"layer": layers})
    if has.intervals and has.bands and kind == "lines":
        area = {"type": "area", "opacity": 0.18, "aria": False}
        layers.append({"mark": area, "transform": bounded, "encoding": base | interval})
    elif has.intervals:
        rule = {"type": "rule", "strokeWidth": 1.4, "opacity": 0.75, "aria": False}
        layers.append({"mark": rule, "transform": bounded, "encoding": base | interval})
    if kind == "lines":
        line = {"type": "line", "strokeWidth": 1.8, "aria": False}
        layers.append({"mark": line, "transform": measured, "encoding": base | {"strokeDash": _DASH}})
    if kind == "points" or has.points:
        point = {"type": "point", "filled": True, "size": 38, "opacity": 1}
        encoding = base | {"shape": _SHAPE, "tooltip": _tooltip(x, y)}
        layers.append({"mark": point, "transform": measured, "encoding": encoding})
    if has.theory:
        line = {"type": "line", "strokeWidth": 1.6, "clip": True, "aria": False}
        theory = [{"filter": "datum.kind === 'theory'"}]
        layers.append({"mark": line, "transform": theory, "encoding": base | {"strokeDash": _DASH}})
    return _facet({"layer": layers})


def heatmap(x: PlotSide, y: PlotSide, value: PlotSide, ends: tuple[float, float], middle: float | None) -> PageJson:
    """Return a heat map with a number in each cell."""
    x_encoding, y_encoding = (
        {
            "field": name,
            "type": "ordinal",
            "scale": {"domain": [f"@{name}_domain"], "paddingInner": 0.04},
            "axis": {"title": side.title, "labelAngle": 0, "labelOverlap": "greedy", "grid": False},
        }
        for name, side in (("x", x), ("y", y))
    )
    scale: PageJson = {"domain": list(ends), "clamp": True}
    if middle is None:
        scale |= {"range": SEQUENTIAL, "interpolate": "lab"} | ({"type": "log"} if value.is_log else {})
    else:
        scale |= {"range": DIVERGING, "domainMid": middle, "interpolate": "lab"}
        scale["domain"] = [ends[0], (ends[0] + middle) / 2, middle, (ends[1] + middle) / 2, ends[1]]
        del scale["domainMid"]
    legend = {"title": value.title, "orient": "bottom", "direction": "horizontal", "gradientLength": "@gradient"}
    colour = {"field": "value", "type": "quantitative", "scale": scale, "legend": legend}
    tip = [
        {"field": "x", "type": "ordinal", "title": x.title},
        {"field": "y", "type": "ordinal", "title": y.title},
        {**_TEXT, "title": value.title},
    ]
    cells = {"mark": {"type": "rect"}, "encoding": {"x": x_encoding, "y": y_encoding, "color": colour, "tooltip": tip}}
    number = {
        "name": "numbers",
        "mark": {"type": "text", "fontSize": 10, "aria": False},
        "encoding": {
            "x": x_encoding,
            "y": y_encoding,
            "text": {"field": "number", "type": "nominal"},
            "color": {"condition": {"test": "datum.is_dark", "value": "#ffffff"}, "value": "#1a222c"},
        },
    }
    return _facet({"layer": [cells, number]})


def steps(x: PlotSide) -> PageJson:
    """Return cumulative distributions: the fraction of the values that are at most x."""
    y_encoding = _up(PlotSide("share at most x"), zero=True)
    y_encoding |= {"scale": {"domain": [0, 1]}, "axis": {"title": "share at most x", "format": "%", "tickCount": 4}}
    mark = {"type": "line", "interpolate": "step-after", "strokeWidth": 1.8, "aria": False}
    encoding = {"x": _along(x, zero=False), "y": y_encoding, "color": _COLOUR, "strokeDash": _DASH}
    return _facet({"layer": [{"mark": mark, "encoding": encoding}]})


def series(x: PlotSide, y: PlotSide) -> PageJson:
    """Return curves over time."""
    x_encoding = _along(x)
    x_encoding["scale"] = {"domain": ["@t_domain"], "nice": False}
    mark = {"type": "line", "strokeWidth": 1.3, "strokeJoin": "round", "clip": True, "aria": False}
    encoding = {
        "x": x_encoding, "y": _up(y, zero=True), "color": _COLOUR, "strokeDash": _DASH,
        "detail": {"field": "line", "type": "nominal"},
    }  # fmt: skip
    return _facet({"layer": [{"mark": mark, "encoding": encoding}]})


def parallel() -> PageJson:
    """Return lines across parallel axes; the range of an axis is written at its ends."""
    x_encoding = {
        "field": "x",
        "type": "ordinal",
        "scale": {"domain": ["@x_domain"], "type": "point", "padding": 0.35},
        "axis": {"title": None, "labelAngle": 0, "labelOverlap": False, "grid": True, "labelLimit": 0},
    }
    y_encoding = {"field": "y", "type": "quantitative", "scale": {"domain": [-0.1, 1.1]}, "axis": None}
    line = {"type": "line", "strokeWidth": 1.3, "opacity": 0.55, "aria": False}
    detail = {"field": "line", "type": "nominal"}
    crossing = [{"filter": "datum.end === null"}]
    tip = [{"field": "line", "type": "nominal", "title": "candidate"},
           {"field": "x", "type": "ordinal", "title": "of"}, _TEXT | {"title": "value"}]  # fmt: skip
    point = {"type": "point", "filled": True, "size": 22, "opacity": 0.8}
    base = {"x": x_encoding, "y": y_encoding, "color": _COLOUR, "detail": detail}
    text = {"type": "text", "fontSize": 10, "color": "@ink", "baseline": "middle", "aria": False}
    end = {"x": x_encoding, "y": y_encoding, "text": {"field": "end", "type": "nominal"}}
    return _facet({"layer": [
        {"mark": line, "transform": crossing, "encoding": base},
        {"mark": point, "transform": crossing, "encoding": base | {"tooltip": tip}},
        {"mark": text, "transform": [{"filter": "datum.end !== null"}],
         "encoding": end},
    ]})  # fmt: skip


def _along(side: PlotSide, zero: bool = False) -> PageJson:
    axis: PageJson = {"title": side.title, "labelOverlap": "greedy", "labelSeparation": 5}
    if side.is_text:
        domain: PageJson = {"domain": ["@x_domain"]}
        return {"field": "x", "type": "ordinal", "scale": domain, "axis": axis | {"labelAngle": 0}}
    axis |= _tick_marks(side, 6)
    scale: PageJson = {"type": "log", "nice": False} if side.is_log else {"zero": zero, "nice": False, "padding": 6}
    return {"field": "x", "type": "quantitative", "scale": scale, "axis": axis}


def _up(side: PlotSide, zero: bool) -> PageJson:
    scale = {"type": "log", "nice": False} if side.is_log else {"zero": zero, "nice": True}
    axis = {"title": side.title, "labelOverlap": "greedy"} | _tick_marks(side, 5)
    return {"field": "y", "type": "quantitative", "scale": scale, "axis": axis}


def _tick_marks(side: PlotSide, count: int) -> PageJson:
    if side.ticks is None:
        return {"tickCount": count}
    label = "datum.value < 0.001 || datum.value >= 1e5 ? format(datum.value, '~e') : format(datum.value, '~g')"
    return {"values": list(side.ticks), "labelExpr": label}


def _tooltip(x: PlotSide, y: PlotSide) -> list[PageJson]:
    kind = "ordinal" if x.is_text else "quantitative"
    return [
        {"field": "series", "type": "nominal", "title": "line"},
        {"field": "x", "type": kind, "title": x.title or "x"},
        {**_TEXT, "title": y.title or "y"},
    ]


def _facet(inner: PageJson) -> PageJson:
    header = {"title": None, "labelAnchor": "start", "labelPadding": 4}
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "data": {"name": "rows"},
        "facet": {"field": "panel", "type": "nominal", "sort": ["@panels"], "header": header},
        "columns": 1,
        "spec": inner,
    }
