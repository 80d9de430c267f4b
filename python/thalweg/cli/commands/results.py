"""`thalweg results`: the numbers of a run, per point of the sweep and flow."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from thalweg.cli.options import CheckTexts
from thalweg.cli.printing import checks_output, evidence, output, results_table
from thalweg.errors import ThalwegError

if TYPE_CHECKING:
    from thalweg import checks
    from thalweg.results import Run

EPILOG = "Example: thalweg results runs/quickstart-sim-1a2b3c4d"


def command(
    directory: Annotated[Path, typer.Argument(metavar="RUN_DIR", help="Run directory.", show_default=False)],
    bounds: CheckTexts = None,
    as_json: Annotated[bool, typer.Option("--json", help="Every measure, as JSON.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Every measure, as CSV.")] = False,
) -> None:
    """Print the numbers of a run.

    Means over the repetitions, with 95 % confidence intervals, per point of the sweep and flow.

    --check judges bounds as `thalweg run --check` does, with the same exit codes.
    """
    if as_json and as_csv:
        raise ThalwegError("bad-usage", "--json and --csv are two different forms", expected="one of them")
    if as_csv and bounds:
        raise ThalwegError("bad-usage", "a CSV table cannot contain checks", place="--check", hint="use --json")
    from thalweg import analysis
    from thalweg.results import open_run

    run = open_run(directory)
    judged = _judged(run, bounds or [])
    summary = analysis.summary(
        run, measures=None if as_csv or as_json else (*results_table.MEASURES, *analysis.CAUTION_COUNTS)
    )
    status = analysis.status(run)
    coverage = analysis.evidence(run)
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
                "evidence": coverage.extent,
                "cautions": cautions,
                "untrustworthy": [asdict(mark) for mark in status.untrustworthy],
                "measured": [asdict(measurement) for measurement in analysis.measured(run)],
                "method": analysis.METHOD,
                "rows": summary.fill_nan(None).to_dicts(),
                **({"checks": checks_output.as_json(judged)} if bounds else {}),
            }
        )
    elif summary.height:
        output.data(results_table.lines(summary, run.sweep_keys)[0])
        output.talk(f"n repetitions; {analysis.METHOD}")
    if not as_json:
        for outcome in judged:
            output.data(checks_output.sentence(outcome))
    for caution in cautions:
        output.talk(evidence.sentence(caution))
    for reason in output.counted([mark.reason for mark in status.untrustworthy]):
        output.talk(reason)
    if status.not_needed:
        output.talk(f"{status.not_needed} of {status.expected} experiments were not needed: a study was sure enough")
    raise typer.Exit(evidence.worst([evidence.code(coverage), *checks_output.codes(judged)]))


def _judged(run: "Run", texts: Sequence[str]) -> "Sequence[checks.Outcome]":
    if not texts:
        return ()
    from thalweg import analysis, checks

    points = {experiment["experiment"]: experiment["sweep"] for experiment in run.plan["experiments"]}
    return checks.judge(run, checks.parse_all(texts, analysis.flow_names(run), points))
