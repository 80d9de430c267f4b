"""`thalweg reproduce`: a paper's experiments, run here, and its claims, judged one by one."""

import os
import shlex
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from thalweg import engine
from thalweg.cli import guest_kernel, typed
from thalweg.cli.options import option
from thalweg.cli.printing import evidence, figure_files, output
from thalweg.cli.retry import Retry, forget_untrustworthy
from thalweg.errors import Exit, ThalwegError

if TYPE_CHECKING:
    from thalweg.engine import Capabilities, Engine
    from thalweg.report.pages.study import StudyPage
    from thalweg.run import Outcome
    from thalweg.studies import Reproduced, Study
    from thalweg.studies.claims.planned_part import PlannedPart

EPILOG = "Example: thalweg reproduce itc18-mixed-workload --quick"

EVERY = "all"


def command(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME|DIR|all", help="Name of a study, folder with a study, or all.", show_default=False
        ),
    ],
    engine_name: Annotated[
        str, option("--engine", "NAME|all", "Engine: sim, kernel, uml, vm or all. [default: sim]")
    ] = engine.DEFAULT,
    kernel: guest_kernel.Kernel = None,
    modules: guest_kernel.Modules = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer points and repetitions, for a quick overview.")] = False,
    out: Annotated[Path | None, option("--out", "DIR", "Folder of runs and pages. [default: runs/studies]")] = None,
    threads: Annotated[
        int | None, option("--threads", "N", "Experiments at a time. [default: one per core; kernel, vm: 1]", min=1)
    ] = None,
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            help="Exit with code 1 if a claim held in the recorded results and does not now, or nothing is recorded.",
        ),
    ] = False,
    record: Annotated[
        bool, typer.Option("--record", help="Store the results in the study's found.json, for --check.")
    ] = False,
    retry_untrustworthy: Retry = False,
    policy: Annotated[
        Path | None,
        option(
            "--policy",
            "FILE",
            "Write the policy file that follows from the results, for `thalweg-agent tune --policy`.",
        ),
    ] = None,
    figures: Annotated[
        Path | None,
        option("--figures", "DIR", "Write the figures as files into DIR; for all studies, into a subfolder for each."),
    ] = None,
    form: figure_files.Form = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the results as JSON.")] = False,
) -> None:
    """Repeat a study's experiments and judge its claims.

    Prints for each claim the paper's result, the engines' results, and whether the claim holds, and writes a page with
    the figures. Claims that do not hold are not an error. `thalweg studies` lists the studies;
    docs/reference/studies.md describes how claims are judged.

    The same command resumes an interrupted run; finished experiments are not run again.
    """
    from thalweg import studies
    from thalweg.cli.printing import reproduce_output

    folders = list(studies.ready_made().values()) if name == studies.ALL else [studies.find(name)]
    loaded = [studies.load(folder) for folder in folders]
    if record:
        _check_recordable(loaded)
    drawn_to = _figure_folders(loaded, figures, form, is_alone=name != studies.ALL)
    guest_kernel.choose(kernel, modules, engine_name)
    capabilities = engine.capabilities()
    engines = _engines(engine_name, capabilities)
    if policy is not None:
        _check_policy(loaded, engines)
    plans = [
        [studies.plan(study, chosen_engine, capabilities, quick=quick) for chosen_engine in engines] for study in loaded
    ]
    ended, results = Exit.FINE, []
    for study, planned in zip(loaded, plans, strict=True):
        for reproduced in planned:
            directory = studies.folder(study, reproduced.engine.name, out or studies.RUNS, quick=quick)
            if ended is not Exit.INTERRUPTED:
                if retry_untrustworthy:
                    for run in sorted(directory.glob("*/")):
                        forget_untrustworthy(run)
                studies.run(reproduced, directory, partial(_run, study, capabilities, threads), report=output.talk)
                ended = evidence.worst([ended, reproduced.exit_code])
        judged = [candidate for candidate in planned if candidate.judged]
        page, files = None, None
        if ended is not Exit.INTERRUPTED:
            page = studies.folder(study, engine_name, out or studies.RUNS, quick=quick).with_suffix(".html")
            files = _write_page(study, judged, page, drawn_to.get(study.name), form, quick=quick)
        if as_json:
            results.append(reproduce_output.as_json(study, judged, page, files, quick=quick))
        elif judged:
            reproduce_output.show(study, judged, page, files)
        if check and not _is_as_recorded(study, judged, quick=quick):
            ended = evidence.worst([ended, Exit.FAILED])
        if record:
            _record(study, judged, quick=quick)
        if policy is not None and judged:
            _write_policy(study, judged[0], policy, quick=quick)
        if ended is Exit.INTERRUPTED:
            break
    if as_json:
        output.data_json({"studies": results, "interrupted": ended is Exit.INTERRUPTED, "command": typed.words()})
    if ended is Exit.INTERRUPTED:
        output.talk(f"interrupted: finished experiments were evaluated; to resume: {typed.again()}")
    raise typer.Exit(_exit_code([item for planned in plans for item in planned], ended))


def _exit_code(reproduced: "Sequence[Reproduced]", ended: Exit) -> Exit:
    """Return the worst exit code; print the cautions unless the run was interrupted."""
    codes = [ended, *(evidence.code(extent) for item in reproduced for extent in item.evidence)]
    cautions = [caution for item in reproduced for caution in item.cautions]
    if not any(item.is_judged for item in reproduced):
        codes.append(Exit.NO_EVIDENCE)
        cautions.append("no claim could be judged")
    for caution in cautions if ended is not Exit.INTERRUPTED else ():
        output.talk(evidence.sentence(caution))
    return evidence.worst(codes)


