"""Tables of a run directory as polars frames: sorted by their keys, with their columns even when there is no row."""

import errno
import os
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from thalweg.results.columns import TABLES
from thalweg.results.reading import Unreadable, finite, first_line, fits, reading

DTYPES: dict[str, type[pl.DataType]] = {"u64": pl.UInt64, "f64": pl.Float64, "string": pl.String, "bool": pl.Boolean}


class DamagedTable(Exception):
    """A file that is not the table that it should be."""

    def __init__(self, file: Path, why: str) -> None:
        """Name the file, and say what is wrong with it."""
        super().__init__(why)
        self.file = file
        self.why = why


def keys(table: str) -> list[str]:
    """Columns that a table is sorted by.

    >>> keys("queue")
    ['experiment', 'repetition', 'link', 't_us']
    """
    return [column.name for column in TABLES[table].columns if column.is_key]


def scan(run: Path, table: str, ids: Sequence[str]) -> pl.LazyFrame:
    """Read the files of the experiments `ids`, lazily; a file that is absent has no rows.

    Raises `PermissionError` if a file may not be read, and `DamagedTable` if one of them is no such table.
    """
    schema = pl.Schema({column.name: DTYPES[column.kind]() for column in TABLES[table].columns})
    files = [file for id in ids if (file := run / table / f"{id}.parquet").exists()]
    if not files:
        return pl.LazyFrame(schema=schema)
    needed = [column.name for column in TABLES[table].columns if not column.is_optional]
    schemas = [(file, _schema(file, schema, needed)) for file in files]
    # The empty table in front brings optional columns that the files of an older version lack.
    frames = [pl.LazyFrame(schema=schema), *(_finite(pl.scan_parquet(file), found) for file, found in schemas)]
    return pl.concat(frames, how="diagonal_relaxed").sort(keys(table), maintain_order=True)


def _schema(file: Path, wanted: pl.Schema, needed: Sequence[str]) -> pl.Schema:
    """Read the file's end, where its columns are named: a truncated file has none."""
    try:
        with reading():
            found = pl.Schema(pl.read_parquet_schema(file))
    except PermissionError as error:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(file)) from error
    except (Unreadable, OSError) as error:
        raise DamagedTable(file, first_line(error)) from None
    if missing := [name for name in needed if name not in found]:
        raise DamagedTable(file, f"it has no column `{missing[0]}`")
    for name, dtype in wanted.items():
        if name in found and not fits(found[name], dtype):
            raise DamagedTable(file, f"its column `{name}` is {found[name]}, not {dtype}")
    return found


def _finite(rows: pl.LazyFrame, columns: pl.Schema) -> pl.LazyFrame:
    """Empty the floats that are not finite."""
    return rows.with_columns(finite(name, dtype) for name, dtype in columns.items() if dtype.is_float())
