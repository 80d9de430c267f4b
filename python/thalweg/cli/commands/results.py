"""`thalweg results`: the numbers of a run, per point of the sweep and flow."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from thalweg.cli.printing import evidence, output, results_table
from thalweg.errors import ThalwegError

EPILOG = "Example: thalweg results runs/quickstart-sim-1a2b3c4d"


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
    summary = analysis.summary(
        run, measures=None if as_csv or as_json else (*results_table.MEASURES, *analysis.CAUTION_COUNTS)
    )
    status = analysis.status(run)
    found = analysis.evidence(run)
    cautions = analysis.cautions(run, summary)
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
        output.data(results_table.lines(summary, run.sweep_keys)[0])
        output.talk(f"n repetitions; {analysis.METHOD}")
    for caution in cautions:
        output.talk(evidence.sentence(caution))
    for reason in output.counted([mark.reason for mark in status.untrustworthy]):
        output.talk(reason)
    if status.not_needed:
        output.talk(f"{status.not_needed} of {status.expected} experiments were not needed: a study was sure enough")
    raise typer.Exit(evidence.code(found))
