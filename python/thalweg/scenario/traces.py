"""Traces: files of conditions that change over time and repeat.

Two formats are read, plain or compressed with gzip. A byte order mark, CRLF line ends, empty lines and lines that start
with `#` are accepted.

- mahimahi's (Winstein, Sivaraman and Balakrishnan, NSDI 2013; Netravali et al., USENIX ATC 2015): one line per
  opportunity to send a 1500-byte packet, in whole milliseconds since the start, in order; several on the same
  millisecond are allowed. The last line is also the period.
- CSV with the heading `t_s,rate_bps,delay_s,loss`: a row holds from its time on. Columns other than `t_s` may be
  missing, and an empty cell keeps the value before. `delay_s` is the one-way propagation delay of the direction. Times
  count from the first row; the last row lasts as long as the one before it.
"""

import csv
import gzip
import io
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import pairwise
from pathlib import Path

from thalweg.errors import Source, ThalwegError
from thalweg.files import read_regular
from thalweg.scenario.text import quantities

PACKET_BITS = 1500 * 8
"""Bits of a packet: the capacity of each line of a trace."""

MAX_FILE_BYTES = 256 * 10**6

HINT = (
    "each line of a trace is the time in ms of one 1500-byte packet, and the last one is the period;"
    ' a constant rate is rate = "24Mbps"'
)
"""Hint for a trace whose rate is far below the intended one."""

HINT_CSV = "rate_bps of a trace is in bit/s: 24 Mbit/s is 24e6"

MAX_MS = quantities.LARGEST // 10**6
"""The latest time that fits into a 64-bit nanosecond clock."""

NANOS = 10**9

OUTAGE_MS = 100
"""Minimum gap between two opportunities that counts as an outage."""

COLUMNS = ("t_s", "rate_bps", "delay_s", "loss")

EXPECTED = (
    "mahimahi's format (a line per 1500-byte packet, in whole milliseconds since the start, in order),"
    f" or a CSV file with the header {','.join(COLUMNS)}"
)


@dataclass(frozen=True)
class Opportunities:
    """A trace in mahimahi's format."""

    times_ms: Sequence[int]

    has_rate = True

    @property
    def period_ns(self) -> int:
        """Return the period of the trace."""
        return self.times_ms[-1] * 10**6

    @property
    def mean_rate_bps(self) -> Fraction:
        """Return the mean rate.

        >>> Opportunities([1, 2, 3]).mean_rate_bps
        Fraction(12000000, 1)
        """
        return Fraction(len(self.times_ms) * PACKET_BITS * 1000, self.times_ms[-1])

    @cached_property
    def outages_ns(self) -> list[int]:
        """Return the durations of all outages."""
        gaps = (after - before for before, after in pairwise([0, *self.times_ms]))
        return [gap * 10**6 for gap in gaps if gap >= OUTAGE_MS]


@dataclass(frozen=True)
class Point:
    """Conditions, and the time at which they start; None: unchanged."""

    at_ns: int
    rate_bps: int | None = None
    delay_ns: int | None = None
    loss: float | None = None


@dataclass(frozen=True)
class Conditions:
    """A trace in CSV."""

    points: Sequence[Point]
    period_ns: int | None
    """Period; None: a single row, which applies forever."""

    @property
    def has_rate(self) -> bool:
        """Return whether the trace sets the rate."""
        return any(point.rate_bps is not None for point in self.points)

    @cached_property
    def _rates(self) -> list[tuple[int, int]]:
        points = [(point.at_ns, point.rate_bps) for point in self.points if point.rate_bps is not None]
        if not points:
            return []
        ends = [at for at, _ in points[1:]] + [self.period_ns or points[-1][0] + NANOS]
        return [(rate, end - at) for (at, rate), end in zip(points, ends, strict=True)]

    @property
    def mean_rate_bps(self) -> Fraction:
        """Return the mean rate over the period; 0 without a rate."""
        total = sum(duration_ns for _, duration_ns in self._rates)
        return Fraction(sum(rate * duration_ns for rate, duration_ns in self._rates), total) if total else Fraction(0)

    @cached_property
    def outages_ns(self) -> list[int]:
        """Return the durations of all times at rate 0."""
        outages: list[int] = []
        previous = -1
        for rate, duration_ns in self._rates:
            if rate == 0 and previous == 0:
                outages[-1] += duration_ns
            elif rate == 0:
                outages.append(duration_ns)
            previous = rate
        return outages


