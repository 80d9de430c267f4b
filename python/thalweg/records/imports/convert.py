"""Each file of a source becomes a file of records; or none does."""

import hashlib
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from thalweg.errors import Exit, Source, ThalwegError
from thalweg.records.imports.addresses import Address, Addresses
from thalweg.records.imports.derived import complete
from thalweg.records.imports.items import Importer, Unread, opened
from thalweg.records.imports.values import LARGEST
from thalweg.records.imports.write import RecordFile

MOST_WHY = 300
"""Characters of a reason that are shown."""
FEW = 5
"""Lines that could not be read, and are shown."""


@dataclass(frozen=True)
class UnreadLine:
    """A line that could not be read."""

    file: Path
    line: int
    why: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.why}"


@dataclass
class Imported:
    """What an import came to."""

    files: list[Path] = field(default_factory=list)
    """The files of records, one for each file that had any."""
    replaced: int = 0
    """How many of them had been there before: the same lines had been imported."""
    rows: int = 0
    unread: int = 0
    """Lines that could not be read."""
    first_unread: list[UnreadLine] = field(default_factory=list)
    """A few of them."""
    left_out: Counter[str] = field(default_factory=Counter)
    """Lines that are no records, by the reason."""
    filled: set[str] = field(default_factory=set)
    """Columns that some row has."""


def convert(
    importer: Importer,
    files: Sequence[Path],
    out: Path,
    *,
    addresses: Addresses,
    constants: Mapping[str, Any] | None = None,
    strict: bool = False,
) -> Imported:
    """Read files and write the records of each into a file in the folder `out`, which is made.

    `constants` are values of columns that a row leaves empty. The name of a file is made of what was read, so that
    importing the same again replaces it, and counts nothing twice.

    Raises `ThalwegError` if a file cannot be read, if no line of any of them is a record, if `out` cannot be written,
    or if `strict` and a line cannot be read. Nothing is left behind then.
    """
    done = Imported()
    given = {"source": importer.source, **(constants or {})}
    with ExitStack() as unfinished:
        named: list[tuple[RecordFile, str]] = []
        for path in dict.fromkeys(files):
            written = unfinished.enter_context(RecordFile(out))
            if name := _one(importer, path, written, done, given, addresses, strict):
                named.append((written, name))
        if not named:
            raise _nothing(importer, files, done)
        # All have been read: from here on nothing but the disk can go wrong.
        for written, name in named:
            file, was_there = written.finish(name)
            done.files.append(file)
            done.replaced += was_there
    return done


def _one(
    importer: Importer,
    path: Path,
    written: RecordFile,
    done: Imported,
    given: Mapping[str, Any],
    addresses: Addresses,
    strict: bool,
) -> str:
    """Read a file; gives the name that its records should have, which is empty if there are none."""
    digest = hashlib.blake2b(importer.source.encode(), digest_size=6)
    first_us = math.inf
    with opened(path, digest) as source:
        for item in importer.read(source):
            if item.left_out:
                done.left_out[item.left_out] += 1
                continue
            try:
                row = _row(item.values, given, addresses, item.unread)
            except Unread as why:
                _note(done, UnreadLine(path, item.line, _short(str(why))), item.lines, importer, strict)
                continue
            written.add(row)
            done.rows += 1
            done.filled |= row.keys()
            first_us = min(first_us, row["end_us"])
    if first_us == math.inf:
        return ""
    written.close()
    at = datetime.fromtimestamp(first_us / 1e6, UTC).strftime("%Y%m%dT%H%M%SZ")
    return f"{importer.source}-{at}-{digest.hexdigest()}.parquet"


def _row(
    values: Mapping[str, Any] | None, given: Mapping[str, Any], addresses: Addresses, unread: str
) -> dict[str, Any]:
    """Make a whole row of what a line says; raises `Unread`."""
    if values is None:
        raise Unread(unread)
    row = {**given, **{name: value for name, value in values.items() if value is not None}}
    for name in ("local_address", "remote_address"):
        address = row.get(name)
        if isinstance(address, Address):
            row["ip_version"] = address.version
            row[name] = addresses.text(address)
    if addresses.form != "whole" and row.get("direction") != "out":
        # Who opens a connection has a port of his own for it, which tells connections of one network apart.
        row.pop("remote_port", None)
    row = complete(row)
    for name, value in row.items():
        if isinstance(value, str):
            # JSON can name halves of characters, which no text can hold.
            row[name] = value if value.isascii() else value.encode(errors="replace").decode()
        elif not 0 <= value <= LARGEST:
            raise Unread(f"{name} cannot be {value:.12g}")
    return row


def _short(why: str) -> str:
    """Cut what quotes a file of which anything may be expected."""
    return why if len(why) <= MOST_WHY else f"{why[:MOST_WHY]}..."


def _note(done: Imported, line: UnreadLine, lines: int, importer: Importer, strict: bool) -> None:
    """Count a line that cannot be read, and those that go with it; or stop at it."""
    if strict:
        raise ThalwegError(
            "unread-line",
            f"line {line.line} cannot be read: {line.why}",
            place=str(line.file),
            expected=importer.expected,
            hint="without --strict such lines are counted and left out",
            source=Source(str(line.file), line.line),
            exit_code=Exit.FAILED,
        )
    done.unread += lines
    if len(done.first_unread) < FEW:
        done.first_unread.append(line)


def _nothing(importer: Importer, files: Sequence[Path], done: Imported) -> ThalwegError:
    names = ", ".join(f"`{file}`" for file in files)
    reasons = [f"{count} x {why}" for why, count in done.left_out.most_common()]
    reasons = [*(str(line) for line in done.first_unread[:1]), *reasons]
    first = done.first_unread[0] if done.first_unread else None
    return ThalwegError(
        "no-records",
        f"no line of {names} is a record" + (f": {'; '.join(reasons)}" if reasons else ": there is none"),
        place=str(files[0]),
        expected=importer.expected,
        hint=importer.hint,
        source=Source(str(first.file), first.line) if first else None,
        exit_code=Exit.FAILED,
    )
