"""Converts source files to files of records; if one cannot be converted, none is written."""

import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeGuard

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from thalweg import collector, printable
from thalweg.errors import Exit, Source, ThalwegError
from thalweg.processes import asked_to_end
from thalweg.records.imports.addresses import Address, Addresses
from thalweg.records.imports.blocks import Block, BlockImporter, in_threads
from thalweg.records.imports.derived import complete, number
from thalweg.records.imports.derived_columns import LONGEST_RTT_US, completed
from thalweg.records.imports.items import (
    NOTE,
    Assumed,
    ImportedRow,
    ImportedValue,
    Importer,
    Item,
    RecordRow,
    RecordValue,
    Unknown,
    Unread,
    opened,
)
from thalweg.records.imports.values import LARGEST
from thalweg.records.imports.vectorized import CERTAIN, LINE, WHY
from thalweg.records.imports.write import RecordFile, table_of, with_all_columns
from thalweg.records.schema import COLUMNS

ROUND_TRIPS = [name for name in COLUMNS if name.startswith("rtt_")]
REPLACEMENT = "\ufffd"
"""Replaces bytes that cannot be decoded."""

TEXT_BYTES = "thalweg.text_bytes"
"""Metadata key of a record file: the number of bytes of the input's text that are hashed for the file's name."""

CUT = "the last line has no line end: if the file was cut, so is its last value"

MAX_REASONS = 5


@dataclass(frozen=True)
class UnreadLine:
    """A line of a file, and the reason why it was counted."""

    file: Path
    line: int
    why: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.why}"


@dataclass
class ReasonCount:
    """Number of lines with one reason, and the first of them."""

    first: UnreadLine
    count: int = 0


class Tally(dict[str, ReasonCount]):
    """Lines by reason, each reason with its first line."""

    def add(self, reason: str, file: Path, line: int, *, found: str = "", lines: int = 1) -> None:
        """Count a line, and the lines that belong to it."""
        if reason not in self:
            self[reason] = ReasonCount(UnreadLine(file, line, f"{reason}: {found}" if found else reason))
        self[reason].count += lines

    def add_lines(self, reason: str, file: Path, first: int, lines: int) -> None:
        """Count lines with the same reason; later lines of the same file may have been counted before."""
        count = self[reason].count if reason in self else 0
        if reason not in self or first < self[reason].first.line:
            self[reason] = ReasonCount(UnreadLine(file, first, reason))
        self[reason].count = count + lines

    def join(self, other: "Tally") -> None:
        """Add the counts of another tally, whose lines follow those of this one."""
        for reason, count in sorted(other.items(), key=lambda item: item[1].first.line):
            if reason in self:
                self[reason].count += count.count
            else:
                self[reason] = count

    def most_common(self) -> list[tuple[str, ReasonCount]]:
        """Return the reasons, the most frequent one first."""
        return sorted(self.items(), key=lambda item: -item[1].count)

    def counts(self) -> dict[str, int]:
        """Return the number of lines by reason, the most frequent one first."""
        return {reason: count.count for reason, count in self.most_common()}


@dataclass
class Imported:
    """Result of an import."""

    files: list[Path] = field(default_factory=list)
    """The record files, one for each source file with records; files with equal content count once."""
    replaced: int = 0
    """Number of record files that replaced earlier ones of the same input, or of its beginning."""
    rows: int = 0
    unread_lines: Tally = field(default_factory=Tally)
    left_out: Tally = field(default_factory=Tally)
    """Valid lines that are not records, and files with the content of an earlier one."""
    fallbacks: Tally = field(default_factory=Tally)
    """Notes on values and files, such as on an assumed value."""
    filled: set[str] = field(default_factory=set)
    """Columns with a value in any row."""

    @property
    def unread(self) -> int:
        """Number of lines that could not be parsed."""
        return sum(unread_line.count for unread_line in self.unread_lines.values())

    @property
    def first_unread(self) -> list[UnreadLine]:
        """First unreadable line for each reason."""
        return [unread_line.first for unread_line in self.unread_lines.values()]


def convert(
    importer: Importer,
    files: Sequence[Path],
    out: Path,
    *,
    addresses: Addresses,
    constants: Mapping[str, str] | None = None,
    strict: bool = False,
) -> Imported:
    """Convert each file to a file of records in the folder `out`, which is created.

    `constants` are values for empty columns. The name of a file is derived from its input, so that a repeated import
    replaces it. The file of an input that has grown replaces the earlier one, too.

    If the import fails or is interrupted before the finished files are renamed, no files remain.

    Raises:
        ThalwegError: If a file cannot be read, no line of any of them is a record, `out` cannot be written, or a line
            cannot be parsed and `strict` is set.
    """
    conversion = _Conversion(importer, addresses, {"source": importer.source, **(constants or {})}, strict)
    with collector.paused(), asked_to_end(), ExitStack() as unfinished:
        destinations: dict[str, RecordFile] = {}
        for path in dict.fromkeys(files):
            written = unfinished.enter_context(RecordFile(out))
            before = deepcopy(conversion.done)
            name = conversion.read(path, written)
            if name in destinations:
                conversion.done = before
                conversion.done.left_out.add("a file with the content of an earlier one", path, 1)
            elif name:
                destinations[name] = written
        imported = conversion.done
        if not destinations:
            raise _nothing(importer, files, imported)
        for name, written in destinations.items():
            file, was_there = written.finish(name)
            imported.files.append(file)
            imported.replaced += was_there
    return imported


