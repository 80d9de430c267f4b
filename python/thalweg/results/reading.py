"""Reads files with third-party libraries: most failures become `Unreadable`, and non-finite floats become null.

A damaged file can make polars panic. A panic reaches Python as pyo3's PanicException, which derives from
`BaseException`, and leaves a stack trace on standard error. Neither must reach the user.
"""

import os
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import polars as pl

from thalweg.errors import ThalwegError, shortage, shortage_behind

STDERR = 2
"""File descriptor of standard error, which Rust writes to directly."""

PANIC = pl.exceptions.PanicException

FLOATS = (pl.Float32, pl.Float64)


class Unreadable(Exception):
    """A library failed to read a file; the text is the first line of the reason."""


@contextmanager
def reading() -> Iterator[None]:
    """Convert failures of the library calls inside to `Unreadable`, without a panic's stack trace.

    Raises:
        Unreadable: If a call fails for another reason.
        FileNotFoundError: If a file is missing.
        PermissionError: If a file may not be read.
        MemoryError: If memory is exhausted.
        ThalwegError: If another resource is exhausted.
    """
    try:
        with _without_panic_messages():
            yield
    except (FileNotFoundError, PermissionError, MemoryError, ThalwegError):
        raise
    except OSError as error:
        raise shortage(error) or Unreadable(first_line(error)) from None
    except PANIC:
        raise Unreadable("its content is inconsistent") from None
    except Exception as error:
        raise shortage_behind(error) or Unreadable(first_line(error)) from None


def first_line(error: BaseException) -> str:
    """Return the first line of an error's text, or the name of its type if the text is empty.

    >>> first_line(ValueError("bad page\\nat byte 7")), first_line(ValueError())
    ('bad page', 'ValueError')
    """
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


@dataclass(frozen=True)
class UnfitColumn:
    """A column that prevents a file from being read as a table."""

    name: str
    actual: pl.DataType | None
    """Type of the column in the file; None: the file lacks it."""
    expected: pl.DataType


def unfit_column(schema: pl.Schema, expected: pl.Schema, needed: Sequence[str]) -> UnfitColumn | None:
    """Return the first needed column that a file lacks, otherwise the first column with a wrong type; None: all are
    valid.
    """
    for name in needed:
        if name not in schema:
            return UnfitColumn(name, None, expected[name])
    for name, dtype in expected.items():
        if name in schema and not _fits(schema[name], dtype):
            return UnfitColumn(name, schema[name], dtype)
    return None


def _fits(dtype: pl.DataType, expected: pl.DataType) -> bool:
    """Return whether a file's column can be read as the expected type. A column of the type Null fits."""
    if expected == pl.UInt64:
        return dtype.is_integer() or dtype == pl.Null
    if expected == pl.Float64:
        return dtype.is_numeric() or dtype == pl.Null
    return dtype in (expected, pl.Null)


def finite(name: str, dtype: pl.DataType) -> pl.Expr:
    """Return a column of this type, with NaN and infinities replaced by null."""
    column = pl.col(name)
    return pl.when(column.is_finite()).then(column).alias(name) if dtype in FLOATS else column


@contextmanager
def _without_panic_messages() -> Iterator[None]:
    """Buffer standard error, and discard its content if polars panics.

    The file descriptor is shared by the process, so only the main thread redirects it.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    try:
        original = os.dup(STDERR)
    except OSError:
        # Standard error is closed, so there is nothing to redirect.
        yield
        return
    buffer = os.memfd_create("stderr")
    sys.stderr.flush()
    os.dup2(buffer, STDERR)
    panicked = False
    try:
        yield
    except PANIC:
        panicked = True
        raise
    finally:
        sys.stderr.flush()
        os.dup2(original, STDERR)
        os.close(original)
        text = os.pread(buffer, os.fstat(buffer).st_size, 0)
        os.close(buffer)
        if text and not panicked:
            os.write(STDERR, text)
