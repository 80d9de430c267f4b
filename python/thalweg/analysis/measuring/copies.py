"""Repetitions that are copies of one another: nothing random occurred, so their spread is not an uncertainty."""

from functools import lru_cache

import polars as pl

from thalweg.analysis.tables.flows import EXPERIMENT
from thalweg.results import Run
from thalweg.results.columns import TABLES

_LEFT_OUT = {*EXPERIMENT, "start_us", "end_us", "untrustworthy"}
"""Columns in which copies may differ: an experiment that is shifted in time is still a copy. Round-trip times are
excluded as well, because such a shift changes their rounding to ticks.
"""


def caution(run: Run) -> str | None:
    """Return a sentence on the points whose repetitions are copies; None without copies."""
    count, points = len(copied(run)), len(run.points())
    if not count:
        return None
    at_points = "" if count == points else f" at {count} of {points} points"
    return (
        f"the repetitions{at_points} are copies of one another: no random event changed them, so there is no interval"
        f" ({copies_remedy(run)})"
    )


def copies_remedy(run: Run) -> str:
    """Return what makes the copies of a run differ."""
    if any(experiment["start_jitter_ns"] for experiment in run.plan["experiments"]):
        return "start_jitter alone only shifts them; use path.jitter, or more random loss"
    return 'start_jitter = "1rtt" makes them differ'


@lru_cache(maxsize=8)
def copied(run: Run) -> frozenset[int]:
    """Return the sweep points with several trustworthy repetitions whose transfers are identical.

    The result is cached, because it reads the tables `flows`.
    """
    if not any(experiment["repetition"] for experiment in run.plan["experiments"]):
        return frozenset()
    names = [column.name for column in TABLES["flows"].columns]
    columns = [name for name in names if name not in _LEFT_OUT and not name.startswith("rtt_")]
    rows = run.scan("flows", run.trustworthy_ids)
    repeated = rows.group_by("experiment").agg(pl.col("repetition").n_unique().alias("n")).filter(pl.col("n") > 1)
    equal_rows = rows.group_by("experiment", *columns).agg(pl.len().alias("times")).join(repeated, on="experiment")
    is_copied = equal_rows.group_by("experiment").agg((pl.col("times") == pl.col("n")).all().alias("is_copied"))
    return frozenset(run.collect(is_copied.filter("is_copied"))["experiment"].to_list())
