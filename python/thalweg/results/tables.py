"""Tables of a run directory as polars frames: sorted by key, and with all columns even if there are no rows."""

import errno
import os
from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from thalweg.results import parquet
from thalweg.results.columns import TABLES
from thalweg.results.reading import Unreadable, first_line, reading, unfit_column

DTYPES: dict[str, type[pl.DataType]] = {"u64": pl.UInt64, "f64": pl.Float64, "string": pl.String, "bool": pl.Boolean}


class DamagedTable(Exception):
    """A file that is not a valid table."""

    def __init__(self, file: Path, why: str) -> None:
        super().__init__(why)
        self.file = file
        self.why = why


def keys(table: str) -> list[str]:
    """Return the columns by which a table is sorted.

    >>> keys("queue")
    ['experiment', 'repetition', 'link', 't_us']
    """
    return [column.name for column in TABLES[table].columns if column.is_key]


def scan(run: Path, table: str, ids: Sequence[str]) -> pl.LazyFrame:
    """Scan the files of the experiments `ids` lazily; a missing file has no rows.

    Non-finite floats are null. Damaged rows raise an exception on collection.

    Raises:
        PermissionError: If a file may not be read.
        DamagedTable: If a file is malformed or has unexpected columns.
    """
    schema = pl.Schema({column.name: DTYPES[column.kind]() for column in TABLES[table].columns})
    files = [file for id in ids if (file := run / table / f"{id}.parquet").exists()]
    needed = [column.name for column in TABLES[table].columns if not column.is_optional]
    checked = None
    for file, arrow in zip(files, _arrow_schemas(files), strict=True):
        if arrow != checked:
            _check_columns(file, arrow, schema, needed)
            checked = arrow
    return parquet.scan(files, schema).sort(keys(table), maintain_order=True)


def _arrow_schemas(files: Sequence[Path]) -> list[pa.Schema]:
    """Read the schema in the footer of each file; a truncated file has no footer."""
    schemas: list[pa.Schema] = []
    try:
        with reading():
            schemas.extend(pq.read_schema(file) for file in files)
    except PermissionError as error:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(files[len(schemas)])) from error
    except (Unreadable, OSError) as error:
        raise DamagedTable(files[len(schemas)], first_line(error)) from None
    return schemas


def _check_columns(file: Path, arrow: pa.Schema, expected: pl.Schema, needed: Sequence[str]) -> None:
    try:
        with reading():
            columns = parquet.columns_of(arrow)
    except Unreadable as error:
        raise DamagedTable(file, first_line(error)) from None
    if unfit := unfit_column(columns, expected, needed):
        if unfit.actual is None:
            raise DamagedTable(file, f"it has no column `{unfit.name}`")
        raise DamagedTable(file, f"its column `{unfit.name}` is {unfit.actual}, not {unfit.expected}")
