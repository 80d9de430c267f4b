"""Time series for figures, from the experiment that is typical of its point."""

import polars as pl

from thalweg import analysis
from thalweg.report.drawing.figure import Scaled, quantity_axis
from thalweg.studies.claims.models import PaperFigure
from thalweg.studies.judging.data import NotRun, PartData, chosen


def timelines(figure: PaperFigure, data: PartData) -> pl.DataFrame:
    """Return t_s, value, flow and line (a number per connection) of the quantity, at the first point that satisfies
    the figure's conditions, from the repetition with the median goodput of the figure's first flow with a value.

    Raises:
        NotRun: If no point does, the part was not run, no experiment is complete, or the engine does not record the
            quantity of these flows.
    """
    if data.planned.why_not or data.run is None:
        raise NotRun(data.planned.why_not or "no experiment is complete")
    points = chosen(data.points(), figure.where)
    if not points.height:
        raise NotRun("no such point was run")
    assert figure.quantity
    point = int(points["experiment"][0])
    typical = _repetition(data, point, figure.flows or analysis.flow_names(data.run))
    [series] = analysis.series(data.run, [(point, typical)], quantities=[figure.quantity])
    rows = [
        {"t_s": t, "value": value, "flow": line.name, "line": number}
        for number, line in enumerate(series.lines[figure.quantity])
        if not figure.flows or line.name in figure.flows or figure.quantity == "queue"
        for t, value in zip(line.t_s, line.value, strict=True)
    ]
    if not rows:
        raise NotRun(f"the engine records no {figure.quantity} of these flows")
    return pl.DataFrame(rows)


def scaled(figure: PaperFigure) -> Scaled:
    """Return the axis of the quantity."""
    assert figure.quantity
    return quantity_axis(analysis.QUANTITIES[figure.quantity])


def _repetition(data: PartData, point: int, flows: list[str]) -> int:
    values = data.values().filter(pl.col("experiment") == point)
    for flow in flows:
        typical = analysis.typical_repetitions(values, flow)
        if point in typical:
            return typical[point]
    return int(values["repetition"].min() or 0) if values.height else 0  # type: ignore[arg-type]
