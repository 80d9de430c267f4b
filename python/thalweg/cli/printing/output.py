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

MAX_LEFT_OUT = 5


class NobodyReads(Exception):
    """Standard output was closed by its reader, such as `head`."""


def data(text: str) -> None:
    """Write a result, with control characters escaped."""
    try:
        sys.stdout.write(printable.lines(text) + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        raise NobodyReads from None


def data_json(value: Mapping[str, object] | Sequence[Mapping[str, object]]) -> None:
    """Write a result as JSON, in ASCII if standard output is not UTF-8."""
    is_utf8 = codecs.lookup(sys.stdout.encoding or "ascii").name == "utf-8"
    data(printable.json_text(json.dumps(value, indent=2, ensure_ascii=not is_utf8, allow_nan=False)))


def data_csv(frame: "pl.DataFrame") -> None:
    """Write a result as CSV: texts and headings cannot start a formula; numbers are unchanged."""
    import polars as pl

    safe = frame.with_columns(pl.col(pl.String).map_elements(printable.csv_cell, return_dtype=pl.String))
    data(safe.rename({name: printable.csv_cell(name) for name in safe.columns}).write_csv().rstrip("\n"))


def talk(text: str) -> None:
    """Write a message that is not part of the result, with control characters escaped."""
    sys.stderr.write(printable.lines(text) + "\n")


def talk_of_left_out(files: Sequence["LeftOutFile"]) -> None:
    """List the first excluded files of records, each with the reason, and count the others."""
    for file in files[:MAX_LEFT_OUT]:
        talk(f"left out: {file.file}: {file.why}")
    if len(files) > MAX_LEFT_OUT:
        talk(f"left out: {len(files) - MAX_LEFT_OUT} more files")


def console() -> "Console":
    """Return a console for standard error, which respects NO_COLOR and pipes."""
    from rich.console import Console

    return Console(stderr=True)


def error(problem: ThalwegError, *, as_json: bool) -> None:
    """Write one or several errors: as text to standard error, or as JSON instead of the result."""
    if as_json:
        data_json({"errors": [one_error.as_dict() for one_error in problem.errors]})
        return
    terminal = console()
    for line in printable.lines(problem.text()).split("\n"):
        style = "bold red" if line.startswith("error[") else "cyan" if line.startswith("  hint:") else None
        terminal.print(line, style=style, markup=False, highlight=False, soft_wrap=True)


def counted(reasons: Iterable[str]) -> list[str]:
    """Return each distinct reason with its count, the most frequent first.

    >>> counted(["late", "busy", "late"])
    ['  2 x late', '  1 x busy']
    """
    return [f"  {count} x {reason}" for reason, count in Counter(reasons).most_common()]


def table(headings: Sequence[str], rows: Sequence[Sequence[str]], numbers: Sequence[int] = ()) -> str:
    """Return a table of texts; the columns `numbers` are aligned to the right.

    Control characters in cells are escaped, so that a cell does not span several lines.

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
