"""Whether a run can have values of a measure, which depends on its engine and its flows."""

import polars as pl

from thalweg.analysis.measuring.link import PATH_MEASURES
from thalweg.analysis.measuring.measures import MEASURES, UP_MEASURES
from thalweg.analysis.measuring.repetitions import FROM_SAMPLES
from thalweg.analysis.tables.directions import UP, has_up
from thalweg.results import Run

SOURCES = {
    "timeouts": ("flows", "timeouts"),
    "rtt_mean": ("flows", "rtt_mean_us"),
    "rtt_min": ("flows", "rtt_min_us"),
    "rtt_p50": ("flows", "rtt_p50_us"),
    "rtt_p95": ("flows", "rtt_p95_us"),
    "latency_under_load": ("flows", "rtt_p95_us"),
    **dict.fromkeys(FROM_SAMPLES, ("samples", "t_us")),
    "delivery_rate_max": ("samples", "delivery_rate_bps"),
    **dict.fromkeys((*PATH_MEASURES, "utilisation_while_active"), ("queue", "t_us")),
}
"""Columns that not every engine fills, by the measure that requires them."""


def is_recorded(run: Run, measure: str) -> bool:
    """Return whether any complete experiment has the inputs of the measure."""
    source = SOURCES.get(measure.removesuffix(UP))
    if source is None:
        return True
    table, column = source
    return bool(run.collect(run.scan(table).select(pl.col(column).is_not_null().any())).item())


def why_never(run: Run, measure: str, flow: str | None, experiment: int) -> str | None:
    """Return why no repetition of a point can have a value of a measure; None if one can."""
    point = next(point for point in run.plan["experiments"] if point["experiment"] == experiment)
    apps = MEASURES[measure].apps if measure in MEASURES else ()
    kinds = {entry["name"]: app["kind"] for entry in point["flows"] if (app := entry["load"].get("app"))}
    flows = [name for name, kind in kinds.items() if kind in apps]
    if apps and flow not in flows:
        named = " or ".join(f'"{app}"' for app in apps)
        return f"only flows with app = {named} have {measure}; in this run: {', '.join(flows) or 'no flow'}"
    if measure in UP_MEASURES and not has_up(run):
        return f"only runs with uploads have {measure}"
    source = SOURCES.get(measure.removesuffix(UP))
    if source and source[0] != "flows" and not point["sample_interval_ns"]:
        return f"{measure} needs samples, and sample_interval is 0s"
    if not is_recorded(run, measure):
        return f"the engine {run.engine} does not record {measure}"
    return None
