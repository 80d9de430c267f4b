"""`thalweg run`: runs a scenario, and writes a run directory and a report."""

import shlex
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from thalweg import engine, executors
from thalweg.cli import guest_kernel, retry, typed
from thalweg.cli.options import CheckTexts, EngineName, Executor, File, Overrides, Threads, option
from thalweg.cli.prepared import prepare
from thalweg.cli.printing import checks_output, evidence, output, results_table
from thalweg.cli.retry import Retry, forget_untrustworthy
from thalweg.errors import Exit, ThalwegError
from thalweg.run import Outcome, Progress, default_directory, real_time_s

if TYPE_CHECKING:
    import polars as pl

    from thalweg import checks, plan
    from thalweg.analysis import Evidence
    from thalweg.results import Run, Untrustworthy

EPILOG = "Example: thalweg run scenarios/quickstart.toml --set path.buffer=2bdp"

REPORT = "report.html"
MAX_LINES = 30
MAX_EXPERIMENTS = 2000
"""Maximum number of experiments for which the table is printed."""


def command(
    file: File,
    engine_name: EngineName = engine.DEFAULT,
    overrides: Overrides = None,
    out: Annotated[Path | None, option("--out", "DIR", "Run directory. [default: runs/NAME-ENGINE-HASH]")] = None,
    repetitions: Annotated[
        int | None, option("--repetitions", "N", "Repetitions, instead of the scenario's.", min=1)
    ] = None,
    seed: Annotated[int | None, option("--seed", "N", "Random seed, instead of the scenario's.", min=0)] = None,
    bounds: CheckTexts = None,
    threads: Threads = None,
    retry_untrustworthy: Retry = False,
    with_report: Annotated[bool, typer.Option("--report/--no-report", help="Whether to write the report.")] = True,
    kernel: guest_kernel.Kernel = None,
    modules: guest_kernel.Modules = None,
    executor: Executor = executors.DEFAULT,
    shards: Annotated[
        int | None, option("--shards", "N", "Number of shards of the plan on a cluster. [default: automatic]", min=1)
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print paths, counts of experiments and checks as JSON.")
    ] = False,
) -> None:
    """Run a scenario, and write a report.

    Ends with the table of `thalweg results` (at most 30 lines; none above 2000 experiments) and the paths of the
    run directory and the report.

    The same command resumes an interrupted run; finished experiments are not run again.

    With --check, each bound is judged by its 95 % interval over the repetitions (wider for a violation at one of
    several points): exit code 1 if an experiment failed, else 7 if a bound does not hold, else 8 if one is not settled,
    as with too few repetitions.
    """
    executors.check(executor)
    if shards is not None and executor == executors.DEFAULT:
        raise ThalwegError(
            "bad-usage",
            "--shards divides a plan among the machines of a cluster, and the run is on this one",
            place="--shards",
            found=str(shards),
            hint=f"--executor slurm --shards {shards}",
        )
    guest_kernel.choose(kernel, modules, engine_name)
    plan, capabilities = prepare(file, engine_name, overrides or [], seed, repetitions)
    wanted_checks = _checks(plan, bounds)
    directory = out or default_directory(plan, capabilities.engines[plan.engine])
    if retry_untrustworthy:
        forget_untrustworthy(directory)
    with Progress(output.console(), real_time_s=real_time_s(plan, capabilities.engines[plan.engine])) as progress:
        work = executors.Work(
            plan, directory, capabilities.binary, threads, typed.words(), progress.event, shards=shards
        )
        outcome = executors.execute(work, executor)
    reports = with_report and outcome.exit_code is not Exit.INTERRUPTED and outcome.present + outcome.finished > 0
    problem = _write_report(directory) if reports else None
    if problem and as_json:
        raise problem
    numbers = _numbers(outcome, directory)
    coverage, marks, cautions = _evidence(outcome, numbers)
    judged = _judged(outcome, directory, wanted_checks)
    report = directory / REPORT if reports and not problem else None
    if as_json:
        verdicts = {"checks": checks_output.as_json(judged)} if bounds else {}
        output.data_json(_as_json(outcome, directory, report, coverage, marks, cautions) | verdicts)
    else:
        _print_numbers(outcome, directory, numbers)
        _print(outcome, directory, report, marks, cautions)
        for check_outcome in judged:
            output.data(checks_output.sentence(check_outcome))
    if problem:
        raise problem
    raise typer.Exit(evidence.worst([outcome.exit_code, evidence.code(coverage), *checks_output.codes(judged)]))


def _checks(plan: "plan.Plan", texts: Sequence[str] | None) -> "Sequence[checks.Check]":
    if not texts:
        return ()
    from thalweg import checks

    flows = list(dict.fromkeys(flow.name for experiment in plan.experiments for flow in experiment.flows))
    return checks.parse_all(texts, flows, {experiment.experiment: experiment.sweep for experiment in plan.experiments})


def _judged(outcome: Outcome, directory: Path, bounds: "Sequence[checks.Check]") -> "Sequence[checks.Outcome]":
    if not bounds or outcome.exit_code is Exit.INTERRUPTED:
        return ()
    from thalweg import checks
    from thalweg.results import open_run

    return checks.judge(open_run(directory), bounds)


