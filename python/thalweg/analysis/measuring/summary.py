"""A run's numbers: the mean of each measure over the trustworthy repetitions, with its uncertainty."""

from collections.abc import Collection

import polars as pl

from thalweg.analysis.measuring.copies import copied
from thalweg.analysis.measuring.measures import MEASURES
from thalweg.analysis.measuring.repetitions import repetitions
from thalweg.analysis.statistics.intervals import summarise
from thalweg.analysis.tables.flows import EXPERIMENT
from thalweg.results import Run

ENDS = ("low", "high")


def summary(run: Run, measures: Collection[str] | None = None, values: pl.DataFrame | None = None) -> pl.DataFrame:
    """Return the mean over repetitions of every measure, or of `measures`, in tidy form.

    Columns: experiment, the swept keys, flow, cc, measure, unit, n (repetitions with a value), mean, low and high (95 %
    confidence interval; null if n is 1 or the repetitions are copies of one another), median, copies. Rows are in the
    order of the sweep, then of the flows with the path last, then of the measures. `values` is the result of
    `repetitions`, if it is available.
    """
    by = ["experiment", "flow", "cc", "measure", "unit"]
    rows = summarise(repetitions(run, measures=measures) if values is None else values, by=by)
    is_copied = pl.col("experiment").is_in(copied(run)) & (pl.col("n") > 1)
    rows = rows.with_columns(is_copied.alias("copies"), *(pl.when(~is_copied).then(end).alias(end) for end in ENDS))
    order = {name: number for number, name in enumerate(flow_names(run))}
    place = {name: number for number, name in enumerate(MEASURES)}
    rows = run.with_sweep(rows).sort(
        "experiment",
        pl.col("flow").replace_strict(order, default=len(order), return_dtype=pl.Int64),
        pl.col("measure").replace_strict(place, return_dtype=pl.Int64),
        maintain_order=True,
    )
    return rows.select("experiment", *run.sweep_keys, *by[1:], "n", "mean", *ENDS, "median", "copies")


def flow_names(run: Run) -> list[str]:
    """Return the names of the flows in the order of the scenario."""
    return list(dict.fromkeys(flow["name"] for experiment in run.plan["experiments"] for flow in experiment["flows"]))


def trustworthy(run: Run, table: pl.LazyFrame) -> pl.LazyFrame:
    """Return the rows without those of experiments that are marked untrustworthy."""
    marked = {(mark.experiment, mark.repetition) for mark in run.untrustworthy}
    if not marked:
        return table
    out = pl.LazyFrame(sorted(marked), schema=dict.fromkeys(EXPERIMENT, pl.UInt64), orient="row")
    return table.join(out, on=EXPERIMENT, how="anti", maintain_order="left")