def _engines(name: str, capabilities: "Capabilities") -> "list[Engine]":
    return list(capabilities.engines.values()) if name == EVERY else [engine.choose(name, capabilities)]


def _run(
    study: "Study",
    capabilities: "Capabilities",
    threads: int | None,
    planned_part: "PlannedPart",
    directory: Path,
    due: "Sequence[tuple[int, int]]",
) -> "Outcome":
    from thalweg.run import Progress, execute, real_time_s

    assert planned_part.plan
    suffix = "" if any(repetition == 0 for _, repetition in due) else ", more repetitions"
    title = f"{study.name}: {planned_part.part} on {planned_part.engine.name}{suffix}"
    due_pairs = set(due)
    experiments = [
        experiment
        for experiment in planned_part.plan.experiments
        if (experiment.experiment, experiment.repetition) in due_pairs
    ]
    seconds = real_time_s(planned_part.plan.model_copy(update={"experiments": experiments}), planned_part.engine)
    with Progress(output.console(), title=title, real_time_s=seconds) as progress:
        return execute(
            planned_part.plan,
            directory,
            binary=capabilities.binary,
            threads=threads,
            command=typed.words(),
            listener=progress.event,
            due=due if len(experiments) < len(planned_part.plan.experiments) else None,
        )


def _figure_folders(
    studies: "Sequence[Study]", directory: Path | None, form: str | None, *, is_alone: bool
) -> dict[str, Path]:
    """Return the folder of each study's figures; check before the run that they can be written."""
    if directory is None:
        figure_files.only_with_figures(form, "thalweg reproduce NAME")
        return {}
    from thalweg.report.drawing import paper

    folders = {study.name: directory if is_alone else directory / study.name for study in studies}
    for folder in folders.values():
        paper.prepare(folder, form or figure_files.DEFAULT)
    return folders


def _write_page(
    study: "Study",
    reproduced: "Sequence[Reproduced]",
    page: Path,
    figures: Path | None,
    form: str | None,
    *,
    quick: bool,
) -> list[Path] | None:
    from thalweg import studies

    content = studies.as_page(study, reproduced, quick=quick)
    studies.write_page(content, page)
    return None if figures is None else _save_figures(content, figures, form)


def _save_figures(content: "StudyPage", directory: Path, form: str | None) -> list[Path]:
    from thalweg.report.drawing import paper

    files = paper.save(content.figures, directory, form or figure_files.DEFAULT)
    for caution in content.left_out:
        output.talk(caution)
    return files


def _check_recordable(studies: "Sequence[Study]") -> None:
    for study in studies:
        if not os.access(study.folder, os.W_OK):
            raise ThalwegError(
                "cannot-write",
                f"the results cannot be stored: `{study.folder}` cannot be written",
                place="--record",
                hint="--record is for a checkout of the sources, or a study of your own",
                exit_code=Exit.CANNOT_WRITE,
            )


def _check_policy(studies: "Sequence[Study]", engines: "Sequence[Engine]") -> None:
    from thalweg.studies.pages import lessons

    if len(studies) > 1 or len(engines) > 1:
        raise ThalwegError(
            "several-policies",
            "--policy needs one study and one engine",
            place="--policy",
            hint="select one study and one engine",
        )
    if studies[0].claims.policy is None:
        raise lessons.no_policy(studies[0])


def _write_policy(study: "Study", reproduced: "Reproduced", file: Path, *, quick: bool) -> None:
    from thalweg.studies.judging import export_policy
    from thalweg.studies.pages import lessons

    export_policy.write(lessons.policy_file(study, reproduced, quick=quick), file)
    output.talk(f"policy  {file}")


def _record(study: "Study", reproduced: "Sequence[Reproduced]", *, quick: bool) -> None:
    """Store the results, except those of an incomplete study."""
    from thalweg.studies.running import recorded_results

    for result in reproduced:
        if result.engine.available and not result.directories:
            continue
        if result.engine.available and result.exit_code is Exit.FINE:
            output.talk(f"recorded: {recorded_results.record(study, result, quick=quick)} ({result.engine.name})")
        else:
            why = result.engine.reason or "not every experiment is complete"
            output.talk(f"{study.name}: not recorded for {result.engine.name}: {why}")


def _is_as_recorded(study: "Study", reproduced: "Sequence[Reproduced]", *, quick: bool) -> bool:
    """Return whether all claims that held still hold, and report the others; missing recorded results fail as well."""
    from thalweg.studies.running import recorded_results

    is_fine = True
    for result in reproduced:
        if not result.engine.available:
            output.talk(f"--check: {study.name} on {result.engine.name} cannot run here: {result.engine.reason}")
        if (
            not result.directories and recorded_results.recorded(study, result, quick=quick) is None
        ) or not result.engine.available:
            continue
        if recorded_results.recorded(study, result, quick=quick) is None:
            words = [
                "thalweg",
                "reproduce",
                study.name,
                "--engine",
                result.engine.name,
                *(["--quick"] if quick else []),
            ]
            hint = shlex.join([*words, "--record"])
            output.talk(
                f"--check: there are no recorded results of {study.name} on {result.engine.name}; to record: {hint}"
            )
            is_fine = False
        for broken in recorded_results.broken(study, result, quick=quick):
            now = f"{broken.now.verdict}{f' ({broken.now.note})' if broken.now.note else ''}"
            output.talk(f"--check: {study.name}: `{broken.claim}` held on {result.engine.name}; now: {now}")
            is_fine = False
    return is_fine
