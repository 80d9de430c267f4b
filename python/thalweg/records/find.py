"""Finds record files in files and folders, without copies, files that were merged into others and foreign files.

The agent writes a file at each flush, and later merges consecutive files into one before it removes them. After a crash
between the two steps both exist; the flush numbers in the names show which files may have been merged.
"""

import hashlib
import os
import re
import shlex
import stat
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

import polars as pl
import pyarrow.parquet as pq

from thalweg.errors import Exit, ThalwegError
from thalweg.records.schema import ALWAYS, SCHEMA
from thalweg.results import parquet
from thalweg.results.reading import Unreadable, reading, unfit_column

NAME = re.compile(r"\d{8}T\d{6}Z-(\d{10})-(\d{10})\.parquet")
"""Name of a file of the agent: its start time, and the numbers of its first and its last flush."""

IDENTITY = ("end_us", "connection", "kind")
"""Columns by which the same row is recognised in two files. Transfers of a connection that end at the same time are
equal in them.
"""

FORBIDDEN = "this user may not read it"

GONE = "file-gone"

Result = TypeVar("Result")

TRIES = 5
"""Maximum number of attempts to read records, because the agent removes files."""


@dataclass(frozen=True)
class LeftOutFile:
    """An excluded file, and the reason."""

    file: Path
    why: str


@dataclass(frozen=True)
class FoundFiles:
    """The files to read, each with its schema, and the excluded files."""

    files: dict[Path, pl.Schema]
    left_out: list[LeftOutFile]


def find(paths: Sequence[Path]) -> FoundFiles:
    """Find the record files in files and folders, recursively.

    Raises:
        ThalwegError: If a path cannot be read, files are repeatedly removed meanwhile (`GONE`), or no file contains
            readable records.
    """
    return unless_gone(lambda: _find(paths))


def unless_gone(attempt: Callable[[], Result]) -> Result:
    """Return the result of an attempt to read records; repeat it if a file is removed meanwhile.

    Raises:
        ThalwegError: If all `TRIES` attempts fail for this reason, or one fails for another reason.
    """
    for _ in range(TRIES - 1):
        try:
            return attempt()
        except ThalwegError as error:
            if error.code != GONE:
                raise
    return attempt()


def _find(paths: Sequence[Path]) -> FoundFiles:
    listed, equal = _without_equal(_listed(paths))
    files, merged = _without_merged(listed)
    skipped = [*equal, *merged]
    schemas: dict[Path, pl.Schema] = {}
    for file in files:
        schema = _schema(file)
        if isinstance(schema, str):
            skipped.append(LeftOutFile(file, schema))
        else:
            schemas[file] = schema
    if not schemas:
        raise nothing(paths, skipped)
    return FoundFiles(schemas, skipped)


def gone(file: Path) -> ThalwegError:
    """Return the error that a file was removed."""
    return ThalwegError(
        GONE,
        f"`{file}` was removed while the records were read",
        place=str(file),
        expected="files that are not removed while they are read",
        hint="run the command again; if the agent merges files every few seconds, copy the folder first",
        exit_code=Exit.FAILED,
    )


def nothing(paths: Sequence[Path], skipped: Sequence[LeftOutFile]) -> ThalwegError:
    """Return the error that no file of these paths contains readable records."""
    names = ", ".join(f"`{path}`" for path in paths)
    if skipped:
        first = skipped[0]
        if first.why == FORBIDDEN:
            return _forbidden(first.file)
        return ThalwegError(
            "no-records",
            f"there are no records in {names}: {first.file}: {first.why}",
            place=str(first.file),
            expected="Parquet files that thalweg-agent record or thalweg import wrote",
            exit_code=Exit.FAILED,
        )
    return ThalwegError(
        "no-records",
        f"there are no records in {names}",
        place=str(paths[0]) if paths else None,
        expected="Parquet files that thalweg-agent record or thalweg import wrote",
        hint="thalweg-agent writes its first file 10 seconds after the first connection; see thalweg-agent status",
        exit_code=Exit.FAILED,
    )


def _listed(paths: Sequence[Path]) -> list[Path]:
    """List the files, each once. While files are merged, one listing can miss both the parts and the merged file, so
    listing is repeated until two results are identical.
    """
    before: list[Path] | None = None
    while (files := list(dict.fromkeys(file for path in paths for file in _files(path)))) != before:
        before = files
    return files


def _files(path: Path) -> Iterator[Path]:
    try:
        is_folder = stat.S_ISDIR(path.stat().st_mode)
    except PermissionError as error:
        raise _forbidden(path) from error
    except OSError as error:
        raise ThalwegError(
            "no-file",
            f"there is no file or folder `{path}`",
            place=str(path),
            expected="files of records, or folders with such files",
            hint="thalweg-agent record writes them to /var/lib/thalweg/records unless --out sets another folder",
        ) from error
    if is_folder:
        yield from filter(_is_file, _within(path))
    else:
        yield path


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except PermissionError as error:  # the folder may be listed, but not searched
        raise _forbidden(path) from error


