"""Reads Parquet files as one lazy table of polars, decoded by Arrow.

A flipped bit in a page can make polars abort the process; Arrow raises an exception instead.
"""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from polars.io.plugins import register_io_source

from thalweg.results.reading import Unreadable, finite, first_line, reading

ROWS_AT_ONCE = 1 << 17
"""Number of rows that are decoded together; a large file may not fit in memory."""


def scan(files: Sequence[Path], schema: pl.Schema) -> pl.LazyFrame:
    """Return the rows of Parquet files, in the order of the files.

    Missing columns and non-finite floats are null. Damaged rows raise an exception on collection.
    """

    def decode(
        columns: list[str] | None, predicate: pl.Expr | None, limit: int | None, _: int | None
    ) -> Iterator[pl.DataFrame]:
        selected = schema if columns is None else pl.Schema({name: schema[name] for name in columns})
        rows_left = limit
        for tables in _batched(files, list(selected)):
            frame = _frame(tables, selected)
            if predicate is not None:
                frame = frame.filter(predicate)
            if rows_left is not None:
                frame = frame.head(rows_left)
                rows_left -= frame.height
            yield frame
            if rows_left == 0:
                return
        if not files:
            yield pl.DataFrame(schema=selected)

    return register_io_source(decode, schema=schema)


def columns_of(schema: pa.Schema) -> pl.Schema:
    """Return the columns of a file as polars reads them."""
    return pl.DataFrame(pa.Table.from_batches([], schema)).schema


def damaged(files: Iterable[Path]) -> Iterator[tuple[Path, str]]:
    """Decode every row of Parquet files; yield the files that cannot be decoded, each with the reason."""
    files = list(files)
    pool = ThreadPoolExecutor()
    try:
        for file, why in zip(files, pool.map(_damage, files), strict=True):
            if why is not None:
                yield file, why
    finally:
        # The caller may need only the first damaged file.
        pool.shutdown(cancel_futures=True)
        pa.default_memory_pool().release_unused()


def _damage(file: Path) -> str | None:
    try:
        with reading():
            for table in _decoded(file, None):
                table.validate(full=True)
    except (Unreadable, OSError) as error:
        return first_line(error)
    return None


def _batched(files: Sequence[Path], columns: Sequence[str]) -> Iterator[list[pa.Table]]:
    tables: list[pa.Table] = []
    rows = 0
    for file in files:
        for table in _decoded(file, columns):
            if tables and (rows >= ROWS_AT_ONCE or not table.schema.equals(tables[0].schema)):
                yield tables
                tables, rows = [], 0
            tables.append(table)
            rows += table.num_rows
    if tables:
        yield tables


def _decoded(file: Path, columns: Sequence[str] | None) -> Iterator[pa.Table]:
    """Decode the requested columns that a file has; a large file is decoded as several tables."""
    with pq.ParquetFile(file, pre_buffer=False) as parquet:
        names = parquet.schema_arrow.names
        present = names if columns is None else [name for name in columns if name in names]
        if parquet.metadata.num_rows <= ROWS_AT_ONCE:
            yield parquet.read(columns=present, use_threads=False)
            return
        for batch in parquet.iter_batches(ROWS_AT_ONCE, columns=present):
            yield pa.Table.from_batches([batch])


def _frame(tables: list[pa.Table], schema: pl.Schema) -> pl.DataFrame:
    rows = pa.concat_tables(tables)
    # polars assumes that text is valid UTF-8.
    rows.validate(full=True)
    frame = pl.DataFrame(rows)
    present = frame.schema
    # The number of rows is known even if a file has none of the columns.
    lacking = pl.repeat(None, rows.num_rows)
    return frame.select(
        (finite(name, present[name]) if name in present else lacking.alias(name)).cast(dtype)
        for name, dtype in schema.items()
    )
