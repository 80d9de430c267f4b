"""Reading files with third-party libraries: every failure becomes one exception, and non-finite floats become empty.

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
    """A library failed while it read files; the text is the first line of its reason."""


@contextmanager
def reading() -> Iterator[None]:
    """Turn every failure of the library calls inside into `Unreadable`, without a panic's stack trace.

    Ctrl-C and the end of the process pass unchanged, as do missing files and missing permissions.

    Raises `Unreadable`, `FileNotFoundError` or `PermissionError`; `ThalwegError` if a resource is used up.
    """
    try:
        with _without_panic_messages():
            yield
    except (FileNotFoundError, PermissionError, MemoryError, ThalwegError):
        raise
    except OSError as error:
        raise shortage(error) or Unreadable(first_line(error)) from None
    except PANIC:
        raise Unreadable("its content contradicts itself") from None
    except Exception as error:
        raise shortage_behind(error) or Unreadable(first_line(error)) from None


def first_line(error: BaseException) -> str:
    """Return the first line of an error's text; its type's name if the text is empty.

    >>> first_line(ValueError("bad page\\nat byte 7")), first_line(ValueError())
    ('bad page', 'ValueError')
    """
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


@dataclass(frozen=True)
class UnfitColumn:
    """A column that keeps a file from being read as a table."""

    name: str
    actual: pl.DataType | None
    """Its type in the file; None: the file does not have it."""
    expected: pl.DataType


def unfit_column(schema: pl.Schema, expected: pl.Schema, needed: Sequence[str]) -> UnfitColumn | None:
    """Return the first needed column that a file lacks, else the first one with a wrong type; None: all are valid."""
    for name in needed:
        if name not in schema:
            return UnfitColumn(name, None, expected[name])
    for name, dtype in expected.items():
        if name in schema and not _fits(schema[name], dtype):
            return UnfitColumn(name, schema[name], dtype)
    return None


def _fits(dtype: pl.DataType, expected: pl.DataType) -> bool:
    """Return whether a file's column can be read as a column of another type without a loss of meaning."""
    if expected == pl.UInt64:
        return dtype.is_integer() or dtype == pl.Null
    if expected == pl.Float64:
        return dtype.is_numeric() or dtype == pl.Null
    return dtype in (expected, pl.Null)


def finite(name: str, dtype: pl.DataType) -> pl.Expr:
    """Return a column of this type; NaN and the infinities are empty."""
    column = pl.col(name)
    return pl.when(column.is_finite()).then(column).alias(name) if dtype in FLOATS else column


@contextmanager
def _without_panic_messages() -> Iterator[None]:
    """Buffer standard error, and discard it if polars panics.

    The file descriptor belongs to the whole process. Only the main thread therefore redirects it.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    try:
        original = os.dup(STDERR)
    except OSError:
        # Standard error is closed.
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
