"""Buckets of numbers, as computed by a query engine."""

from collections.abc import Sequence

import numpy as np
import polars as pl
from thalweg.advise import QueryEngine
from thalweg.advise.counting import buckets


def bucket_edges() -> list[int]:
    """Return the integers around the edges of all buckets."""
    edges = buckets.lows(np.arange(40 * buckets.PER_OCTAVE))
    return sorted({int(np.ceil(edge)) + step for edge in edges for step in (-1, 0, 1)} - {-1})


def engine_buckets(engine: QueryEngine, values: Sequence[int | None]) -> list[int]:
    """Return the buckets that an engine computes for values, in the same order, and close the engine."""
    try:
        rows = pl.DataFrame({"index": range(len(values)), "value": pl.Series(values, dtype=pl.Int64)})
        table = engine.put("numbers", rows)
        assigned = engine.fetch(table.select("index", number=buckets.of_column(table["value"])))
    finally:
        engine.close()
    return assigned.sort("index")["number"].to_list()
