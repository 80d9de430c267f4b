"""Fairness among the flows of a path.

Jain, Chiu, Hawe, "A Quantitative Measure of Fairness and Discrimination for Resource Allocation in Shared Computer
Systems", DEC-TR-301, 1984.
"""

from collections.abc import Sequence

import numpy as np
import polars as pl

from thalweg.analysis.tables.directions import UP, with_direction
from thalweg.analysis.tables.flows import BITS, EXPERIMENT, MICROSECONDS


def jain(rates: Sequence[float]) -> float | None:
    """Return (sum of x)^2 / (n * sum of x^2): 1 if all rates are equal, 1/n if one flow has the entire rate.

    None for fewer than two, or if all are 0.

    >>> jain([1.0, 1.0]), jain([1.0, 0.0]), jain([1.0]), jain([0.0, 0.0])
    (1.0, 0.5, None, None)
    """
    x = np.asarray(rates, dtype=float)
    squares = float(np.sum(x * x))
    return float(np.sum(x)) ** 2 / (len(x) * squares) if len(x) > 1 and squares > 0 else None


def fairness(flows: pl.DataFrame) -> pl.DataFrame:
    """Return `jain` and `jain_up` per experiment and repetition, over the copies of all flows of a direction."""
    rates = _rates(with_direction(flows))
    down, up = pl.col("direction") == "down", pl.col("direction") == "up"
    return rates.group_by(EXPERIMENT, maintain_order=True).agg(
        _index(down).alias("jain"), _index(up).alias(f"jain{UP}")
    )


def evenness(flows: pl.DataFrame) -> pl.DataFrame:
    """Return `copies_jain` per experiment, repetition and flow, over the parallel copies of the flow."""
    rates = _rates(with_direction(flows))
    return rates.group_by(*EXPERIMENT, "flow", maintain_order=True).agg(_index(pl.lit(True)).alias("copies_jain"))


def _rates(flows: pl.DataFrame) -> pl.DataFrame:
    """Return the goodput of each copy over its own duration; copies without a duration are left out."""
    active_us = pl.col("end_us").max() - pl.col("start_us").min()
    goodput = pl.when(active_us > 0).then(pl.col("acked_bytes").sum() * BITS * MICROSECONDS / active_us)
    rates = flows.group_by(*EXPERIMENT, "flow", "copy", "direction", maintain_order=True).agg(goodput.alias("rate"))
    return rates.drop_nulls("rate")


def _index(is_direction: pl.Expr) -> pl.Expr:
    x = pl.col("rate").filter(is_direction)
    return pl.when((x.len() > 1) & ((x * x).sum() > 0)).then(x.sum() ** 2 / (x.len() * (x * x).sum()))
