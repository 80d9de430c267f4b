"""Tables of `thalweg validate`: plain where they are piped, with lines and colours on a terminal."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from thalweg.cli import output

if TYPE_CHECKING:
    from thalweg.validate import Cell, Overall

Row = list[str]

LIMITS = {"relative": (0.05, 0.2), "points": (0.05, 0.15), "factor": (1.25, 2.0)}
"""Up to which size an error is shown as small, and up to which as middling: a help for the eye, not a verdict."""

COLOURS = ("green", "yellow", "red")


@dataclass(frozen=True)
class Sheet:
    """A table: texts, a colour for each of them (or none), and the columns that are numbers."""

    headings: Row
    rows: list[Row]
    colours: list[Row]
    numbers: range


def of_cells(cells: Sequence["Cell"], keys: Sequence[str]) -> Sheet:
    """Write the errors of a scenario, a line per cell."""
    from thalweg.validate import ERRORS

    shown = [name for name in ERRORS if any(name in cell.measures for cell in cells)]
    with_state = any(cell.state != "compared" for cell in cells)
    headings = [*keys, "flow", "cc", *(ERRORS[name].title for name in shown), *(["state"] if with_state else [])]
    rows, colours = [], []
    for cell in cells:
        names = [*(output.plain(cell.point[key]) for key in keys), cell.flow, cell.cc]
        errors = [cell.measures[name].error if name in cell.measures else None for name in shown]
        state = ["" if cell.state == "compared" else cell.state] if with_state else []
        rows.append([*names, *(error(name, value) for name, value in zip(shown, errors, strict=True)), *state])
        hues = [_colour(name, value) for name, value in zip(shown, errors, strict=True)]
        colours.append([""] * len(names) + hues + ["bold red"] * len(state))
    return Sheet(headings, rows, colours, range(len(keys) + 2, len(keys) + 2 + len(shown)))


def of_overall(totals: Sequence["Overall"]) -> Sheet:
    """Write what all errors come to."""
    from thalweg.validate import ERRORS

    rows = [
        [ERRORS[each.measure].title, str(each.n), size(each.measure, each.median), size(each.measure, each.p90)]
        for each in totals
    ]
    colours = [["", "", _colour(each.measure, each.median), _colour(each.measure, each.p90)] for each in totals]
    return Sheet(["measure", "rows", "median", "90th percentile"], rows, colours, range(1, 4))


def notes(cells: Sequence["Cell"]) -> list[tuple[str, int]]:
    """Give what is to be known of rows, and of how many."""
    return [
        (note.strip().replace("\n", "\n    "), many)
        for note, many in Counter(note for cell in cells for note in cell.notes).items()
    ]


def show(sheet: Sheet, *, is_terminal: bool) -> None:
    """Print a table: aligned text for programs and logs, with colours for people at a terminal."""
    if not is_terminal:
        output.data(output.table(sheet.headings, sheet.rows, numbers=sheet.numbers))
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column, heading in enumerate(sheet.headings):
        table.add_column(heading, justify="right" if column in sheet.numbers else "left", overflow="fold")
    for row, hues in zip(sheet.rows, sheet.colours, strict=True):
        table.add_row(*(Text(text, style=hue) for text, hue in zip(row, hues, strict=True)))
    Console().print(table)


def error(measure: str, value: float | None) -> str:
    """Write an error with its direction.

    >>> error("goodput", -0.123), error("share", 0.05), error("retransmit_ratio", 2.0), error("goodput", None)
    ('-12.3 %', '+5.0 points', 'x2.00', '-')
    """
    if value is None:
        return "-"
    return _written(measure, value, "+" if value else "")


def size(measure: str, value: float) -> str:
    """Write the size of an error.

    >>> size("rtt_mean", 0.1), size("retransmit_ratio", 1.5)
    ('10.0 %', 'x1.50')
    """
    return _written(measure, value, "")


def _written(measure: str, value: float, sign: str) -> str:
    from thalweg.validate import ERRORS

    kind = ERRORS[measure].kind
    if kind == "factor":
        return f"x{value:.2f}"
    return f"{value * 100:{sign}.1f} {'%' if kind == 'relative' else 'points'}"


def _colour(measure: str, value: float | None) -> str:
    from thalweg.validate import ERRORS

    if value is None:
        return ""
    kind = ERRORS[measure]
    return COLOURS[sum(kind.size(value) > limit for limit in LIMITS[kind.kind])]
