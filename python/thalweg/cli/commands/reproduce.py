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
"""Stands for all engines."""


def command(
    name: Annotated[
        str,
        typer.Argument(metavar="NAME|DIR|all", help="Study, a folder with one, or all studies.", show_default=False),
    ],
    engine_name: Annotated[str, option("--engine", "NAME|all", "Engine to use. [default: sim]")] = engine.DEFAULT,
    kernel: guest_kernel.Kernel = None,
    modules: guest_kernel.Modules = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer points and repetitions: a first look.")] = False,
    out: Annotated[Path | None, option("--out", "DIR", "Folder of runs and pages. [default: runs/studies]")] = None,
    threads: Annotated[
        int | None, option("--threads", "N", "Experiments at a time. [default: what suits the engine]", min=1)
    ] = None,
    check: Annotated[
        bool,
        typer.Option("--check", help="Fail, with exit code 1, if a claim no longer holds that held when recorded."),
    ] = False,
    record: Annotated[
        bool, typer.Option("--record", help="Keep what was found in the study's found.json, for --check.")
    ] = False,
    retry_untrustworthy: Retry = False,
    policy: Annotated[Path | None, option("--policy", "FILE", "Write the policy for servers that follows.")] = None,
    figures: Annotated[
        Path | None,
        option("--figures", "DIR", "Write every figure as a file into DIR; of all studies, into a folder for each."),
    ] = None,
    form: figure_files.Form = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the results as JSON.")] = False,
) -> None:
    """Repeat a paper's experiments and judge its claims.

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
    whole = [[studies.plan(study, each, capabilities, quick=quick) for each in engines] for study in loaded]
    ended, told = Exit.FINE, []
    for study, planned in zip(loaded, whole, strict=True):
        for each in planned:
            place = studies.folder(study, each.engine.name, out or studies.RUNS, quick=quick)
            if ended is not Exit.INTERRUPTED:
                if retry_untrustworthy:
                    for run in sorted(place.glob("*/")):
                        forget_untrustworthy(run)
                studies.run(each, place, partial(_run, study, capabilities, threads), tell=output.talk)
                ended = evidence.worst([ended, each.exit_code])
        done = [each for each in planned if each.judged]
        page, files = None, None
        if ended is not Exit.INTERRUPTED:
            page = studies.folder(study, engine_name, out or studies.RUNS, quick=quick).with_suffix(".html")
            files = _write_page(study, done, page, drawn_to.get(study.name), form, quick=quick)
        if as_json:
            told.append(reproduce_output.as_json(study, done, page, files, quick=quick))
        elif done:
            reproduce_output.show(study, done, page, files)
        if check and not _is_as_recorded(study, done, quick=quick):
            ended = evidence.worst([ended, Exit.FAILED])
        if record:
            _record(study, done, quick=quick)
        if policy is not None and done:
            _write_policy(study, done[0], policy, quick=quick)
        if ended is Exit.INTERRUPTED:
            break
    if as_json:
        output.data_json({"studies": told, "interrupted": ended is Exit.INTERRUPTED, "command": typed.words()})
    if ended is Exit.INTERRUPTED:
        output.talk(f"interrupted: what is finished was judged; to go on: {typed.again()}")
    raise typer.Exit(_exit_code([each for planned in whole for each in planned], ended))


def _exit_code(reproduced: "Sequence[Reproduced]", ended: Exit) -> Exit:
    """Return the worst of what was found and how it `ended`; prints the cautions unless it was interrupted."""
    codes = [ended, *(evidence.code(found) for each in reproduced for found in each.evidence)]
    cautions = [caution for each in reproduced for caution in each.cautions]
    if not any(each.is_judged for each in reproduced):
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
    more = "" if any(repetition == 0 for _, repetition in due) else ", more repetitions"
    title = f"{study.name}: {planned_part.part} on {planned_part.engine.name}{more}"
    wanted = set(due)
    some = [
        experiment
        for experiment in planned_part.plan.experiments
        if (experiment.experiment, experiment.repetition) in wanted
    ]
    seconds = real_time_s(planned_part.plan.model_copy(update={"experiments": some}), planned_part.engine)
    with Progress(output.console(), title=title, real_time_s=seconds) as progress:
        return execute(
            planned_part.plan,
            directory,
            binary=capabilities.binary,
            threads=threads,
            command=typed.words(),
            listener=progress.event,
            due=due if len(some) < len(planned_part.plan.experiments) else None,
        )


def _figure_folders(
    studies: "Sequence[Study]", directory: Path | None, form: str | None, *, is_alone: bool
) -> dict[str, Path]:
    """Name the folder of each study's figures; what cannot be written is told before anything runs."""
    if directory is None:
        figure_files.only_with_figures(form, "thalweg reproduce NAME")
        return {}
    from thalweg.report.drawing import paper

    folders = {study.name: directory if is_alone else directory / study.name for study in studies}
    for folder in folders.values():
        paper.prepare(folder, form or figure_files.DEFAULT)
    return folders


