"""The columns of records as polars types, from their declaration in crates/trace."""

import polars as pl

from thalweg.results.columns import RECORDS
from thalweg.results.tables import DTYPES

COLUMNS = {column.name: column for column in RECORDS["records"].columns}

SCHEMA = pl.Schema({name: DTYPES[column.kind]() for name, column in COLUMNS.items()})

ALWAYS = [name for name, column in COLUMNS.items() if not column.is_optional]
"""Columns that are never null, by which a table of records is recognised."""

TRANSFER = "transfer"
"""Kind of a row about one transfer; rows of the other two kinds are about connections."""
CLOSE = "close"
INTERIM = "interim"
KINDS = (CLOSE, INTERIM, TRANSFER)
"""Known kinds; rows of other kinds are excluded."""

MOMENTS = ("start_us", "end_us")
"""Columns with UNIX times, in which zero means unknown."""

LATEST_US = 253_402_300_799_999_999
"""Latest valid UNIX time, the end of the year 9999."""

UNKNOWN_TEXT = "unknown"
"""Replacement of a missing text when rows are grouped by it."""


def is_connection() -> pl.Expr:
    """Return which rows are about connections, closed or open."""
    return pl.col("kind") != TRANSFER


def weight() -> pl.Expr:
    """Return the weight of a row: N with --sample 1/N, otherwise 1."""
    return pl.col("sampled_one_in").fill_null(1)
