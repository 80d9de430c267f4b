"""Directions of flows. Measures compare flows of one direction."""

from collections.abc import Mapping
from typing import Literal

import polars as pl

from thalweg.results import Run
from thalweg.results.plan_document import BackgroundDocument, FlowDocument

Direction = Literal["down", "up"]
LinkName = Literal["forward", "reverse"]

LINKS: Mapping[Direction, LinkName] = {"down": "forward", "up": "reverse"}

UP = "_up"


def of_flow(flow: FlowDocument | BackgroundDocument) -> Direction:
    """Return the direction of a flow of the plan.

    >>> of_flow({"name": "upload", "up": True}), of_flow({"name": "download"})
    ('up', 'down')
    """
    return "up" if flow.get("up") else "down"


def has_up(run: Run) -> bool:
    """Return whether flows or background traffic of the run use the reverse direction."""
    return any(
        traffic.get("up") for point in run.plan["experiments"] for traffic in (*point["flows"], *point["background"])
    )


def with_direction(flows: pl.DataFrame) -> pl.DataFrame:
    """Fill in the direction of transfers; the column is missing if every flow goes down."""
    if "direction" not in flows.columns:
        return flows.with_columns(pl.lit("down").alias("direction"))
    return flows.with_columns(pl.col("direction").fill_null("down"))
