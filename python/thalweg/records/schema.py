"""The columns of records as polars has them, from their declaration in crates/trace."""

import polars as pl

from thalweg.results.columns import RECORDS
from thalweg.results.tables import DTYPES

COLUMNS = {column.name: column for column in RECORDS["records"].columns}
"""Every column by its name, in order."""

SCHEMA = pl.Schema({name: DTYPES[column.kind]() for name, column in COLUMNS.items()})

ALWAYS = [name for name, column in COLUMNS.items() if not column.is_optional]
"""Columns that no row leaves empty: what makes a table records."""

TRANSFER = "transfer"
"""Kind of a row that is one object; rows of both other kinds are connections."""
CLOSE = "close"
INTERIM = "interim"
KINDS = (CLOSE, INTERIM, TRANSFER)
"""Kinds that this version knows: of others it cannot tell what they count."""

MOMENTS = ("start_us", "end_us")
"""Columns that are UNIX times: zero stands for a time that is not known."""

LATEST_US = 253_402_300_799_999_999
"""The last moment of the year 9999 as UNIX time, beyond which no calendar here goes."""

UNKNOWN_TEXT = "unknown"
"""What stands for a text that a row leaves empty, where rows are grouped by it."""


def is_connection() -> pl.Expr:
    """Return which rows are about a connection: those that closed, and the last look at those that had not."""
    return pl.col("kind") != TRANSFER


def weight() -> pl.Expr:
    """Return the number of connections or transfers that a row stands for: with --sample 1/N, N."""
    return pl.col("sampled_one_in").fill_null(1)