def _within(folder: Path) -> Iterator[Path]:
    """Yield the Parquet files in a folder and below it; names with a leading dot are unfinished, and skipped.

    A folder without read permission is an error, because it would appear empty.
    """

    def refused(error: OSError) -> None:
        if isinstance(error, PermissionError):
            raise _forbidden(Path(error.filename)) from error

    for inner, folders, names in os.walk(folder, onerror=refused):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield from (
            Path(inner, name) for name in sorted(names) if name.endswith(".parquet") and not name.startswith(".")
        )


def _forbidden(path: Path) -> ThalwegError:
    quoted = shlex.quote(str(path))
    return ThalwegError(
        "cannot-read",
        f"this user may not read `{path}`",
        place=str(path),
        expected="records that this user may read",
        hint=f'make a copy of your own: sudo cp -rT {quoted} copy && sudo chown -R "$USER" copy\n'
        "or allow a group to read them: docs/reference/records.md describes how",
        exit_code=Exit.FAILED,
    )


@dataclass(frozen=True)
class _Span:
    file: Path
    first: int
    last: int

    def is_within(self, other: "_Span") -> bool:
        """Return whether `other`, which begins no later, is in the same folder and covers all flushes of this file, and
        more.
        """
        is_shorter = (self.first, self.last) != (other.first, other.last)
        return is_shorter and self.file.parent == other.file.parent and self.last <= other.last


def _without_equal(files: Sequence[Path]) -> tuple[list[Path], list[LeftOutFile]]:
    """Exclude each file with the same content as an earlier one."""
    sizes: defaultdict[int, list[Path]] = defaultdict(list)
    for file in files:
        try:
            sizes[file.stat().st_size].append(file)
        except FileNotFoundError:
            raise gone(file) from None
    skipped = []
    for alike in sizes.values():
        first_of: dict[bytes, Path] = {}
        for file in alike if len(alike) > 1 else []:
            first = first_of.setdefault(_digest(file), file)
            if first != file:
                skipped.append(LeftOutFile(file, f"it is a copy of {first}"))
    left_out = {item.file for item in skipped}
    return [file for file in files if file not in left_out], skipped


def _digest(file: Path) -> bytes:
    """Return a hash of the content; the path of a file that may not be read."""
    try:
        with file.open("rb") as content:
            return hashlib.file_digest(content, "blake2b").digest()
    except PermissionError:
        return bytes(file)
    except FileNotFoundError:
        raise gone(file) from None


def _without_merged(files: Sequence[Path]) -> tuple[list[Path], list[LeftOutFile]]:
    """Exclude each file whose flushes and rows are all contained in another file of its folder."""
    names = [(file, match) for file in files if (match := NAME.fullmatch(file.name))]
    spans = [_Span(file, int(match[1]), int(match[2])) for file, match in names]
    rows_of = lru_cache(maxsize=4)(_keys)
    copies: dict[Path, Path] = {}
    begun: list[_Span] = []
    for span in sorted(spans, key=lambda span: (span.file.parent, span.first, -span.last)):
        begun = [other for other in begun if other.file.parent == span.file.parent and other.last >= span.first]
        # Files of several machines in one folder can have overlapping flush numbers, so the rows are compared, too.
        wider = (other.file for other in begun if span.is_within(other))
        if merged := next((file for file in wider if _is_copy(rows_of(span.file), rows_of(file))), None):
            copies[span.file] = merged
        else:
            begun.append(span)
    skipped = [LeftOutFile(file, f"its rows are also in {merged.name}") for file, merged in copies.items()]
    return [file for file in files if file not in copies], skipped


def _is_copy(rows: pl.DataFrame | None, merged: pl.DataFrame | None) -> bool:
    """Return whether all rows are also in the other table; False if one of them is unreadable."""
    if rows is None or merged is None:
        return False
    return rows.join(merged, on=rows.columns, how="anti").is_empty()


def _keys(file: Path) -> pl.DataFrame | None:
    """Return the columns that identify the rows of a file; `None` if it is unreadable."""
    try:
        with reading():
            return pl.read_parquet(file, columns=list(IDENTITY)).cast({name: SCHEMA[name] for name in IDENTITY})
    except (Unreadable, PermissionError):
        return None
    except FileNotFoundError:
        raise gone(file) from None


def _schema(file: Path) -> pl.Schema | str:
    """Return a file's columns from its footer, or the reason why the file is excluded."""
    try:
        with reading():
            schema = parquet.columns_of(pq.read_schema(file))
            # polars rejects some footers that Arrow reads.
            pl.read_parquet_schema(file)
    except FileNotFoundError:
        raise gone(file) from None
    except PermissionError:
        return FORBIDDEN
    except Unreadable:
        is_readable = os.access(file, os.R_OK, effective_ids=True)
        return "it is damaged, or not a Parquet file" if is_readable else FORBIDDEN
    if unfit := unfit_column(schema, SCHEMA, ALWAYS):
        if unfit.actual is None:
            return f"it contains no records: it has no column {unfit.name}"
        return f"it contains no records: its column {unfit.name} is {unfit.actual}, not {unfit.expected}"
    return schema
