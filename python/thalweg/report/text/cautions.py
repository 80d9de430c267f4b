"""Cautions for the reader of a report."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from thalweg import analysis
from thalweg.analysis.comparing.evidence import are
from thalweg.report.content import LabelledRun, Measurements, Point, Sweep

MAX_ITEMS = 20


RETRY = "--retry-untrustworthy"


@dataclass(frozen=True)
class RunCaution:
    """One caution: the fact, the affected cases, and the remedy."""

    text: str
    items: list[str]
    advice: str
    command: str = ""


def cautions(runs: Sequence[LabelledRun], sweep: Sweep, measurements: Measurements) -> list[RunCaution]:
    """Collect the cautions of all runs."""
    listed = []
    for number, labelled in enumerate(runs):
        listed += _of_run(labelled, number, sweep)
    cut_off = [
        _cut_off(sweep.text(point), flow, point, measurements)
        for flow in sweep.all_flows
        for point in sweep.points
        if measurements.is_cut_off(point, flow)
    ]
    if cut_off:
        listed.append(
            RunCaution(
                "Some transfers were cut off by the end of the experiment, or of their flow. Completion times exclude"
                " them and are therefore too small (marked * in the table).",
                _shortened(cut_off),
                "A longer duration, or a later stop of the flow, lets them finish.",
            )
        )
    return listed


def _of_run(labelled: LabelledRun, number: int, sweep: Sweep) -> list[RunCaution]:
    run, status = labelled.run, labelled.status
    prefix = f"{labelled.label}: " if sweep.is_of_several_runs else ""
    command = shlex.join(run.command)
    listed = []
    if status.failures:
        items = [
            f"{_place(sweep, number, failure.experiment, failure.repetition)}: {failure.message} [{failure.code}]"
            for failure in status.failures
        ]
        text = f"{prefix}{len(items)} of {status.expected} experiments failed."
        listed.append(RunCaution(text, _shortened(items), "The same command tries them again.", command))
    if status.not_needed:
        text = (
            f"{prefix}{status.not_needed} of {status.expected} experiments were not run: the study did not need them."
        )
        listed.append(RunCaution(text, [], "Points have different numbers of repetitions (n)."))
    if status.missing:
        text = f"{prefix}{status.missing} of {status.expected} experiments {are(status.missing)} missing."
        listed.append(RunCaution(text, [], "The same command resumes.", command))
    if status.untrustworthy:
        items = [
            f"{_place(sweep, number, mark.experiment, mark.repetition)}: {mark.reason}" for mark in status.untrustworthy
        ]
        marked = list(dict.fromkeys(mark.id for mark in status.untrustworthy))
        count = f"{len(marked)} of {status.expected} experiments {are(len(marked))}"
        text = f"{prefix}{count} untrustworthy and left out of the numbers."
        repeat = f"{command} {RETRY}" if command and RETRY not in run.command else command
        advice = "On a less busy machine they may succeed; to run them again:" if command else ""
        listed.append(RunCaution(text, _shortened(items), advice, repeat))
    if starved := analysis.starved_cautions(run, labelled.summary):
        text = f"{prefix}Some connections never delivered a byte. A mean over all connections hides this."
        listed.append(RunCaution(text, _shortened(starved), ""))
    if copies := analysis.copies_caution(run):
        listed.append(RunCaution(f"{prefix}{copies[:1].upper()}{copies[1:]}.", [], ""))
    elif labelled.summary["n"].max() == 1:
        text = f"{prefix}There is one repetition: the numbers have no confidence interval."
        listed.append(RunCaution(text, [], "For intervals, set repetitions = 10 in the scenario, or --repetitions 10."))
    return listed


def _cut_off(point_name: str, flow: str, point: Point, measurements: Measurements) -> str:
    started, completed = measurements.cell(point, "transfers", flow), measurements.cell(point, "completed", flow)
    unfinished = started.mean - completed.mean if started and completed else 0.0
    count = f"{unfinished:.4g} of {started.mean if started else 0:.4g} transfers per repetition"
    return f"{flow}, {point_name}: {count}" if point_name else f"{flow}: {count}"


def _place(sweep: Sweep, number: int, experiment: int, repetition: int) -> str:
    point = next(
        (point for point in sweep.points if (point.run, point.experiment) == (number, experiment)),
        Point(number, experiment, {}),
    )
    point_name = sweep.text(point)
    return f"{point_name}, repetition {repetition}" if point_name else f"repetition {repetition}"


def _shortened(items: list[str]) -> list[str]:
    if len(items) <= MAX_ITEMS:
        return items
    return [*items[:MAX_ITEMS], f"and {len(items) - MAX_ITEMS} more"]
