"""The columns of records as polars has them, from their declaration in crates/trace."""

import polars as pl

from thalweg.results.columns import RECORDS
from thalweg.results.tables import DTYPES

COLUMNS = {column.name: column for column in RECORDS["records"].columns}
"""Every column by its name, in order."""

SCHEMA = pl.Schema({name: DTYPES[column.kind]() for name, column in COLUMNS.items()})

ALWAYS = [name for name, column in COLUMNS.items() if not column.is_optional]
"""Columns that are never empty: they identify a table of records."""

TRANSFER = "transfer"
"""Kind of a row that is one object; rows of both other kinds are connections."""
CLOSE = "close"
INTERIM = "interim"
KINDS = (CLOSE, INTERIM, TRANSFER)
"""Known kinds: rows of other kinds cannot be counted."""

MOMENTS = ("start_us", "end_us")
"""Columns with UNIX times: zero means unknown."""

LATEST_US = 253_402_300_799_999_999
"""The last moment of the year 9999 as UNIX time, the limit of calendars here."""

UNKNOWN_TEXT = "unknown"
"""Replacement of an empty text when rows are grouped by it."""


def is_connection() -> pl.Expr:
    """Return the rows about connections: those of closed ones, and the last sample of open ones."""
    return pl.col("kind") != TRANSFER


def weight() -> pl.Expr:
    """Return the number of connections or transfers that a row stands for: with --sample 1/N, N."""
    return pl.col("sampled_one_in").fill_null(1)