Trace = Opportunities | Conditions


@lru_cache(maxsize=64)
def read(file: Path) -> Trace:
    """Read a trace.

    Raises:
        ThalwegError: The file cannot be read, or is malformed; the error's `place` is the file.
    """
    text = _text(file)
    lines = [(number, line.strip()) for number, line in enumerate(text.splitlines(), 1)]
    lines = [(number, line) for number, line in lines if line and not line.startswith("#")]
    if not lines:
        raise _bad(file, None, "the file is empty", None)
    is_csv = "," in lines[0][1] or lines[0][1].lower() in COLUMNS
    return _conditions(file, lines) if is_csv else _opportunities(file, lines)


def in_words(trace: Trace) -> str:
    """Describe a trace by its mean rate and its period.

    >>> in_words(Opportunities([500_000]))
    "the trace's mean rate is 24bps, and it repeats every 500s"
    """
    mean = f"the trace's mean rate is {quantities.rate_text(trace.mean_rate_bps)}"
    return mean + (f", and it repeats every {quantities.time_text(trace.period_ns)}" if trace.period_ns else "")


def in_cell(name: str, trace: Trace) -> str:
    """Describe a trace by its mean rate, period and outages, for a table cell."""
    parts = [f"{quantities.rate_text(trace.mean_rate_bps)} on average"] if trace.has_rate else []
    if trace.period_ns:
        parts.append(f"repeats every {quantities.time_text(trace.period_ns)}")
    if outages := trace.outages_ns:
        longest = quantities.time_text(max(outages))
        parts.append(f"1 outage of {longest}" if len(outages) == 1 else f"{len(outages)} outages of up to {longest}")
    return ": ".join(filter(None, [f"trace {name}", ", ".join(parts)]))


def _text(file: Path) -> str:
    name = str(file)
    try:
        content = read_regular(file, MAX_FILE_BYTES)
    except FileNotFoundError:
        raise ThalwegError("no-trace", f"there is no trace file `{file}`", place=name) from None
    except OSError as error:
        why = (error.strerror or "").lower()
        raise ThalwegError("no-trace", f"`{file}` cannot be read: {why}", place=name) from None
    except ValueError:
        message = f"`{file}` is not the name of a file: it has a null character"
        raise ThalwegError("no-trace", message, place=name) from None
    if content.startswith(b"\x1f\x8b"):
        content = _decompressed(file, content)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise _bad(file, None, "the file is not plain text", None) from None


def _decompressed(file: Path, content: bytes) -> bytes:
    try:
        with gzip.open(io.BytesIO(content)) as opened:
            plain = opened.read(MAX_FILE_BYTES + 1)
    except (OSError, EOFError, zlib.error):
        raise _bad(file, None, "the file is damaged: gzip cannot decompress it", None) from None
    if len(plain) > MAX_FILE_BYTES:
        raise _bad(file, None, f"the file is larger than {MAX_FILE_BYTES // 10**6} MB when it is decompressed", None)
    return plain


