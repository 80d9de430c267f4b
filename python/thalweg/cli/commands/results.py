"""`thalweg results`: prints the numbers of runs, per point of the sweep and flow."""

import shlex
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from thalweg.cli.options import CheckTexts
from thalweg.cli.printing import checks_output, evidence, output, results_table
from thalweg.errors import ThalwegError

if TYPE_CHECKING:
    import polars as pl

    from thalweg import checks
    from thalweg.analysis import Evidence, Status
    from thalweg.results import Run

EPILOG = "Example: thalweg results runs/quickstart-sim-1a2b3c4d"


def command(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN_DIR", help="Run directories.", show_default=False)],
    bounds: CheckTexts = None,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Print every measure as JSON: an object; for several runs, a list of objects."),
    ] = False,
    as_csv: Annotated[
        bool, typer.Option("--csv", help="Print every measure as CSV; for several runs, with a column `run`.")
    ] = False,
) -> None:
    """Print the results of runs.

    Means over the repetitions, with 95 % confidence intervals, per point of the sweep and flow.

    --check judges bounds as `thalweg run --check` does: exit code 7 if one does not hold, else 8 if one is not settled.
    """
    if as_json and as_csv:
        raise ThalwegError("bad-usage", "--json and --csv cannot be combined", expected="one of them")
    if as_csv and bounds:
        raise ThalwegError("bad-usage", "a CSV table cannot contain checks", place="--check", hint="use --json")
    results = [_results(directory, bounds or [], every_measure=as_json or as_csv) for directory in runs]
    if as_csv:
        output.data_csv(_csv(results))
    elif as_json:
        objects = [_as_json(result, has_checks=bool(bounds)) for result in results]
        output.data_json(objects[0] if len(objects) == 1 else objects)
    for number, result in enumerate(results):
        if len(results) > 1 and not as_json and not as_csv:
            command = f" ({shlex.join(result.run.command)})" if result.run.command else ""
            output.data(f"{'' if number == 0 else chr(10)}{result.directory}{command}")
        _print(result, with_table=not as_json and not as_csv, with_checks=not as_json)
    codes = [
        code for result in results for code in (evidence.code(result.coverage), *checks_output.codes(result.judged))
    ]
    raise typer.Exit(evidence.worst(codes))


@dataclass(frozen=True)
class _Results:
    directory: Path
    run: "Run"
    summary: "pl.DataFrame"
    status: "Status"
    coverage: "Evidence"
    cautions: Sequence[str]
    judged: "Sequence[checks.Outcome]"


def _results(directory: Path, bounds: Sequence[str], *, every_measure: bool) -> _Results:
    """Evaluate a run; without `every_measure`, only the measures that the table and the cautions need."""
    from thalweg import analysis
    from thalweg.results import open_run

    run = open_run(directory)
    judged = _judged(run, bounds)
    measures = None if every_measure else (*results_table.MEASURES, *analysis.CAUTION_COUNTS)
    summary = analysis.summary(run, measures=measures)
    cautions = analysis.cautions(run, summary)
    return _Results(directory, run, summary, analysis.status(run), analysis.evidence(run), cautions, judged)


def _csv(results: Sequence[_Results]) -> "pl.DataFrame":
    import polars as pl

    if len(results) == 1:
        return results[0].summary
    frames = [result.summary.select(pl.lit(str(result.directory)).alias("run"), pl.all()) for result in results]
    return pl.concat(frames, how="diagonal_relaxed")


def _as_json(result: _Results, *, has_checks: bool) -> dict[str, object]:
    from thalweg import analysis

    return {
        "run": str(result.directory),
        "name": result.run.name,
        "engine": result.run.engine,
        "experiments": result.status.expected,
        "finished": result.status.finished,
        "failed": len(result.status.failures),
        "evidence": result.coverage.extent,
        "cautions": result.cautions,
        "untrustworthy": [asdict(mark) for mark in result.status.untrustworthy],
        "measured": [asdict(measurement) for measurement in analysis.measured(result.run)],
        "method": analysis.METHOD,
        "rows": result.summary.fill_nan(None).to_dicts(),
        **({"checks": checks_output.as_json(result.judged)} if has_checks else {}),
    }


def _print(result: _Results, *, with_table: bool, with_checks: bool) -> None:
    from thalweg import analysis

    status = result.status
    if with_table and result.summary.height:
        output.data(results_table.lines(result.summary, result.run.sweep_keys)[0])
        output.talk(f"n repetitions; {analysis.METHOD}")
    for outcome in result.judged if with_checks else ():
        output.data(checks_output.sentence(outcome))
    for caution in result.cautions:
        output.talk(evidence.sentence(caution))
    for reason in output.counted([mark.reason for mark in status.untrustworthy]):
        output.talk(reason)
    if status.not_needed:
        output.talk(f"{status.not_needed} of {status.expected} experiments were not run: the study did not need them")


def _judged(run: "Run", texts: Sequence[str]) -> "Sequence[checks.Outcome]":
    if not texts:
        return ()
    from thalweg import analysis, checks

    points = {experiment["experiment"]: experiment["sweep"] for experiment in run.plan["experiments"]}
    return checks.judge(run, checks.parse_all(texts, analysis.flow_names(run), points))
