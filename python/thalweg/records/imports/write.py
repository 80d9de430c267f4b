"""Writes a file of records, which is either complete or absent."""

import contextlib
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType

import pyarrow as pa
import pyarrow.parquet as pq

from thalweg.errors import Exit, ThalwegError
from thalweg.records.imports.items import RecordRow
from thalweg.records.schema import COLUMNS

ROWS = 50_000
"""Number of rows of a row group."""

TYPES = {"u64": pa.uint64(), "f64": pa.float64(), "string": pa.string(), "bool": pa.bool_()}

SCHEMA = pa.schema(
    [pa.field(name, TYPES[column.kind], nullable=column.is_optional) for name, column in COLUMNS.items()]
)

FORM = {
    "compression": "zstd",
    "use_dictionary": [field.name for field in SCHEMA if field.type == pa.string()],
    "column_encoding": {field.name: "DELTA_BINARY_PACKED" for field in SCHEMA if field.type == pa.uint64()},
}
"""Encodings of the columns, for `pyarrow.parquet.ParquetWriter`."""


def table_of(rows: Sequence[RecordRow]) -> pa.Table:
    """Create a table from rows; columns that are missing in a row are null."""
    return pa.table({name: [row.get(name) for row in rows] for name in COLUMNS}, schema=SCHEMA)


def with_all_columns(table: pa.Table) -> pa.Table:
    """Return the table with all columns of records, in order; missing ones are null."""
    present = set(table.column_names)
    columns = [
        table[field.name].cast(field.type) if field.name in present else pa.nulls(len(table), field.type)
        for field in SCHEMA
    ]
    return pa.Table.from_arrays(columns, schema=SCHEMA)


class RecordFile:
    """A file of records under construction, as a context manager: an unfinished file is removed at the end, and after
    an exception also the folders that were created for it.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._made: list[Path] = []
        self._outdated: list[Path] = []
        self._temporary: Path | None = None
        self._writer: pq.ParquetWriter | None = None
        self._rows: list[RecordRow] = []
        self._tables: list[pa.Table] = []
        self._waiting = 0

    def __enter__(self) -> "RecordFile":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        # On a full disk even closing fails; the files are removed nevertheless.
        if self._writer is not None:
            with contextlib.suppress(OSError):
                self._writer.close()
        if self._temporary is not None:
            self._temporary.unlink(missing_ok=True)
        if kind is not None:
            for folder in reversed(self._made):
                with contextlib.suppress(OSError):
                    folder.rmdir()

    def add(self, row: RecordRow) -> None:
        """Add a row; missing columns are null.

        Raises:
            ThalwegError: If the folder cannot be written.
        """
        self._rows.append(row)
        if len(self._rows) == ROWS:
            self.add_table(table_of(self._rows))
            self._rows = []

    def add_table(self, table: pa.Table) -> None:
        """Add rows with all columns.

        Raises:
            ThalwegError: If the folder cannot be written.
        """
        self._tables.append(table)
        self._waiting += len(table)
        if self._waiting >= ROWS:
            with self._explained_errors():
                self._flush(self._waiting // ROWS * ROWS)

    def close(self, metadata: Mapping[str, str]) -> None:
        """Write the remaining rows and the metadata, and sync the file to disk; it does not have its final name yet.

        Raises:
            ThalwegError: If the folder cannot be written.
        """
        with self._explained_errors():
            if self._rows:
                self.add_table(table_of(self._rows))
            writer = self._flush(self._waiting)
            writer.add_key_value_metadata(metadata)
            writer.close()
            self._writer = None
            assert self._temporary is not None
            with self._temporary.open("rb") as file:
                os.fsync(file.fileno())
            self._temporary.chmod(0o666 & ~_umask())

    def others(self, begin: str, name: str) -> list[Path]:
        """Return the record files in the folder whose names begin with `begin`, except `name`."""
        return [file for file in sorted(self._folder.glob(f"{begin}*.parquet")) if file.name != name]

    def replace(self, files: Iterable[Path]) -> None:
        """Let `finish` remove these files after it has renamed this one."""
        self._outdated += files

    def finish(self, name: str) -> tuple[Path, bool]:
        """Rename the finished file, and return its path and whether it replaced another one.

        Raises:
            ThalwegError: If the folder cannot be written.
        """
        with self._explained_errors():
            assert self._temporary is not None
            file_name = self._folder / name
            was_there = file_name.exists() or bool(self._outdated)
            self._temporary.replace(file_name)
            self._temporary = None
            for file in self._outdated:
                file.unlink(missing_ok=True)
        return file_name, was_there

    def _flush(self, count: int) -> pq.ParquetWriter:
        """Write the first `count` buffered rows, opening the file if necessary; return its writer."""
        writer = self._writer or self._open()
        if self._tables:
            table = pa.concat_tables(self._tables)
            if count:
                writer.write_table(table[:count], row_group_size=ROWS)
            self._tables = [table[count:]]
            self._waiting -= count
        return writer

    def _open(self) -> pq.ParquetWriter:
        missing = [self._folder, *self._folder.parents]
        missing = [folder for folder in missing if not folder.exists()]
        for folder in reversed(missing):
            folder.mkdir()
            self._made.append(folder)
        handle, name = tempfile.mkstemp(dir=self._folder, prefix=".import.", suffix=".part")
        os.close(handle)
        self._temporary = Path(name)
        self._writer = pq.ParquetWriter(name, SCHEMA, **FORM)
        return self._writer

    @contextlib.contextmanager
    def _explained_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise ThalwegError(
                "cannot-write",
                f"records cannot be written to `{self._folder}`: {(error.strerror or str(error)).lower()}",
                place=str(self._folder),
                hint="choose another folder with --out DIR",
                exit_code=Exit.CANNOT_WRITE,
            ) from error


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