def _opportunities(file: Path, lines: Sequence[tuple[int, str]]) -> Opportunities:
    times: list[int] = []
    for number, word in lines:
        if not (word.isascii() and word.isdigit()):
            raise _bad(file, number, "a line is not a whole number of milliseconds", word)
        if len(word) > len(str(MAX_MS)) or int(word) > MAX_MS:
            raise _bad(file, number, f"a line is later than {MAX_MS}, the maximum", word)
        times.append(int(word))
        if len(times) > 1 and times[-1] < times[-2]:
            raise _bad(file, number, f"a line is earlier than the previous one, {times[-2]}", word)
    if times[-1] == 0:
        raise _bad(file, lines[-1][0], "the last line must be above 0: it is the period of the trace", "0")
    return Opportunities(tuple(times))


def _conditions(file: Path, lines: Sequence[tuple[int, str]]) -> Conditions:
    heading = [cell.strip().lower() for cell in lines[0][1].split(",")]
    if unknown := [column for column in heading if column not in COLUMNS]:
        raise _bad(file, lines[0][0], f"a trace has no column `{unknown[0]}`", lines[0][1])
    if "t_s" not in heading or len(set(heading)) < len(heading) or len(heading) < 2:
        raise _bad(file, lines[0][0], "a trace has a column t_s and at least one other, each once", lines[0][1])
    rows = [(number, next(csv.reader([line]))) for number, line in lines[1:]]
    points: list[Point] = []
    start: Decimal | None = None
    for number, row in rows:
        if len(row) != len(heading):
            raise _bad(file, number, f"a row has {len(row)} cells, and the header has {len(heading)}", ",".join(row))
        cells = {column: _number(file, number, column, cell) for column, cell in zip(heading, row, strict=True)}
        time = cells["t_s"]
        if time is None:
            raise _bad(file, number, "a row has no time", ",".join(row))
        start = time if start is None else start
        at_ns = int((time - start) * NANOS)
        if points and at_ns <= points[-1].at_ns:
            raise _bad(file, number, "a row is not later than the one before", str(time))
        points.append(_point(file, number, at_ns, cells))
    if not points:
        raise _bad(file, None, "the file has a header but no rows", None)
    conditions = Conditions(tuple(points), points[-1].at_ns * 2 - points[-2].at_ns if len(points) > 1 else None)
    _check_first(file, lines[1][0], conditions)
    return conditions


def _check_first(file: Path, number: int, conditions: Conditions) -> None:
    if conditions.has_rate and conditions.points[0].rate_bps is None:
        raise _bad(file, number, "the first row has no rate_bps", "an empty cell")
    if conditions.has_rate and not any(point.rate_bps for point in conditions.points):
        raise _bad(file, number, "every rate_bps is 0: no packet would ever pass", "0")
    if all(point.loss == 1 for point in conditions.points):
        raise _bad(file, number, "every loss is 1: no packet would ever arrive", "1")


def _point(file: Path, number: int, at_ns: int, cells: dict[str, Decimal | None]) -> Point:
    rate, delay, loss = (cells.get(column) for column in COLUMNS[1:])
    if loss is not None and loss > 1:
        raise _bad(file, number, "loss is not a ratio between 0 and 1", str(loss))
    return Point(
        at_ns,
        None if rate is None else round(rate),
        None if delay is None else round(delay * NANOS),
        None if loss is None else float(loss),
    )


def _number(file: Path, number: int, column: str, cell: str) -> Decimal | None:
    word = cell.strip()
    if not word:
        return None
    try:
        value = Decimal(word)
    except InvalidOperation:
        raise _bad(file, number, f"{column} is not a number", word) from None
    if (
        not value.is_finite()
        or value < 0
        or value * NANOS > quantities.LARGEST * (NANOS if column == "rate_bps" else 1)
    ):
        raise _bad(file, number, f"{column} is negative, not finite or too large", word)
    return value


def _bad(file: Path, line: int | None, message: str, excerpt: str | None) -> ThalwegError:
    return ThalwegError(
        "bad-trace",
        f"bad trace: {message}",
        place=str(file),
        found=f"`{excerpt[:40]}`" if excerpt is not None else None,
        expected=EXPECTED,
        source=Source(str(file), line),
    )
