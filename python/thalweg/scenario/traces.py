"""Capacity traces in mahimahi's format.

One line per opportunity to send a 1500-byte packet: whole milliseconds since the start, in order, several on the same
millisecond allowed. The file repeats after its last line, which therefore says how long it is. (Winstein, Sivaraman and
Balakrishnan, NSDI 2013; Netravali et al., USENIX ATC 2015.)
"""

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from pathlib import Path

from thalweg.errors import Source, ThalwegError
from thalweg.files import read_regular
from thalweg.scenario.text import quantities

PACKET_BITS = 1500 * 8
"""Bits that one line of a trace lets through."""

LARGEST_FILE = 256 * 10**6
"""Bytes: a minute at 6 Gbit/s, or an hour at 100 Mbit/s."""

HINT = (
    "each line of a trace is the time in ms of one 1500-byte packet, and the last one is the period;"
    ' a rate that stays is rate = "24Mbps"'
)
"""What to know of traces when one carries far less than was meant."""

LATEST_MS = quantities.LARGEST // 10**6
"""The last moment that a clock of nanoseconds can tell."""


@lru_cache(maxsize=64)
def read(file: Path) -> tuple[int, ...]:
    """Read the milliseconds of a trace.

    Raises `ThalwegError`, whose place is the file, if there is none or a line is wrong.
    """
    place = str(file)
    try:
        text = read_regular(file, LARGEST_FILE).decode("ascii")
    except FileNotFoundError:
        raise ThalwegError("no-trace", f"there is no trace file `{file}`", place=place) from None
    except OSError as error:
        raise ThalwegError(
            "no-trace", f"`{file}` cannot be read: {(error.strerror or '').lower()}", place=place
        ) from None
    except UnicodeDecodeError:
        raise _bad(file, None, "the file is not plain text", None) from None
    except ValueError:
        raise ThalwegError(
            "no-trace", f"`{file}` is not the name of a file: it has a null character", place=place
        ) from None
    times: list[int] = []
    for number, line in enumerate(text.splitlines(), 1):
        word = line.strip()
        if not word:
            continue
        if not (word.isascii() and word.isdigit()):
            raise _bad(file, number, "a line is no whole number of milliseconds", word)
        if len(word) > len(str(LATEST_MS)) or int(word) > LATEST_MS:
            raise _bad(file, number, f"a line is later than {LATEST_MS}, which is the latest", word)
        times.append(int(word))
        if len(times) > 1 and times[-1] < times[-2]:
            raise _bad(file, number, f"a line goes back in time, after {times[-2]}", word)
    if not times:
        raise _bad(file, None, "the file is empty", None)
    if times[-1] == 0:
        raise _bad(file, len(times), "the last line must be above 0: it says when the trace repeats", "0")
    return tuple(times)


def mean_rate_bps(times: Sequence[int]) -> Fraction:
    """Give the mean rate of a trace in bits per second.

    >>> mean_rate_bps([1, 2, 3])
    Fraction(12000000, 1)
    """
    return Fraction(len(times) * PACKET_BITS * 1000, times[-1])


def in_words(times: Sequence[int]) -> str:
    """Describe a trace by its mean rate and its period.

    >>> in_words([500_000])
    "the trace's mean rate is 24bps, and it repeats every 500s"
    """
    rate, period = quantities.rate_text(mean_rate_bps(times)), quantities.time_text(times[-1] * 10**6)
    return f"the trace's mean rate is {rate}, and it repeats every {period}"


def _bad(file: Path, line: int | None, message: str, found: str | None) -> ThalwegError:
    return ThalwegError(
        "bad-trace",
        f"bad trace: {message}",
        place=str(file),
        found=f"`{found[:40]}`" if found is not None else None,
        expected="mahimahi's format: a line per 1500-byte packet, in whole milliseconds since the start, in order",
        source=Source(str(file), line),
    )
