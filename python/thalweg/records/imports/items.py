"""What an importer makes of a file, piece by piece: a row, something that it cannot read, or something that is none."""

import csv
import gzip
import io
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Protocol

from thalweg.errors import Exit, ThalwegError

GZIP = b"\x1f\x8b"
"""How a file begins that gzip has compressed, as rotated logs usually are."""


class Digest(Protocol):
    """A hash in the making."""

    def update(self, data: bytes, /) -> None:
        """Go on with more bytes."""


class Unread(Exception):
    """A line that should be a record, and cannot be read."""


class LeftOut(Exception):
    """A line that is no record, as it should be: a heading, a listening socket."""


@dataclass(frozen=True)
class Item:
    """A line of a file, and what it was."""

    line: int
    values: dict[str, Any] | None = None
    """Values of columns by their names; None: it is no row."""
    unread: str = ""
    """Why it cannot be read."""
    left_out: str = ""
    """Why it is left out."""


def item(line: int, row: Callable[..., dict[str, Any]], *given: Any) -> Item:
    """Make an item of what `row` makes of what is given, whatever that is."""
    try:
        return Item(line, row(*given))
    except Unread as why:
        return Item(line, unread=str(why))
    except LeftOut as why:
        return Item(line, left_out=str(why))


def rows_of_csv(reader: Any) -> Iterator[tuple[int, Any] | Item]:
    """Give the rows of a reader of CSV with the numbers of their lines; one that cannot be read becomes an item."""
    while True:
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            yield Item(reader.line_num, unread=f"no CSV: {error}")
            continue
        yield reader.line_num, row


class Source:
    """A file that is being read, line by line."""

    def __init__(self, path: Path, text: Iterable[str]) -> None:
        """Take the lines of its text, with their ends."""
        self.path = path
        self.text = text

    @property
    def changed_us(self) -> int:
        """UNIX time at which the file was written to last."""
        return self.path.stat().st_mtime_ns // 1000

    def lines(self) -> Iterator[tuple[int, str]]:
        """Give the lines with their numbers, from 1, without their ends."""
        for number, line in enumerate(self.text, 1):
            yield number, line.rstrip("\r\n")

    def items(self, row: Callable[[int, str], dict[str, Any]]) -> Iterator[Item]:
        """Make an item of each line that is not empty: `row` gets its number among all files, and the line."""
        for number, line in self.lines():
            if line:
                yield item(number, row, self.number(number), line)

    def number(self, line: int) -> int:
        """Give a line a number that no line of another file has, as far as 32 bits of a file's name can tell."""
        return zlib.crc32(str(self.path).encode(errors="surrogateescape")) << 32 | line


class Importer(Protocol):
    """A source of records."""

    @property
    def source(self) -> str:
        """What stands in the column `source`."""

    @property
    def expected(self) -> str:
        """What a line should be."""

    @property
    def hint(self) -> str:
        """What to type when nothing could be read."""

    def read(self, source: Source) -> Iterator[Item]:
        """Read a file."""


class _Noted:
    """A text whose content is hashed while it is read."""

    def __init__(self, stream: IO[str], digest: Digest) -> None:
        self._stream = stream
        self._digest = digest

    def __iter__(self) -> Iterator[str]:
        for line in self._stream:
            self._digest.update(line.encode(errors="replace"))
            yield line


@contextmanager
def opened(path: Path, digest: Digest) -> Iterator[Source]:
    """Open a text file, perhaps compressed by gzip; `digest` gets its text.

    Raises `ThalwegError` if it cannot be read.
    """
    try:
        with path.open("rb") as file:
            is_gzip = file.peek(2)[:2] == GZIP
            plain: Any = gzip.GzipFile(fileobj=file) if is_gzip else file
            with io.TextIOWrapper(plain, encoding="utf-8-sig", errors="replace", newline="") as stream:
                yield Source(path, _Noted(stream, digest))
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
            expected="a whole file, perhaps compressed by gzip",
            exit_code=Exit.FAILED,
        ) from None
