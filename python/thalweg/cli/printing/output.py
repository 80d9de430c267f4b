"""Output of all commands: results to standard output, everything else to standard error."""

import codecs
import json
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from thalweg import printable
from thalweg.errors import ThalwegError

if TYPE_CHECKING:
    import polars as pl
    from rich.console import Console

    from thalweg.records import LeftOutFile

GAP = "  "
"""Between two columns."""

MAX_LEFT_OUT = 5
"""Number of excluded files that are named; the others are counted."""


class NobodyReads(Exception):
    """Standard output was closed by its reader, for example by `head`."""


def data(text: str) -> None:
    """Write a result; its control characters are escaped."""
    try:
        sys.stdout.write(printable.lines(text) + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        raise NobodyReads from None


def data_json(value: Mapping[str, object] | Sequence[Mapping[str, object]]) -> None:
    """Write a result as JSON; where standard output is not UTF-8, in ASCII."""
    is_utf8 = codecs.lookup(sys.stdout.encoding or "ascii").name == "utf-8"
    data(printable.json_text(json.dumps(value, indent=2, ensure_ascii=not is_utf8, allow_nan=False)))


def data_csv(frame: "pl.DataFrame") -> None:
    """Write a result as CSV: cells of text, and headings, never start a formula; numbers stay as they are."""
    import polars as pl

    safe = frame.with_columns(pl.col(pl.String).map_elements(printable.csv_cell, return_dtype=pl.String))
    data(safe.rename({name: printable.csv_cell(name) for name in safe.columns}).write_csv().rstrip("\n"))


def talk(text: str) -> None:
    """Write a message that is not part of the result; control characters are escaped."""
    sys.stderr.write(printable.lines(text) + "\n")


def talk_of_left_out(files: Sequence["LeftOutFile"]) -> None:
    """Name the first files of records that were excluded, each with the reason, and count the others."""
    for file in files[:MAX_LEFT_OUT]:
        talk(f"left out: {file.file}: {file.why}")
    if len(files) > MAX_LEFT_OUT:
        talk(f"left out: {len(files) - MAX_LEFT_OUT} more files")


def console() -> "Console":
    """Return the terminal of standard error; NO_COLOR and pipes are respected."""
    from rich.console import Console

    return Console(stderr=True)


def error(problem: ThalwegError, *, as_json: bool) -> None:
    """Write an error, or several: as text to standard error, as JSON in the place of the result."""
    if as_json:
        data_json({"errors": [one_error.as_dict() for one_error in problem.errors]})
        return
    terminal = console()
    for line in printable.lines(problem.text()).split("\n"):
        style = "bold red" if line.startswith("error[") else "cyan" if line.startswith("  hint:") else None
        terminal.print(line, style=style, markup=False, highlight=False, soft_wrap=True)


def counted(reasons: Iterable[str]) -> list[str]:
    """Write each reason once, the most frequent first, with its count.

    >>> counted(["late", "busy", "late"])
    ['  2 x late', '  1 x busy']
    """
    return [f"  {count} x {reason}" for reason, count in Counter(reasons).most_common()]


def table(headings: Sequence[str], rows: Sequence[Sequence[str]], numbers: Sequence[int] = ()) -> str:
    """Write a table of texts; the columns `numbers` are aligned to the right, nothing is cut off.

    Control characters in cells are escaped, so that a cell is always one line.

    >>> print(table(["flow", "n"], [["large", "10"], ["m", "9"]], numbers=[1]))
    flow    n
    large  10
    m       9
    """
    lines = [[printable.value(cell) for cell in line] for line in (headings, *rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(headings))]
    return "\n".join(
        GAP.join(
            cell.rjust(width) if column in numbers else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )
