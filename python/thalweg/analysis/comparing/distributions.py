"""Distributions over the trustworthy repetitions of a sweep point, for cumulative plots."""

import numpy as np
import polars as pl

from thalweg.analysis.measuring.summary import trustworthy
from thalweg.analysis.tables.flows import MICROSECONDS
from thalweg.results import Run

LIMIT = 101
"""Maximum number of values of a distribution: its percentiles from 0 to 100."""

GROUP = ["experiment", "flow"]


def transfer_distributions(run: Run) -> pl.DataFrame:
    """Return distributions over transfers: experiment, flow, measure, values (a sorted list).

    `completion_time` is in s, for completed transfers; `transfer_goodput` in bit/s, for completed and unlimited ones.
    """
    flows = trustworthy(run, run.scan("flows"))
    times = flows.filter("completed").select(
        *GROUP, pl.lit("completion_time").alias("measure"), (pl.col("fct_us") / MICROSECONDS).alias("value")
    )
    finished = pl.col("completed") | pl.col("size_bytes").is_null()
    goodputs = flows.filter(finished).select(
        *GROUP, pl.lit("transfer_goodput").alias("measure"), pl.col("goodput_bps").alias("value")
    )
    return _distribute(run.collect(pl.concat([times, goodputs])))


def rtt_distributions(run: Run) -> pl.DataFrame:
    """Return the distribution of smoothed RTTs (s); each sample of each connection counts once."""
    samples = trustworthy(run, run.scan("samples")).filter(pl.col("srtt_us").is_not_null())
    value = (pl.col("srtt_us") / MICROSECONDS).alias("value")
    return _distribute(run.collect(samples.select(*GROUP, pl.lit("rtt").alias("measure"), value)))


def _distribute(values: pl.DataFrame) -> pl.DataFrame:
    rows = [
        (*key, thinned(group["value"].drop_nulls().to_numpy()))
        for key, group in values.group_by(*GROUP, "measure", maintain_order=True)
    ]
    schema = pl.Schema(
        {"experiment": pl.UInt64(), "flow": pl.String(), "measure": pl.String(), "values": pl.List(pl.Float64())}
    )
    return pl.DataFrame(rows, schema=schema, orient="row").sort(*GROUP, "measure")


def thinned(values: np.ndarray) -> list[float]:
    """Return sorted values; above `LIMIT` values, their percentiles from the minimum to the maximum.

    >>> thinned(np.array([3.0, 1.0, 2.0]))
    [1.0, 2.0, 3.0]
    """
    if len(values) <= LIMIT:
        return [float(value) for value in np.sort(values)]
    return [float(value) for value in np.quantile(values, np.linspace(0, 1, LIMIT))]
