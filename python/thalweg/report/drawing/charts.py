"""Charts as Vega-Lite templates, written with Altair so that their grammar is checked here, not in a reader's browser.

The page fills a template in for the data and the width at hand: a text "@name" stands for a value, a list with just
such a text for a list. Rows of data have short names of our own (x, mean, panel, cc, flow, line, t, v), never keys of
the scenario, which may contain what Vega-Lite takes for a path.
"""

import altair as alt

from thalweg.report.page_json import PageJson

_DATA = alt.NamedData("rows")
_COLOUR = alt.Color("cc:N", scale=alt.Scale(domain=["@ccs"], range=["@colours"]), legend=None)
_FLOW = alt.Color("flow:N", scale=alt.Scale(domain=["@flows"], range=["@flow_colours"]), legend=None)
_DASH = alt.StrokeDash("flow:N", scale=alt.Scale(domain=["@flows"], range=["@dashes"]), legend=None)


def templates() -> dict[str, PageJson]:
    """Give every template by name."""
    return {"bars": bars(), "cdf": cdf(), "lines": lines(), "queue": queue()}


def bars() -> PageJson:
    """Bars with error bars, a panel per combination of the axes that are not on x; all panels share a scale."""
    x = alt.X(
        "x:O",
        scale=alt.Scale(domain=["@x_domain"]),
        axis=alt.Axis(title="@x_title", labelAngle=0, labelOverlap=False),
    )
    base = alt.Chart(_DATA)
    bar = base.mark_bar(width=alt.RelativeBandSize(0.72)).encode(
        x=x,
        y=alt.Y("mean:Q", axis=alt.Axis(title="@y_title", tickCount=4)),
        color=_COLOUR,
        description="description:N",
        tooltip=[alt.Tooltip("label:N", title="at"), alt.Tooltip("text:N", title="@y_title"), alt.Tooltip("n:Q")],
    )
    error = base.mark_errorbar(
        clip=True, ticks=alt.MarkConfig(size=6, aria=False), rule=alt.MarkConfig(size=1.3, aria=False)
    ).encode(x=x, y=alt.Y("drawn_low:Q", title="@y_title"), y2=alt.Y2("high:Q"), color=alt.value("@ink"))
    header = alt.Header(title=None, labelAnchor="start", labelPadding=4, labelExpr="split(datum.label, ' · ')")
    chart = alt.layer(bar, error).facet(facet=alt.Facet("panel:N", sort=["@panels"], header=header), columns=1)
    return _template(chart)


def cdf() -> PageJson:
    """A cumulative distribution per flow: the share of the values that are at most x."""
    chart = (
        alt.Chart(_DATA)
        .mark_line(interpolate="step-after", strokeWidth=1.8)
        .encode(
            x=alt.X("v:Q", scale=alt.Scale(zero=False, nice=True), axis=alt.Axis(title="@x_title", tickCount=5)),
            y=alt.Y(
                "share:Q",
                scale=alt.Scale(domain=[0, 1]),
                axis=alt.Axis(title="share at most x", format="%", tickCount=4),
            ),
            color=_FLOW,
            strokeDash=_DASH,
            detail="line:N",
        )
    )
    return _template(chart)


def lines() -> PageJson:
    """Curves over time, a line per connection or per flow."""
    chart = (
        alt.Chart(_DATA)
        .mark_line(strokeWidth=1.4, strokeJoin="round")
        .encode(x=_time(), y=_value(), color=_FLOW, strokeDash=_DASH, detail="line:N")
    )
    return _template(chart)


def queue() -> PageJson:
    """The backlog of the bottleneck, the room that there is, and ticks where packets were dropped."""
    backlog = (
        alt.Chart(_DATA, name="backlog")
        .transform_filter("datum.line == 'backlog'")
        .mark_area(line=alt.MarkConfig(strokeWidth=1.2, color="@path"), color="@path", fillOpacity=0.25)
        .encode(x=_time(), y=_value())
    )
    room = (
        alt.Chart(_DATA, name="room")
        .transform_filter("datum.line == 'room'")
        .mark_rule(strokeDash=[4, 3], color="@ink", size=1)
        .encode(y=_value())
    )
    drops = (
        alt.Chart(_DATA, name="drops")
        .transform_filter("datum.line == 'drops'")
        .mark_tick(color="@alarm", thickness=1.5, size=9, orient="vertical")
        .encode(x=_time(), y=_value())
    )
    return _template(alt.layer(backlog, room, drops))


def _time() -> alt.X:
    axis = alt.Axis(title="@x_title", tickCount=8)
    return alt.X("t:Q", scale=alt.Scale(domain=["@t_domain"], nice=False), axis=axis)


def _value() -> alt.Y:
    # The axes of charts that stand above one another are as wide as each other, so that their times line up.
    axis = alt.Axis(title="@y_title", tickCount=4, minExtent=44, maxExtent=44)
    return alt.Y("v:Q", scale=alt.Scale(domainMin=0, nice=True), axis=axis)


def _template(chart: alt.Chart | alt.LayerChart | alt.FacetChart) -> PageJson:
    spec: PageJson = chart.to_dict()
    for key in ("config", "datasets"):
        spec.pop(key, None)
    return spec
