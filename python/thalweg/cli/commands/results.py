"""`thalweg results`: the numbers of a run, per point of the sweep and flow."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from thalweg import printable
from thalweg.cli.printing import evidence, output
from thalweg.errors import ThalwegError

if TYPE_CHECKING:
    import polars as pl

EPILOG = "Example: thalweg results runs/quickstart-sim-1a2b3c4d"

SHOWN = {"goodput": "goodput", "completion_time": "completion time", "retransmit_ratio": "retransmits"}
"""Measures of a flow in the table, and their headings; `--json` and `--csv` have them all."""

OF_COPIES = {"copies_jain": "Jain of copies"}
"""Measures that are shown besides where a flow has parallel copies."""

UNITS = {"bit/s": ("Mbit/s", 1e6), "s": ("s", 1.0), "ratio": ("%", 0.01), "count": ("", 1.0)}
"""How a unit is shown, and how much of it that is."""


def command(
    directory: Annotated[Path, typer.Argument(metavar="RUN_DIR", help="Run directory.", show_default=False)],
    as_json: Annotated[bool, typer.Option("--json", help="Every measure, as JSON.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Every measure, as CSV.")] = False,
) -> None:
    """Print the numbers of a run.

    Means over the repetitions, with 95 % confidence intervals, per point of the sweep and flow.
    """
    if as_json and as_csv:
        raise ThalwegError("bad-usage", "--json and --csv are two different forms", expected="one of them")
    from thalweg import analysis
    from thalweg.results import open_run

    run = open_run(directory)
    summary = analysis.summary(run, measures=None if as_csv or as_json else {**SHOWN, **OF_COPIES})
    status = analysis.status(run)
    found = analysis.evidence(run)
    cautions = analysis.cautions(run)
    if as_csv:
        output.data_csv(summary)
    elif as_json:
        output.data_json(
            {
                "run": str(directory),
                "name": run.name,
                "engine": run.engine,
                "experiments": status.expected,
                "finished": status.finished,
                "failed": len(status.failures),
                "evidence": found.extent,
                "cautions": cautions,
                "untrustworthy": [asdict(mark) for mark in status.untrustworthy],
                "measured": [asdict(each) for each in analysis.measured(run)],
                "method": analysis.METHOD,
                "rows": summary.fill_nan(None).to_dicts(),
            }
        )
    elif summary.height:
        output.data(_table(summary, run.sweep_keys))
        output.talk(f"n repetitions; {analysis.METHOD}")
    for caution in cautions:
        output.talk(evidence.sentence(caution))
    for reason in output.counted([mark.reason for mark in status.untrustworthy]):
        output.talk(reason)
    if status.not_needed:
        output.talk(f"{status.not_needed} of {status.expected} experiments were not needed: a study was sure enough")
    raise typer.Exit(evidence.code(found))


def _table(summary: "pl.DataFrame", keys: Sequence[str]) -> str:
    """Write a line per point and flow."""
    of_copies = summary.filter(measure=next(iter(OF_COPIES))).height
    shown = {**SHOWN, **(OF_COPIES if of_copies else {})}
    lines: dict[tuple[object, ...], dict[str, tuple[int, str]]] = {}
    for row in summary.to_dicts():
        if row["flow"] is not None and row["measure"] in shown:
            line = (row["experiment"], *(row[key] for key in keys), row["flow"], row["cc"])
            estimate = _estimate(row["unit"], row["mean"], row["low"], row["high"])
            lines.setdefault(line, {})[row["measure"]] = row["n"], estimate
    from thalweg.analysis import MEASURES

    headings = [*keys, "flow", "cc", "n"]
    headings += [f"{title} ({UNITS[MEASURES[measure].unit][0]})" for measure, title in shown.items()]
    rows = []
    for (_, *names), measures in lines.items():
        n = max((n for n, _ in measures.values()), default=0)
        estimates = [measures[measure][1] if measure in measures else "-" for measure in shown]
        rows.append([*map(printable.plain, names), str(n), *estimates])
    return output.table(headings, rows, numbers=[len(keys) + 2])


def _estimate(unit: str, mean: float | None, low: float | None, high: float | None) -> str:
    """Write a mean with its interval."""
    if mean is None:
        return "-"
    size = UNITS[unit][1]
    if low is None or high is None:
        return f"{mean / size:.4g}"
    return f"{mean / size:.4g} [{low / size:.4g}, {high / size:.4g}]"
