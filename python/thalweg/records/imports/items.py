"""Items of an imported file: a row, an unreadable line, or a line that is not a record."""

import csv
import gzip
import io
import shlex
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path
from typing import IO, ParamSpec, Protocol, TypeVar

from thalweg import printable
from thalweg.errors import Exit, ThalwegError

GZIP = b"\x1f\x8b"
COMPRESSED = {b"\xfd7zXZ": "xz", b"BZh": "bzip2", b"(\xb5/\xfd": "zstd"}
"""First bytes of other compressed files."""
UTF_16 = (b"\xff\xfe", b"\xfe\xff")
"""Byte order marks of UTF-16 text, which spreadsheets write."""
ENOUGH = 64
"""Number of leading bytes from which the encoding is detected."""
LONGEST = 2**24
"""Maximum number of characters of a line or a JSON value, which bounds the memory."""
BLOCK = 2**22
"""Number of characters that `Lines.block` reads at a time."""


TOO_LONG = f"it is longer than {LONGEST:,} characters"


class Digest(Protocol):
    """An incremental hash."""

    def update(self, data: bytes, /) -> None:
        """Hash more bytes."""


NOTE = "note"
"""Key of a row for a note that is not about one column: its value is an `Unknown`, which is reported."""
MAX_QUOTED = 100
"""Maximum number of characters of a line that a message quotes."""


