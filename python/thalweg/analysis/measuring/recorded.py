"""Whether a run has the inputs of a measure; some engines do not record all columns."""

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
"""Column that each measure requires; the other measures use columns that every engine fills."""


def is_recorded(run: Run, measure: str) -> bool:
    """Return whether any complete experiment has the inputs of the measure.

    If not, the missing value is due to the engine, and not to the experiment.
    """
    if measure not in SOURCES:
        return True
    table, column = SOURCES[measure]
    return bool(run.collect(run.scan(table).select(pl.col(column).is_not_null().any())).item())
