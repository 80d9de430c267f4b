"""Charts as Vega-Lite templates.

The page instantiates a template: a text "@name" is replaced by a value, and a list with only such a text by a list.
Columns of data have fixed short names, not keys of the scenario, because these may contain characters that Vega-Lite
interprets as a path.
"""

from thalweg.report.page_json import PageJson

_SCHEMA = "https://vega.github.io/schema/vega-lite/v6.4.1.json"
_DATA: PageJson = {"name": "rows"}
_COLOUR: PageJson = {
    "field": "cc", "legend": None, "scale": {"domain": ["@ccs"], "range": ["@colours"]}, "type": "nominal",
}  # fmt: skip
_FLOW: PageJson = {
    "field": "flow", "legend": None, "scale": {"domain": ["@flows"], "range": ["@flow_colours"]}, "type": "nominal",
}  # fmt: skip
_DASH: PageJson = {
    "field": "flow", "legend": None, "scale": {"domain": ["@flows"], "range": ["@dashes"]}, "type": "nominal",
}  # fmt: skip
_LINE: PageJson = {"field": "line", "type": "nominal"}
_TIME: PageJson = {
    "axis": {"tickCount": 8, "title": "@x_title"},
    "field": "t",
    "scale": {"domain": ["@t_domain"], "nice": False},
    "type": "quantitative",
}
# The axes of stacked charts have equal widths, so that their time axes are aligned.
_VALUE: PageJson = {
    "axis": {"maxExtent": 44, "minExtent": 44, "tickCount": 4, "title": "@y_title"},
    "field": "v",
    "scale": {"domainMin": 0, "nice": True},
    "type": "quantitative",
}


def templates() -> dict[str, PageJson]:
    """Return every template by name."""
    return {"bars": bars(), "cdf": cdf(), "lines": lines(), "queue": queue()}


def bars() -> PageJson:
    """Return bars with error bars, in panels."""
    x = {
        "axis": {"labelAngle": 0, "labelOverlap": False, "title": "@x_title"},
        "field": "x",
        "scale": {"domain": ["@x_domain"]},
        "type": "ordinal",
    }
    bar = {
        "mark": {"type": "bar", "width": {"band": 0.72}},
        "encoding": {
            "color": _COLOUR,
            "description": {"field": "description", "type": "nominal"},
            "tooltip": [
                {"field": "label", "title": "at", "type": "nominal"},
                {"field": "text", "title": "@y_title", "type": "nominal"},
                {"field": "n", "type": "quantitative"},
            ],
            "x": x,
            "y": {"axis": {"tickCount": 4, "title": "@y_title"}, "field": "mean", "type": "quantitative"},
        },
    }
    error = {
        "mark": {
            "type": "errorbar",
            "clip": True,
            "rule": {"aria": False, "size": 1.3},
            "ticks": {"aria": False, "size": 6},
        },
        "encoding": {
            "color": {"value": "@ink"},
            "x": x,
            "y": {"field": "drawn_low", "title": "@y_title", "type": "quantitative"},
            "y2": {"field": "high"},
        },
    }
    header = {"labelAnchor": "start", "labelExpr": "split(datum.label, ' · ')", "labelPadding": 4, "title": None}
    return {
        "data": _DATA,
        "facet": {"field": "panel", "header": header, "sort": ["@panels"], "type": "nominal"},
        "spec": {"layer": [bar, error]},
        "columns": 1,
        "$schema": _SCHEMA,
    }


def cdf() -> PageJson:
    """Return a cumulative distribution per flow: the fraction of the values that are at most x."""
    return {
        "data": _DATA,
        "mark": {"type": "line", "interpolate": "step-after", "strokeWidth": 1.8},
        "encoding": {
            "color": _FLOW,
            "detail": _LINE,
            "strokeDash": _DASH,
            "x": {
                "axis": {"tickCount": 5, "title": "@x_title"},
                "field": "v",
                "scale": {"nice": True, "zero": False},
                "type": "quantitative",
            },
            "y": {
                "axis": {"format": "%", "tickCount": 4, "title": "share at most x"},
                "field": "share",
                "scale": {"domain": [0, 1]},
                "type": "quantitative",
            },
        },
        "$schema": _SCHEMA,
    }


def lines() -> PageJson:
    """Return curves over time, one line per connection or per flow."""
    return {
        "data": _DATA,
        "mark": {"type": "line", "strokeJoin": "round", "strokeWidth": 1.4},
        "encoding": {"color": _FLOW, "detail": _LINE, "strokeDash": _DASH, "x": _TIME, "y": _VALUE},
        "$schema": _SCHEMA,
    }


def queue() -> PageJson:
    """Return the backlog of the bottleneck, its capacity, and ticks for dropped packets."""
    area = {"type": "area", "color": "@path", "fillOpacity": 0.25, "line": {"color": "@path", "strokeWidth": 1.2}}
    rule = {"type": "rule", "color": "@ink", "size": 1, "strokeDash": [4, 3]}
    tick = {"type": "tick", "color": "@alarm", "orient": "vertical", "size": 9, "thickness": 1.5}
    both: PageJson = {"x": _TIME, "y": _VALUE}
    layers = [_layer("backlog", area, both), _layer("room", rule, {"y": _VALUE}), _layer("drops", tick, both)]
    return {"layer": layers, "data": _DATA, "$schema": _SCHEMA}


def _layer(name: str, mark: PageJson, encoding: PageJson) -> PageJson:
    transform = [{"filter": f"datum.line == '{name}'"}]
    return {"mark": mark, "encoding": encoding, "name": name, "transform": transform}
