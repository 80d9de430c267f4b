"""What class an engine puts numbers into."""

from collections.abc import Sequence

import numpy as np
import polars as pl
from thalweg.advise import QueryEngine
from thalweg.advise.counting import buckets


def at_every_edge() -> list[int]:
    """Return the numbers around the edges of all classes."""
    edges = buckets.lows(np.arange(40 * buckets.PER_OCTAVE))
    return sorted({int(np.ceil(edge)) + step for edge in edges for step in (-1, 0, 1)} - {-1})


def found_by(engine: QueryEngine, values: Sequence[int | None]) -> list[int]:
    """Have an engine find the classes of numbers, in the order of these; the engine is closed."""
    try:
        rows = pl.DataFrame({"place": range(len(values)), "value": pl.Series(values, dtype=pl.Int64)})
        table = engine.put("numbers", rows)
        found = engine.fetch(table.select("place", number=buckets.of_column(table["value"])))
    finally:
        engine.close()
    return found.sort("place")["number"].to_list()
