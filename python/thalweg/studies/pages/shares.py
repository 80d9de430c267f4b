"""Distributions for cumulative figures, over transfers or over repetitions."""

from collections.abc import Sequence

import polars as pl

from thalweg import analysis
from thalweg.studies.claims.models import Quantity
from thalweg.studies.judging.data import PartData, Picked

OF_TRANSFERS = ("completion_time", "transfer_goodput")
"""Measures with one value per transfer."""


def pooled(data: PartData, picked: Picked, quantity: Quantity) -> pl.DataFrame:
    """Return experiment and value, pooled over the repetitions of each point."""
    if quantity.measure not in OF_TRANSFERS or quantity.window is not None or data.run is None:
        return picked.values.select("experiment", "value")
    return (
        analysis.transfer_distributions(data.run)
        .filter(pl.col("flow") == quantity.flow, pl.col("measure") == quantity.measure)
        .join(picked.points.select("experiment"), on="experiment", how="semi")
        .select("experiment", pl.col("values").alias("value"))
        .explode("value")
        .drop_nulls()
    )


def with_shares(values: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """Add to each value the fraction of values in its group that are at most as large."""
    group_keys = [*by, pl.lit(0)]
    rank, count = pl.col("value").rank("max").over(group_keys), pl.len().over(group_keys)
    return values.sort(*by, "value").with_columns(share=rank / count)
