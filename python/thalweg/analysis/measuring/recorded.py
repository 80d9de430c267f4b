"""Whether a run has what a measure is made of: some engines cannot tell everything."""

import polars as pl

from thalweg.analysis.measuring.link import PATH_MEASURES
from thalweg.results import Run

FROM_SAMPLES = ("stability", "convergence_time", "inflight_bdp", "cwnd_mean", "probe_rtt_sync")

SOURCES = {
    "timeouts": ("flows", "timeouts"),
    "rtt_mean": ("flows", "rtt_mean_us"),
    "rtt_min": ("flows", "rtt_min_us"),
    "rtt_p50": ("flows", "rtt_p50_us"),
    "rtt_p95": ("flows", "rtt_p95_us"),
    "latency_under_load": ("flows", "rtt_p95_us"),
    "delivery_rate_max": ("samples", "delivery_rate_bps"),
    **dict.fromkeys(FROM_SAMPLES, ("samples", "t_us")),
    **dict.fromkeys((*PATH_MEASURES, "utilisation_while_active"), ("queue", "t_us")),
}
"""The column without which a measure has no value; others are made of columns that every engine fills."""


def is_recorded(run: Run, measure: str) -> bool:
    """Return whether any complete experiment has what the measure is made of.

    Where it has not, the measure's lack of a value says something of the engine, and nothing of what was tried.
    """
    if measure not in SOURCES:
        return True
    table, column = SOURCES[measure]
    return bool(run.collect(run.scan(table).select(pl.col(column).is_not_null().any())).item())
