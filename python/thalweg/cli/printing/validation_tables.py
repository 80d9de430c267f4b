"""Tables of `thalweg validate`: plain in a pipe, with colours on a terminal."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from thalweg import printable
from thalweg.cli.printing import output

if TYPE_CHECKING:
    from thalweg.validate import Disagreement, EngineComparison, GridCell, JudgedGoal, Overall

Row = list[str]

LIMITS = {"relative": (0.05, 0.2), "points": (0.05, 0.15), "factor": (1.25, 2.0)}
"""Limits up to which an error is coloured as small and as medium."""

COLOURS = ("green", "yellow", "red")

VERDICTS = {"met": "green", "not met": "bold red", "not enough": "yellow"}

HEADINGS = {"rtt_mean": "RTT", "completion_time": "completion", "utilisation": "util."}


@dataclass(frozen=True)
class Sheet:
    """A table: its texts, their colours, and the numeric columns."""

    headings: Row
    rows: list[Row]
    colours: list[Row]
    numbers: range


def of_cells(cells: Sequence["GridCell"], keys: Sequence[str]) -> Sheet:
    """Format the errors of a scenario, one line per cell."""
    from thalweg.validate import ERRORS, words

    measures = [name for name in ERRORS if any(name in cell.measures for cell in cells)]
    with_state = any(cell.state != "compared" for cell in cells)
    with_cc = any(_says_more_than_its_name(cell, keys) for cell in cells)
    titles = [HEADINGS.get(name, ERRORS[name].title) for name in measures]
    key_headings = [*map(words.short, keys), "flow", *(["cc"] if with_cc else [])]
    rows, colours = [], []
    for cell in cells:
        names = [*(printable.plain(cell.point[key]) for key in keys), words.flow(cell)]
        names += [cell.cc or ""] if with_cc else []
        compared = [cell.measures.get(name) for name in measures]
        errors = [
            (words.NOISE if measure and measure.within_noise else "")
            + words.error(name, measure.error if measure else None)
            for name, measure in zip(measures, compared, strict=True)
        ]
        state = ["" if cell.state == "compared" else cell.state] if with_state else []
        rows.append([*names, *errors, *state])
        hues = [
            _colour(name, measure.error if measure else None) for name, measure in zip(measures, compared, strict=True)
        ]
        colours.append([""] * len(names) + hues + ["bold red"] * len(state))
    headings = [*key_headings, *titles, *(["state"] if with_state else [])]
    return Sheet(headings, rows, colours, range(len(key_headings), len(key_headings) + len(measures)))


def _says_more_than_its_name(cell: "GridCell", keys: Sequence[str]) -> bool:
    """Return whether the congestion control of a cell is neither the flow's name nor in a separate column."""
    return cell.cc is not None and cell.cc != cell.flow and f"flow.{cell.flow}.cc" not in keys


def of_overall(totals: Sequence["Overall"]) -> Sheet:
    """Format the totals of all errors."""
    from thalweg.validate import ERRORS, words

    rows = [
        [
            ERRORS[total.measure].title,
            str(total.n),
            words.size(total.measure, total.median),
            words.size(total.measure, total.p90),
        ]
        for total in totals
    ]
    colours = [["", "", _colour(total.measure, total.median), _colour(total.measure, total.p90)] for total in totals]
    return Sheet(["measure", "rows", "median", "90th percentile"], rows, colours, range(1, 4))


def of_goals(goals: Sequence["JudgedGoal"]) -> Sheet:
    """Format each goal with its result."""
    from thalweg.validate import words

    rows = [[goal.goal.title, words.limit(goal), words.found(goal), str(goal.n), goal.verdict] for goal in goals]
    colours = [["", "", "", "", VERDICTS[goal.verdict]] for goal in goals]
    return Sheet(["errors in", "goal", "found", "rows", "verdict"], rows, colours, range(2, 4))


def of_disagreements(comparison: "EngineComparison", disagreements: Sequence["Disagreement"]) -> Sheet:
    """Format the disagreements of the engines, with both values."""
    from thalweg.validate import ERRORS, words

    rows, colours = [], []
    for disagreement in disagreements:
        first, second = (
            words.value(disagreement.measure, number)
            for number in (disagreement.compared.first, disagreement.compared.second)
        )
        error = words.error(disagreement.measure, disagreement.compared.error)
        title = HEADINGS.get(disagreement.measure, ERRORS[disagreement.measure].title)
        rows.append([words.place(disagreement.cell), words.flow(disagreement.cell), title, first, second, error])
        colours.append(["", "", "", "", "", _colour(disagreement.measure, disagreement.compared.error)])
    return Sheet(["where", "flow", "measure", *comparison.engines, "error"], rows, colours, range(3, 6))


def notes(cells: Sequence["GridCell"]) -> list[tuple[str, int]]:
    """Return remarks about rows, each with its count."""
    return [
        (note.strip().replace("\n", "\n    "), count)
        for note, count in Counter(note for cell in cells for note in cell.notes).items()
    ]


def show(sheet: Sheet, *, is_terminal: bool) -> None:
    """Print a table: plain aligned text in pipes and logs, with colours on a terminal."""
    if not is_terminal:
        output.data(output.table(sheet.headings, sheet.rows, numbers=sheet.numbers))
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column, heading in enumerate(sheet.headings):
        table.add_column(heading, justify="right" if column in sheet.numbers else "left", overflow="fold")
    for row, hues in zip(sheet.rows, sheet.colours, strict=True):
        table.add_row(*(Text(printable.value(text), style=hue) for text, hue in zip(row, hues, strict=True)))
    Console().print(table)


def _colour(measure: str, value: float | None) -> str:
    from thalweg.validate import ERRORS

    if value is None:
        return ""
    kind = ERRORS[measure]
    return COLOURS[sum(kind.size(value) > limit for limit in LIMITS[kind.kind])]