class Unread(Exception):
    """A line that should be a record but cannot be parsed.

    `reason` is the text by which lines are counted; `found` is a detail of this line.
    """

    def __init__(self, reason: str, found: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        short = found if len(found) <= MAX_QUOTED else f"{found[:MAX_QUOTED]}..."
        self.found = printable.value(short)

    def __str__(self) -> str:
        return f"{self.reason}: {self.found}" if self.found else self.reason


class Assumed(int):
    """A value that is assumed because the source does not contain it; it is reported with the reason."""

    why: str

    def __new__(cls, value: int, why: str) -> "Assumed":
        """Create an assumed value."""
        assumed = super().__new__(cls, value)
        assumed.why = why
        return assumed


@dataclass(frozen=True)
class Unknown:
    """Marks a value that is left null although the source could contain it; the reason is reported."""

    why: str


RecordValue = str | int | float
"""A value of a column; a boolean is an `int`."""
RecordRow = dict[str, RecordValue]
ImportedValue = RecordValue | IPv4Address | IPv6Address | Unknown | None
"""An importer's value for a column: addresses are converted later, and `None` values are dropped."""
ImportedRow = dict[str, ImportedValue]
"""An importer's values of a line, by column."""


class NotARecord(Exception):
    """A line that is not a record, as expected, such as a heading or a listening socket."""


@dataclass(frozen=True)
class Item:
    """A line of a file, parsed as a row or with the reason why it is not one."""

    line: int
    values: ImportedRow | None = None
    """Values of the row; None: not a row."""
    unread: Unread | None = None
    left_out: str = ""
    lines: int = 1
    """Number of lines of the item, including the first."""


P = ParamSpec("P")
CsvRow = TypeVar("CsvRow")
CsvRow_co = TypeVar("CsvRow_co", covariant=True)


def item(line: int, row: Callable[P, ImportedRow], *args: P.args, **kwargs: P.kwargs) -> Item:
    """Call `row` with these arguments and convert its result or exception to an item."""
    try:
        return Item(line, row(*args, **kwargs))
    except Unread as why:
        return Item(line, unread=why)
    except NotARecord as why:
        return Item(line, left_out=str(why))


class CsvReader(Protocol[CsvRow_co]):
    """`csv.reader` or `csv.DictReader`."""

    @property
    def line_num(self) -> int:
        """Number of lines that have been read."""

    def __next__(self) -> CsvRow_co: ...


def rows_of_csv(
    reader: CsvReader[CsvRow], text: "Lines", is_row: Callable[[CsvRow], bool], *, skipped: int = 0
) -> Iterator[tuple[int, CsvRow] | Item]:
    """Yield the rows of a CSV reader with the numbers of their last lines; an unreadable row becomes an item.

    An unclosed quote joins the following lines to one row. A row of several lines is therefore unreadable unless
    `is_row` accepts it. `skipped` is the number of lines before the reader's first.
    """
    while True:
        before = reader.line_num + skipped
        row: CsvRow | None = None
        try:
            row = next(reader)
            why = TOO_LONG if text.was_cut() else ""
        except StopIteration:
            return
        except csv.Error as error:
            why = f"not CSV: {error}"
            text.was_cut()
        lines = reader.line_num + skipped - before
        if row is not None and not why and lines > 1 and not is_row(row):
            why = "a quote is opened and not closed"
        if row is None or why:
            following = f"the {lines - 1} lines after it are also skipped" if lines > 1 else ""
            yield Item(before + 1, unread=Unread(why, following), lines=max(1, lines))
        else:
            yield reader.line_num + skipped, row


class Lines:
    """The lines of a text, with their line ends. Their content is hashed as it is read.

    Except in `piece`, the rest of a line beyond `LONGEST` characters is skipped.
    """

    def __init__(self, stream: IO[str], digest: Digest) -> None:
        self._stream = stream
        self._digest = digest
        self._was_cut = False
        self._ahead: str | None = None
        self._tail = ""
        self._each = self._lines()

    def __iter__(self) -> Iterator[str]:
        return self._each

    def __next__(self) -> str:
        return next(self._each)

    def _lines(self) -> Iterator[str]:
        while block := self.block():
            has_long = len(block) >= LONGEST
            for line in io.StringIO(block, newline=""):
                if has_long and len(line.rstrip("\r\n")) >= LONGEST:
                    self._was_cut = True
                    yield line[:LONGEST]
                else:
                    yield line

    def block(self) -> str:
        """Return the next block of complete lines; empty at the end. Only the beginning of an overlong line is kept.

        `piece` must not be called afterwards.
        """
        text, self._tail = self._tail, ""
        if self._ahead is not None:
            text, self._ahead = self._ahead, None
        while chunk := self._stream.read(min(BLOCK, LONGEST)):
            self._digest.update(chunk.encode(errors="replace"))
            text += chunk
            end = _end_of_lines(text)
            if end:
                self._tail = text[end:]
                return text[:end]
            if len(text) > LONGEST:
                text = text[:LONGEST] + ("\r" if text.endswith("\r") else "")
        return text

    def piece(self) -> str:
        """Return the next line, or a part of an overlong one; empty at the end."""
        if self._ahead is not None:
            piece, self._ahead = self._ahead, None
            return piece
        piece = self._stream.readline(LONGEST)
        self._digest.update(piece.encode(errors="replace"))
        return piece

    def peek(self) -> str:
        """Return the next piece without consuming it."""
        self._ahead = self.piece()
        return self._ahead

    def was_cut(self) -> bool:
        """Return whether a line was truncated since the last call."""
        was_cut, self._was_cut = self._was_cut, False
        return was_cut


def _end_of_lines(text: str) -> int:
    """Return the end of the last complete line; a carriage return at the end of the text may be half of a line end."""
    return max(text.rfind("\n"), text.rfind("\r", 0, len(text) - 1)) + 1


def is_cut(piece: str) -> bool:
    """Return whether a piece ends within an overlong line."""
    return len(piece) == LONGEST and piece[-1] not in "\r\n"


class SourceFile:
    """A file to import."""

    def __init__(self, path: Path, text: Lines) -> None:
        self.path = path
        self.text = text

    @property
    def changed_us(self) -> int:
        """Modification time of the file, as UNIX time in microseconds."""
        return self.path.stat().st_mtime_ns // 1000

    def lines(self) -> Iterator[tuple[int, str]]:
        """Yield the lines with their numbers, from 1, without line ends."""
        for number, line in enumerate(self.text, 1):
            yield number, line.rstrip("\r\n")

    def number(self, line: int) -> int:
        """Return a line number that is probably unique among files: its upper 32 bits are a hash of the path."""
        return zlib.crc32(str(self.path).encode(errors="surrogateescape")) << 32 | line


class Importer(Protocol):
    """The interface of importers."""

    @property
    def source(self) -> str:
        """Value of the column `source`."""

    @property
    def shows_cuts(self) -> bool:
        """Whether a line that was cut off can no longer be parsed, as with JSON."""

    @property
    def expected(self) -> str:
        """Description of the expected lines."""

    @property
    def hint(self) -> str:
        """Hint if no line could be parsed."""

    def read(self, source: SourceFile) -> Iterator[Item]:
        """Parse a file."""


@contextmanager
def opened(path: Path, digest: Digest) -> Iterator[SourceFile]:
    """Open a text file, optionally compressed with gzip; `digest` receives its text.

    Raises:
        ThalwegError: If it does not exist, may not be read, is a folder or damaged, or is compressed otherwise.
    """
    try:
        with path.open("rb") as file:
            begin = file.peek(8)
            _refuse_compressed(path, begin)
            plain = gzip.GzipFile(fileobj=file) if begin.startswith(GZIP) else file
            with io.TextIOWrapper(
                plain, encoding=_encoding(plain.peek(ENOUGH)[:ENOUGH]), errors="replace", newline=""
            ) as stream:
                yield SourceFile(path, Lines(stream, digest))
    except FileNotFoundError:
        raise ThalwegError("no-file", f"there is no file `{path}`", place=str(path)) from None
    except (IsADirectoryError, PermissionError) as error:
        why = "is a folder" if isinstance(error, IsADirectoryError) else "may not be read"
        raise ThalwegError("cannot-read", f"`{path}` {why}", place=str(path), expected="a file to import") from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ThalwegError(
            "damaged-file",
            f"`{path}` is damaged: {error}",
            place=str(path),
            expected="an undamaged file, plain or compressed by gzip",
            exit_code=Exit.FAILED,
        ) from None


def _encoding(begin: bytes) -> str:
    """Detect the encoding of a text from its first bytes: UTF-16 has a byte order mark, or a zero byte in each of its
    first letters.
    """
    if begin[:2] in UTF_16:
        return "utf-16"
    even, odd = any(begin[0::2]), any(begin[1::2])
    if len(begin) >= 2 and even != odd:
        return "utf-16-le" if even else "utf-16-be"
    return "utf-8-sig"


def _refuse_compressed(path: Path, begin: bytes) -> None:
    for magic, name in COMPRESSED.items():
        if begin.startswith(magic):
            raise ThalwegError(
                "compressed",
                f"`{path}` is compressed by {name}",
                place=str(path),
                expected="a text file, plain or compressed by gzip",
                hint=f"{name} -dk {shlex.quote(str(path))}, then import the decompressed file",
            )