def _write_page(
    study: "Study", done: "Sequence[Reproduced]", page: Path, figures: Path | None, form: str | None, *, quick: bool
) -> list[Path] | None:
    """Write the page of a study, and its figures where a folder for them is given; returns the files of figures."""
    from thalweg import studies

    shown = studies.as_page(study, done, quick=quick)
    studies.write_page(shown, page)
    return None if figures is None else _save_figures(shown, figures, form)


def _save_figures(shown: "StudyPage", directory: Path, form: str | None) -> list[Path]:
    """Write the figures of a page; which of the study's are missing, and why, is among the page's cautions."""
    from thalweg.report.drawing import paper

    files = paper.save(shown.figures, directory, form or figure_files.DEFAULT)
    for caution in shown.left_out:
        output.talk(caution)
    return files


def _check_recordable(studies: "Sequence[Study]") -> None:
    """Refuse to run for hours what cannot be kept."""
    for study in studies:
        if not os.access(study.folder, os.W_OK):
            raise ThalwegError(
                "cannot-write",
                f"what is found cannot be kept: `{study.folder}` cannot be written",
                place="--record",
                hint="--record is for a checkout of the sources, or a study of your own",
                exit_code=Exit.CANNOT_WRITE,
            )


def _check_policy(studies: "Sequence[Study]", engines: "Sequence[Engine]") -> None:
    """A policy is that of one study on one engine."""
    from thalweg.studies.pages import lessons

    if len(studies) > 1 or len(engines) > 1:
        raise ThalwegError(
            "several-policies",
            "a policy is that of one study on one engine",
            place="--policy",
            hint="name a study and an engine",
        )
    if studies[0].claims.policy is None:
        raise lessons.no_policy(studies[0])


def _write_policy(study: "Study", done: "Reproduced", file: Path, *, quick: bool) -> None:
    from thalweg.studies.judging import export_policy
    from thalweg.studies.pages import lessons

    export_policy.write(lessons.policy_file(study, done, quick=quick), file)
    output.talk(f"policy  {file}")


def _record(study: "Study", done: "Sequence[Reproduced]", *, quick: bool) -> None:
    """Keep what was found; half a study is not kept."""
    from thalweg.studies.running import recorded_results

    for each in done:
        if each.engine.available and not each.directories:
            continue
        if each.engine.available and each.exit_code is Exit.FINE:
            output.talk(f"recorded: {recorded_results.record(study, each, quick=quick)} ({each.engine.name})")
        else:
            why = each.engine.reason or "not every experiment is complete"
            output.talk(f"{study.name}: not recorded for {each.engine.name}: {why}")


def _is_as_recorded(study: "Study", done: "Sequence[Reproduced]", *, quick: bool) -> bool:
    """Return whether all claims that held still hold, and report the others; a run without a comparison fails, too."""
    from thalweg.studies.running import recorded_results

    is_fine = True
    for each in done:
        if not each.engine.available:
            output.talk(f"--check: {study.name} on {each.engine.name} cannot run here: {each.engine.reason}")
        if (
            not each.directories and recorded_results.recorded(study, each, quick=quick) is None
        ) or not each.engine.available:
            continue
        if recorded_results.recorded(study, each, quick=quick) is None:
            words = ["thalweg", "reproduce", study.name, "--engine", each.engine.name, *(["--quick"] if quick else [])]
            hint = shlex.join([*words, "--record"])
            output.talk(f"--check: nothing was recorded of {study.name} on {each.engine.name}; to do that: {hint}")
            is_fine = False
        for broken in recorded_results.broken(study, each, quick=quick):
            now = f"{broken.now.verdict}{f' ({broken.now.note})' if broken.now.note else ''}"
            output.talk(f"--check: {study.name}: `{broken.claim}` held on {each.engine.name}; now: {now}")
            is_fine = False
    return is_fine
