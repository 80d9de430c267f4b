"""The applications of a run's flows, from its plan."""

from math import inf

import polars as pl

from thalweg.analysis.tables.flows import BITS
from thalweg.results import Run
from thalweg.results.plan_document import AppDocument, FlowDocument

SECOND_NS = 1e9


def has_apps(run: Run) -> bool:
    """Return whether any flow of the run is an application."""
    return any("app" in flow["load"] for point in run.plan["experiments"] for flow in point["flows"])


def apps(run: Run) -> pl.DataFrame:
    """Return a row per sweep point and application: experiment, flow, app (its kind), objects (of a page)."""
    points = {experiment["experiment"]: experiment for experiment in run.plan["experiments"]}
    rows = [
        (number, flow["name"], app["kind"], app.get("objects"))
        for number, point in points.items()
        for flow in point["flows"]
        if (app := flow["load"].get("app"))
    ]
    schema = {"experiment": pl.UInt64, "flow": pl.String, "app": pl.String, "objects": pl.UInt64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def demand_bps(flow: FlowDocument) -> float:
    """Return the maximum long-run payload rate of one copy of a flow, in bit/s; infinite if unlimited."""
    app = flow["load"].get("app")
    return inf if app is None else _demand_bps(app)


def _demand_bps(app: AppDocument) -> float:
    match app["kind"]:
        case "video":
            return float(max(app["bitrates_bps"]))
        case "call":
            return app["frame_bytes"] * BITS * SECOND_NS / app["interval_ns"]
        case "rpc":
            mean_bytes = sum(app["sizes_bytes"]) / len(app["sizes_bytes"])
            return mean_bytes * BITS * SECOND_NS / app["mean_gap_ns"]
        case "probe":
            return app["size_bytes"] * BITS * SECOND_NS / app["interval_ns"]
    return inf
