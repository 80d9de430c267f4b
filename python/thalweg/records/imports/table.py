"""Imports arbitrary CSV: the user maps its columns to those of records.

thalweg import csv flows.csv --map end_us=finished:s --map acked_bytes=size --map fct_us=time:ms --out records/
"""

import csv
import dataclasses
import itertools
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import polars as pl

from thalweg.errors import Exit, Source, ThalwegError
from thalweg.records.imports.addresses import Addresses
from thalweg.records.imports.blocks import Block, RowBlock
from thalweg.records.imports.items import (
    TOO_LONG,
    ImportedRow,
    ImportedValue,
    Item,
    SourceFile,
    Unread,
    item,
    rows_of_csv,
)
from thalweg.records.imports.mapped import Mapped, Notation, mapped_row, units, with_time
from thalweg.records.imports.mapped_columns import conversion, has_unread_constants, with_mapped
from thalweg.records.imports.vectorized import CERTAIN, Values
from thalweg.records.schema import CLOSE, INTERIM, TRANSFER

KINDS = (CLOSE, INTERIM, TRANSFER)
MAX_HEADING = 1000
SEPARATOR = re.compile(r'"?sep=(.)"?')
"""First line in which a spreadsheet names the separator."""
DELIMITERS = (",", ";", "\t", "|")
TAB = "\t"
TAB_TYPED = r"'\t'"
"""A tab as typed in a shell."""


BLOCK_ROWS = 2**15


@dataclasses.dataclass(frozen=True)
class _Table:
    heading: Sequence[str]
    notation: Notation
    rows: Iterator[tuple[int, list[str]] | Item]
    """Non-empty rows with their line numbers, and unreadable lines."""


class CsvTable:
    """Importer of CSV with a heading."""

    source = "csv"
    shows_cuts = False
    expected = "CSV with a header line"
    hint = "--map COLUMN=HEADING[:UNIT], as in --map end_us=time:s; the columns are in docs/reference/records.md"

    def __init__(self, mapped: Sequence[Mapped], delimiter: str = "", notation: Notation | None = None) -> None:
        """Create an importer from the map, the delimiter, and the notation of numbers and times.

        The default delimiter is that of a first line `sep=`, a tab in files named .tsv, otherwise a comma.

        Raises:
            ThalwegError: If the map has no end time.
        """
        self._mapped = with_time(mapped)
        self._delimiter = delimiter
        self._notation = notation or Notation()
        self._kind = kind_of(mapped)

    def read(self, source: SourceFile) -> Iterator[Item]:
        """Parse a file.

        Raises:
            ThalwegError: If the heading is not CSV, or does not have each column of the map once.
        """
        table = self._opened(source)
        for row in table.rows:
            yield row if isinstance(row, Item) else self._item(source, table, *row)

    def blocks(self, source: SourceFile) -> Iterator[Block] | None:
        """Read a file in blocks of rows; `None` if a constant of the map must be read row by row.

        Raises:
            ThalwegError: When the iterator starts, for the reasons of `read`.
        """
        notations = (dataclasses.replace(self._notation, is_european=is_european) for is_european in (False, True))
        if any(has_unread_constants(self._mapped, notation) for notation in notations):
            return None
        return self._blocks(source)

    def _blocks(self, source: SourceFile) -> Iterator[Block]:
        table = self._opened(source)
        rows = table.rows
        while block := list(itertools.islice(rows, BLOCK_ROWS)):
            yield RowBlock(block, partial(self._columns, source, table), partial(self._item, source, table))

    def _opened(self, source: SourceFile) -> "_Table":
        is_tabbed = source.path.name.removesuffix(".gz").endswith(".tsv")
        first = next(source.text, "")
        separator = SEPARATOR.fullmatch(first.rstrip("\r\n"))
        lines = source.text if separator else itertools.chain([first], source.text)
        delimiter = self._delimiter or (separator[1] if separator else "\t" if is_tabbed else ",")
        reader = csv.reader(lines, delimiter=delimiter)
        heading = [name.strip() for name in _heading(reader, source)]
        self._check(heading, source.path, delimiter)
        indices = [heading.index(column.source) for column in self._mapped if column.source]
        notation = dataclasses.replace(self._notation, is_european=delimiter == ";")

        def is_row(fields: Sequence[str]) -> bool:
            # No used value spans several lines.
            return len(fields) == len(heading) and not any("\n" in fields[index] for index in indices)

        rows = rows_of_csv(reader, source.text, is_row, skipped=1 if separator else 0)
        return _Table(heading, notation, (row for row in rows if isinstance(row, Item) or row[1]))

    def _item(self, source: SourceFile, table: "_Table", number: int, fields: Sequence[str]) -> Item:
        return item(number, self._row, source.number(number), table.heading, fields, table.notation)

    def _columns(
        self,
        source: SourceFile,
        table: "_Table",
        addresses: Addresses,
        numbers: pl.Series,
        rows: Sequence[Sequence[str]],
    ) -> pl.DataFrame:
        """Return the columns of rows; rows whose number of fields differs from the heading are uncertain."""
        width = len(table.heading)
        values: Values = {}
        is_certain = pl.Series([len(row) == width for row in rows], dtype=pl.Boolean)
        for column in self._mapped:
            if column.source:
                index = table.heading.index(column.source)
                texts = pl.Series([row[index] if len(row) == width else None for row in rows], dtype=pl.String)
                columns, is_sure = conversion(column, table.notation, addresses).convert(texts)
                values |= columns
                is_certain = is_certain if is_sure is None else is_certain & is_sure
        frame = pl.DataFrame(
            {CERTAIN: is_certain, "connection": numbers + pl.Series([source.number(0)], dtype=pl.UInt64)} | values
        ).with_columns(kind=pl.lit(self._kind))
        frame = with_mapped(frame, self._mapped, table.notation, addresses)
        return frame.with_columns(pl.col(CERTAIN) & pl.col("kind").is_in(KINDS))

    def _check(self, heading: Sequence[str], file: Path, delimiter: str) -> None:
        for column in self._mapped:
            if column.source and heading.count(column.source) != 1:
                is_there = column.source in heading
                if not is_there and (other := _delimiter_with(column.source, delimiter.join(heading), delimiter)):
                    raise ThalwegError(
                        "no-column",
                        f"the fields of `{file}` are separated by {other!r}, not by {delimiter!r}",
                        place=str(file),
                        found=_short(delimiter.join(heading)),
                        expected=f"the column `{column.source}`, which becomes {column.column}",
                        hint=f"--delimiter {shlex.quote(other) if other != TAB else TAB_TYPED}",
                        source=Source(str(file), 1),
                    )
                raise ThalwegError(
                    "no-column",
                    f"`{file}` has {'several columns' if is_there else 'no column'} `{column.source}`",
                    place=str(file),
                    found=_short(", ".join(f"`{name}`" for name in heading) or "an empty file"),
                    expected=f"the column that becomes {column.column}",
                    hint="rename one of the columns" if is_there else _how_to_map(column, heading),
                    source=Source(str(file), 1),
                )

    def _row(self, number: int, heading: Sequence[str], fields: Sequence[str], notation: Notation) -> ImportedRow:
        if len(fields) != len(heading):
            raise Unread("number of fields differs from the heading's", f"{len(fields)} instead of {len(heading)}")
        by_name = dict(zip(heading, fields, strict=True))
        return whole_row(number, self._kind, mapped_row(self._mapped, by_name.__getitem__, notation))


