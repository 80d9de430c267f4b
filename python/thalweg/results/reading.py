"""Reading files with other people's libraries: every failure becomes one exception, and a float that is not a finite
number becomes empty.

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
    found: pl.DataType | None
    """Its type in the file; None: the file does not have it."""
    wanted: pl.DataType


def unfit_column(found: pl.Schema, wanted: pl.Schema, needed: Sequence[str]) -> UnfitColumn | None:
    """Return the first needed column that a file lacks, else the first one whose type does not fit; None: all fit."""
    for name in needed:
        if name not in found:
            return UnfitColumn(name, None, wanted[name])
    for name, dtype in wanted.items():
        if name in found and not _fits(found[name], dtype):
            return UnfitColumn(name, found[name], dtype)
    return None


def _fits(found: pl.DataType, wanted: pl.DataType) -> bool:
    """Return whether a file's column can be read as a column of another type without a loss of meaning."""
    if wanted == pl.UInt64:
        return found.is_integer() or found == pl.Null
    if wanted == pl.Float64:
        return found.is_numeric() or found == pl.Null
    return found in (wanted, pl.Null)


def finite(name: str, dtype: pl.DataType) -> pl.Expr:
    """Return a column of this type; NaN and the infinities are empty."""
    column = pl.col(name)
    return pl.when(column.is_finite()).then(column).alias(name) if dtype in FLOATS else column


@contextmanager
def _without_panic_messages() -> Iterator[None]:
    """Hold back what is written to standard error, and drop it if polars panics.

    The file descriptor belongs to the whole process. Other threads than the main one therefore leave it alone.
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
    held = os.memfd_create("stderr")
    sys.stderr.flush()
    os.dup2(held, STDERR)
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
        text = os.pread(held, os.fstat(held).st_size, 0)
        os.close(held)
        if text and not panicked:
            os.write(STDERR, text)