def _write_report(directory: Path) -> ThalwegError | None:
    """Write the report; return the error if that fails."""
    from thalweg.report import write

    try:
        write([directory], directory / REPORT)
    except ThalwegError as problem:
        return problem
    return None


def _numbers(outcome: Outcome, directory: Path) -> "tuple[Run, pl.DataFrame] | None":
    """Read the inputs of the table and the cautions; None if the run cannot be read."""
    from thalweg import analysis
    from thalweg.results import open_run

    is_shown = outcome.experiments <= MAX_EXPERIMENTS
    try:
        run = open_run(directory)
        measures = (*(results_table.MEASURES if is_shown else ()), *analysis.CAUTION_COUNTS)
        return run, analysis.summary(run, measures=measures)
    except ThalwegError:
        return None


def _evidence(
    outcome: Outcome, numbers: "tuple[Run, pl.DataFrame] | None"
) -> "tuple[Evidence, Sequence[Untrustworthy], list[str]]":
    """Return how much of the run can be used, which experiments are untrustworthy, and cautions.

    Without numbers, these are derived from the engine's events.
    """
    from thalweg import analysis
    from thalweg.results import Untrustworthy

    try:
        if numbers:
            run, measured = numbers
            return analysis.evidence(run), run.untrustworthy, analysis.cautions(run, measured)
    except ThalwegError:
        pass
    marks = [
        Untrustworthy(event["id"], event["experiment"], event["repetition"], event["reason"])
        for event in outcome.untrustworthy
    ]
    failures = [
        analysis.Failure(event["experiment"], event["repetition"], event["code"], event["message"])
        for event in outcome.failed
    ]
    finished = outcome.present + outcome.finished
    coverage = analysis.of_status(analysis.Status(outcome.experiments, finished, failures, marks))
    return coverage, marks, [coverage.caution] if coverage.caution else []


def _as_json(
    outcome: Outcome,
    directory: Path,
    report: Path | None,
    coverage: "Evidence",
    marks: "Sequence[Untrustworthy]",
    cautions: list[str],
) -> dict[str, object]:
    return {
        "run": str(directory),
        "report": str(report) if report else None,
        "experiments": outcome.experiments,
        "present": outcome.present,
        "finished": outcome.finished,
        "failed": outcome.failed,
        "untrustworthy": [asdict(mark) for mark in marks],
        "evidence": coverage.extent,
        "cautions": cautions,
        "interrupted": outcome.exit_code is Exit.INTERRUPTED,
        "command": typed.words(),
    }


def _print_numbers(outcome: Outcome, directory: Path, numbers: "tuple[Run, pl.DataFrame] | None") -> None:
    """Print the first lines of the table of `thalweg results`; nothing if the run has no numbers."""
    from thalweg.analysis import METHOD

    if outcome.experiments > MAX_EXPERIMENTS:
        output.talk(f"the numbers of {outcome.experiments} experiments: thalweg results {shlex.quote(str(directory))}")
        return
    if numbers is None or not numbers[1].height:
        return  # the reason is printed below
    run, summary = numbers
    table, omitted = results_table.lines(summary, run.sweep_keys, MAX_LINES)
    output.data(table)
    rest = f"{omitted} more lines: thalweg results {shlex.quote(str(directory))}; " if omitted else ""
    output.talk(f"{rest}n repetitions; {METHOD}")


def _print(
    outcome: Outcome, directory: Path, report: Path | None, marks: "Sequence[Untrustworthy]", cautions: Sequence[str]
) -> None:
    output.data(f"run     {directory}")
    if report:
        output.data(f"report  {report}")
    typed_again = typed.again()
    if outcome.exit_code is Exit.INTERRUPTED:
        finished = outcome.present + outcome.finished
        output.talk(
            f"interrupted: {finished} of {outcome.experiments} experiments are finished; to resume: {typed_again}"
        )
    else:
        output.data(f"again   {typed_again}")
    for caution in cautions if outcome.exit_code is not Exit.INTERRUPTED else ():
        output.talk(evidence.sentence(caution))
    if marks:
        output.talk(f"untrustworthy: {_first([mark.reason for mark in marks])}")
        output.talk(f"to run untrustworthy experiments again: {retry.command()}")
    if outcome.failed:
        output.error(_failed(outcome, typed_again), as_json=False)


def _first(texts: Sequence[str]) -> str:
    reasons = list(dict.fromkeys(text.strip() for text in texts))
    suffix = f" (and {len(reasons) - 1} other reasons)" if len(reasons) > 2 else " (and another reason)"
    return reasons[0] + (suffix if len(reasons) > 1 else "")


def _failed(outcome: Outcome, typed_again: str) -> ThalwegError:
    first = outcome.failed[0]
    why = _first([str(event["message"]) for event in outcome.failed]).replace("\n", "\n    ")
    return ThalwegError(
        "experiments-failed",
        f"{len(outcome.failed)} of {outcome.experiments} experiments failed",
        found=f"experiment {first['experiment']}, repetition {first['repetition']}: {why}",
        hint=f"when the cause is removed, to run the failed experiments: {typed_again}",
        exit_code=Exit.FAILED,
    )