class _TextDigest:
    """Hash of an input's text, or of its first bytes."""

    def __init__(self, source: str, most: int | None = None) -> None:
        self._hash = hashlib.blake2b(source.encode(), digest_size=6)
        self._most = most
        self.size = 0
        """Number of bytes of the text that were hashed."""
        self.is_line_complete = True
        """Whether the text ends with a line end."""
        self._line_feeds = self._carriage_returns = 0

    def update(self, data: bytes) -> None:
        """Add text, up to the limit."""
        self._line_feeds += data.count(b"\n")
        self._carriage_returns += data.count(b"\r")
        self.is_line_complete = data.endswith((b"\n", b"\r")) if data else self.is_line_complete
        part = data if self._most is None else data[: self._most - self.size]
        self._hash.update(part)
        self.size += len(part)

    @property
    def line_ends(self) -> int:
        return self._line_feeds or self._carriage_returns

    def hexdigest(self) -> str:
        return self._hash.hexdigest()


@dataclass
class _Conversion:
    importer: Importer
    addresses: Addresses
    constants: Mapping[str, str]
    strict: bool
    done: Imported = field(default_factory=Imported)

    def read(self, path: Path, written: RecordFile) -> str:
        """Convert a file; return the name of its record file, empty without records."""
        digest = _TextDigest(self.importer.source)
        first_us = math.inf
        with opened(path, digest) as source:
            blocks = self.importer.blocks(source) if isinstance(self.importer, BlockImporter) else None
            if blocks is None:
                for row in self._rows(path, self.importer.read(source)):
                    written.add(row)
                    first_us = min(first_us, number(row, "end_us") or 0)
            else:
                for table in self._tables(path, blocks):
                    written.add_table(table)
                    first_us = min(first_us, pc.min(table["end_us"]).as_py())
        if first_us == math.inf:
            return ""
        if not (digest.is_line_complete or self.importer.shows_cuts):
            self.done.fallbacks.add(CUT, path, digest.line_ends + 1)
        written.close({TEXT_BYTES: str(digest.size)})
        at = datetime.fromtimestamp(first_us / 1e6, UTC).strftime("%Y%m%dT%H%M%SZ")
        begin = f"{self.importer.source}-{at}-"
        name = f"{begin}{digest.hexdigest()}.parquet"
        written.replace(file for file in written.others(begin, name) if self._has_grown(path, file))
        return name

    def _has_grown(self, path: Path, earlier: Path) -> bool:
        """Return whether an earlier record file was converted from the beginning of an input; False for a pipe."""
        try:
            metadata = pq.read_metadata(earlier).metadata or {}
        except (OSError, pa.ArrowException):
            return False
        size = int(metadata.get(TEXT_BYTES.encode(), 0))
        if not size or not path.is_file():  # a pipe can be read only once
            return False
        digest = _TextDigest(self.importer.source, size)
        with opened(path, digest) as source:
            while digest.size < size and source.text.block():
                pass
        return digest.size == size and earlier.stem.endswith(f"-{digest.hexdigest()}")

    def _rows(
        self, path: Path, items: Iterable[Item], lines: list[int] | None = None, notes_of: Tally | None = None
    ) -> Iterator[RecordRow]:
        """Yield the rows of items, and count the other items; the line numbers of the rows are appended to `lines`.

        Notes on rows are counted in `notes_of`, by default in the result's `fallbacks`.
        """
        add = self.done.fallbacks.add if notes_of is None else notes_of.add
        for item in items:
            if item.left_out:
                self.done.left_out.add(item.left_out, path, item.line)
                continue
            if item.values is None:
                self._note(path, item, item.unread or Unread("not a record"))
                continue
            try:
                row, notes = _row(item.values, self.constants, self.addresses)
            except Unread as why:
                self._note(path, item, why)
                continue
            for note in notes:
                add(note, path, item.line)
            self.done.rows += 1
            self.done.filled |= row.keys()
            if lines is not None:
                lines.append(item.line)
            yield row

    def _tables(self, path: Path, blocks: Iterator[Block]) -> Iterator[pa.Table]:
        for block, frame in in_threads(blocks, self._completed):
            sure_rows = frame.filter(CERTAIN)
            noted = Tally()
            lines: list[int] = []
            rest = frame.with_row_index("row").filter(~pl.col(CERTAIN))["row"].to_list()
            rows = list(self._rows(path, block.items(rest), lines, noted))
            for name in sure_rows.columns:
                if name.endswith(WHY):
                    for why, line, count in sure_rows.group_by(name).agg(pl.col(LINE).min(), pl.len()).rows():
                        if why is not None:
                            noted.add_lines(f"{name.removesuffix(WHY)}: {why}", path, line, count)
            self.done.fallbacks.join(noted)
            sure_rows = sure_rows.drop(name for name in sure_rows.columns if name.endswith(WHY))
            table = sure_rows.drop(CERTAIN)
            if rows:
                others = pl.DataFrame(pl.from_arrow(table_of(rows))).with_columns(pl.Series(LINE, lines, pl.UInt64))
                table = pl.concat([table, others], how="diagonal").sort(LINE, maintain_order=True)
            self.done.rows += len(sure_rows)
            names = (name for name in sure_rows.columns if name in COLUMNS)
            self.done.filled |= {name for name in names if sure_rows[name].null_count() < len(sure_rows)}
            if len(table):
                yield with_all_columns(table.drop(LINE).to_arrow())

    def _completed(self, block: Block) -> pl.DataFrame:
        return completed(block.columns(self.addresses), self.constants, self.addresses)

    def _note(self, file: Path, item: Item, why: Unread) -> None:
        """Count an unreadable line and the lines that belong to it; in strict mode raise the error."""
        if self.strict:
            raise ThalwegError(
                "unread-line",
                f"line {item.line} cannot be read: {why}",
                place=str(file),
                expected=self.importer.expected,
                hint="without --strict such lines are counted and left out",
                source=Source(str(file), item.line),
                exit_code=Exit.FAILED,
            )
        self.done.unread_lines.add(why.reason, file, item.line, found=why.found, lines=item.lines)