def kind_of(mapped: Sequence[Mapped]) -> str:
    """Return the kind of rows if it is not mapped: `transfer` if a column of transfers only is mapped, else `close`."""
    return TRANSFER if {"fct_us", "goodput_bps", "transfer"} & {column.column for column in mapped} else CLOSE


def whole_row(number: int, kind: str, mapped: Mapping[str, ImportedValue]) -> ImportedRow:
    """Return the mapped columns, with the number of the connection and the kind unless they are mapped.

    Raises:
        Unread: If the kind is unknown.
    """
    row = {"connection": number, "kind": kind, **mapped}
    if row["kind"] not in KINDS:
        raise Unread(f"kind is not one of {', '.join(KINDS)}", f"`{row['kind']}`")
    return row


def _delimiter_with(column: str, line: str, delimiter: str) -> str:
    """Return the delimiter for which a heading contains a column; empty if none does."""
    others = (delimiter_ for delimiter_ in DELIMITERS if delimiter_ != delimiter)
    return next(
        (delimiter_ for delimiter_ in others if column in [name.strip(' "') for name in line.split(delimiter_)]), ""
    )


def _heading(reader: Iterator[list[str]], source: SourceFile) -> list[str]:
    try:
        heading: list[str] = next(reader, [])
        why = TOO_LONG if source.text.was_cut() else ""
    except csv.Error as error:
        why = str(error)
    if not why:
        return heading
    raise ThalwegError(
        "no-csv",
        f"the heading of `{source.path}` is not CSV: {why}",
        place=str(source.path),
        expected=CsvTable.expected,
        source=Source(str(source.path), 1),
        exit_code=Exit.FAILED,
    )


def _how_to_map(mapped: Mapped, heading: Sequence[str]) -> str:
    known = ", ".join(sorted(units(mapped.column)))
    field, colon, unit = mapped.source.rpartition(":")
    if colon and field in heading:
        return f"`{unit}` is not a unit of {mapped.column}; units: {known}" if known else f"{mapped.column} has no unit"
    return f"--map {mapped.column}=HEADING" + (f", or HEADING:UNIT; units: {known}" if known else "")


def _short(text: str) -> str:
    """Truncate a heading, which has any length in a file that is not a table."""
    return text if len(text) <= MAX_HEADING else f"{text[:MAX_HEADING]}..."
