"""Output of `thalweg validate`: text, or JSON."""

import shlex
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from thalweg.cli.printing import evidence, output
from thalweg.cli.printing import validation_tables as tables

if TYPE_CHECKING:
    from thalweg.analysis import Evidence
    from thalweg.validate import ComparedMeasure, EngineComparison, GridPart

MAX_SHOWN = 10


def show(comparison: "EngineComparison") -> None:
    """Print cells, totals of all errors, the largest disagreements, and the goals."""
    from thalweg.validate import words

    is_terminal = sys.stdout.isatty()
    first, second = comparison.engines
    output.data(f"errors of {first}, with {second} as the reference")
    if any(compared.within_noise for cell in comparison.cells for compared in cell.measures.values()):
        output.data(f"{words.NOISE} marks errors within the uncertainty of the repetitions")
    for part in comparison.parts:
        cells = [cell for cell in comparison.cells if cell.scenario == part.name]
        output.data(f"\n{part.name}: {part.about}" if part.about else f"\n{part.name}")
        tables.show(tables.of_cells(cells, part.sweep_keys), is_terminal=is_terminal)
        for note, count in tables.notes(cells):
            output.data(f"  {note}" + (f" ({count} rows)" if count > 1 else ""))
    output.data("\noverall sizes of the errors")
    tables.show(tables.of_overall(comparison.overall), is_terminal=is_terminal)
    if comparison.disagreements:
        total = len(comparison.disagreements)
        largest = comparison.disagreements[:MAX_SHOWN]
        rest = f", the {MAX_SHOWN} largest of {total}" if total > MAX_SHOWN else ""
        output.data(f"\ndisagreements{rest}")
        tables.show(tables.of_disagreements(comparison, largest), is_terminal=is_terminal)
    output.data("\nto report both engines together, with time series")
    for line in reports(comparison.parts):
        output.data(f"  {line}")
    output.data("\ngoals")
    tables.show(tables.of_goals(comparison.goals), is_terminal=is_terminal)


def reports(parts: Sequence["GridPart"]) -> list[str]:
    """Return the command that creates a report of a part's runs, for each part with results."""
    lines = []
    for part in parts:
        directories = dict.fromkeys(str(side.directory) for side in part.sides if side.summary is not None)
        if directories:
            lines.append(shlex.join(["thalweg", "report", *directories, "--out", f"{part.name}.html"]))
    return lines


def as_json(comparison: "EngineComparison", coverage: "Sequence[Evidence]", *, interrupted: bool) -> dict[str, object]:
    """Return all results in the format of docs/reference/validation.md."""
    return {
        "engines": list(comparison.engines),
        "reference": comparison.engines[1],
        "points": comparison.grid.cells,
        "points_left_out": comparison.grid.left_out,
        "interrupted": interrupted,
        "evidence": evidence.min_extent(coverage),
        "cautions": [item.caution for item in coverage if item.caution],
        "cells": [
            asdict(cell) | {"measures": {name: _compared(each) for name, each in cell.measures.items()}}
            for cell in comparison.cells
        ],
        "overall": [asdict(summary) for summary in comparison.overall],
        "goals": [
            {
                "errors_in": goal.goal.title,
                "measure": goal.goal.measure,
                "statistic": goal.goal.statistic,
                "limit": goal.goal.limit,
                "found": goal.found,
                "p90": goal.p90,
                "n": goal.n,
                "within_noise": goal.within_noise,
                "verdict": goal.verdict,
            }
            for goal in comparison.goals
        ],
        "disagreements": [
            {
                "scenario": disagreement.cell.scenario,
                "point": disagreement.cell.point,
                "flow": disagreement.cell.flow,
                "measure": disagreement.measure,
            }
            | _compared(disagreement.compared)
            | {"reason": comparison.reason(disagreement)}
            for disagreement in comparison.disagreements
        ],
        "runs": [
            {"scenario": part.name, "engine": side.engine.name, "run": str(side.directory)}
            for part in comparison.parts
            for side in dict.fromkeys(part.sides)
            if side.directory
        ],
        "reports": reports(comparison.parts),
    }


def _compared(compared: "ComparedMeasure") -> dict[str, object]:
    return asdict(compared) | {"within_noise": compared.within_noise}