def _row(imported: ImportedRow, constants: Mapping[str, str], addresses: Addresses) -> tuple[RecordRow, list[str]]:
    """Convert a line to a row; return it with notes on its values.

    Raises:
        Unread: If a value is out of range, a time is invalid, or the end time is missing.
    """
    values: ImportedRow = {**constants, **{name: value for name, value in imported.items() if value is not None}}
    for name in ("local_address", "remote_address"):
        address = values.get(name)
        if isinstance(address, Address):
            values["ip_version"] = address.version
            values[name] = addresses.text(address)
    if addresses.form != "whole" and values.get("direction") != "out":
        # The client's port would distinguish connections within one network.
        values.pop("remote_port", None)
    notes = [
        value.why if name == NOTE else f"{name}: {value.why}"
        for name, value in values.items()
        if isinstance(value, Assumed | Unknown)
    ]
    known_values = {name: value for name, value in values.items() if _is_known(value)}
    row = {name: int(value) if isinstance(value, Assumed) else value for name, value in known_values.items()}
    for name in [name for name in ROUND_TRIPS if (number(row, name) or 0) > LONGEST_RTT_US]:
        notes.append(f"{name}: a round-trip time of more than an hour: is it in another unit?")
        del row[name]
    row = complete(row)
    for name, value in row.items():
        if isinstance(value, str):
            if REPLACEMENT in value:
                notes.append(f"{name}: a character that is not UTF-8 was replaced")
            # JSON can encode lone surrogates, which are invalid in text.
            row[name] = printable.value(value if value.isascii() else value.encode(errors="replace").decode())
        elif not 0 <= value <= LARGEST:
            raise Unread(f"{name} is out of range", f"{value:.12g}")
    return row, notes


def _is_known(value: ImportedValue) -> TypeGuard[RecordValue]:
    return not isinstance(value, Unknown) and not (isinstance(value, float) and not math.isfinite(value))


def _nothing(importer: Importer, files: Sequence[Path], imported: Imported) -> ThalwegError:
    names = ", ".join(f"`{file}`" for file in files)
    unread = [f"{count.count} x {count.first}" for _, count in imported.unread_lines.most_common()]
    reasons = [*unread, *(f"{count} x {reason}" for reason, count in imported.left_out.counts().items())][:MAX_REASONS]
    because = f"no line of {names} is a record: {'; '.join(reasons)}"
    first = next((count.first for _, count in imported.unread_lines.most_common()), None)
    return ThalwegError(
        "no-records",
        because if reasons else f"{names} contains no record",
        place=str(files[0]),
        expected=importer.expected,
        hint=importer.hint,
        source=Source(str(first.file), first.line) if first else None,
        exit_code=Exit.FAILED,
    )
