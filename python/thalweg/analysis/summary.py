"""A run's numbers: a value per repetition, and their mean with its uncertainty.

Experiments that are marked untrustworthy are left out of the numbers; reports name them.
"""

import polars as pl

from thalweg.analysis.flows import EXPERIMENT, flow_measures
from thalweg.analysis.intervals import summarise
from thalweg.analysis.link import bottlenecks, path_measures, with_utilisation_while_active
from thalweg.analysis.measures import MEASURES
from thalweg.results import Run

QUEUE_COLUMNS = [
    *EXPERIMENT, "link", "t_us", "sent_bytes", "capacity_bytes", "backlog_bytes", "dropped_packets",
]  # fmt: skip


def repetitions(run: Run) -> pl.DataFrame:
    """Give every measure of every trustworthy experiment: experiment, repetition, flow, cc, measure, unit, value.

    Measures of the path have no flow and no cc. A measure without meaning in an experiment (the completion time of a
    transfer that was not completed) has an empty value.
    """
    flows = trustworthy(run, run.scan("flows")).collect()
    links = bottlenecks(trustworthy(run, run.scan("queue")).select(QUEUE_COLUMNS).collect())
    of_flows = with_utilisation_while_active(flow_measures(flows), links).drop("start_us", "end_us")
    of_path = path_measures(links).with_columns(
        pl.lit(None, pl.String).alias("flow"), pl.lit(None, pl.String).alias("cc")
    )
    keys = [*EXPERIMENT, "flow", "cc"]
    tidy = pl.concat(
        frame.unpivot(
            index=keys, on=[name for name in MEASURES if name in frame.columns], variable_name="measure"
        ).with_columns(pl.col("value").cast(pl.Float64))
        for frame in (of_flows, of_path)
    )
    units = {name: measure.unit for name, measure in MEASURES.items()}
    unit = pl.col("measure").replace_strict(units, return_dtype=pl.String).alias("unit")
    return tidy.select(*keys, "measure", unit, "value")


def summary(run: Run) -> pl.DataFrame:
    """Give the mean over repetitions of every measure, tidy.

    Columns: experiment, the sweep's keys, flow, cc, measure, unit, n (repetitions with a value), mean, low and high
    (95 % confidence interval, empty if n is 1), median. Rows are in the order of the sweep, then of the scenario's
    flows with the path last, then of the measures.
    """
    by = ["experiment", "flow", "cc", "measure", "unit"]
    rows = summarise(repetitions(run), by=by)
    order = {name: number for number, name in enumerate(flow_names(run))}
    measures = {name: number for number, name in enumerate(MEASURES)}
    rows = run.with_sweep(rows).sort(
        "experiment",
        pl.col("flow").replace_strict(order, default=len(order), return_dtype=pl.Int64),
        pl.col("measure").replace_strict(measures, return_dtype=pl.Int64),
        maintain_order=True,
    )
    return rows.select("experiment", *run.sweep_keys, *by[1:], "n", "mean", "low", "high", "median")


def flow_names(run: Run) -> list[str]:
    """Names of the flows in the order of the scenario."""
    return list(dict.fromkeys(flow["name"] for experiment in run.plan["experiments"] for flow in experiment["flows"]))


def trustworthy(run: Run, table: pl.LazyFrame) -> pl.LazyFrame:
    """Leave out the rows of experiments that are marked untrustworthy."""
    marked = {(mark.experiment, mark.repetition) for mark in run.untrustworthy}
    if not marked:
        return table
    out = pl.LazyFrame(sorted(marked), schema=dict.fromkeys(EXPERIMENT, pl.UInt64), orient="row")
    return table.join(out, on=EXPERIMENT, how="anti", maintain_order="left")
