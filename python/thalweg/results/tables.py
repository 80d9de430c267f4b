"""Tables of a run directory as polars frames: sorted by their keys, with their columns even when there is no row."""

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from thalweg.results.columns import TABLES

DTYPES: dict[str, type[pl.DataType]] = {"u64": pl.UInt64, "f64": pl.Float64, "string": pl.String, "bool": pl.Boolean}


def keys(table: str) -> list[str]:
    """Columns that a table is sorted by.

    >>> keys("queue")
    ['experiment', 'repetition', 'link', 't_us']
    """
    return [column.name for column in TABLES[table].columns if column.is_key]


def scan(run: Path, table: str, ids: Sequence[str]) -> pl.LazyFrame:
    """Read the files of the experiments `ids`, lazily; a file that is absent has no rows."""
    schema = pl.Schema({column.name: DTYPES[column.kind]() for column in TABLES[table].columns})
    files = [file for id in ids if (file := run / table / f"{id}.parquet").exists()]
    if not files:
        return pl.LazyFrame(schema=schema)
    return pl.concat([pl.scan_parquet(file) for file in files], how="diagonal_relaxed").sort(
        keys(table), maintain_order=True
    )
