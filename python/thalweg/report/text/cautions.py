"""What a reader should know before believing the numbers."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from thalweg import analysis
from thalweg.analysis.comparing.evidence import are
from thalweg.report.content import LabelledRun, Measurements, Point, Sweep

MAX_ITEMS = 20
"""Of more items of a list, the rest is counted."""


RETRY = "--retry-untrustworthy"
"""What our commands take to run untrustworthy experiments again."""


@dataclass(frozen=True)
class RunCaution:
    """One caution: what is the case, the cases one by one, and what to do."""

    text: str
    items: list[str]
    advice: str
    command: str = ""


def cautions(runs: Sequence[LabelledRun], sweep: Sweep, measurements: Measurements) -> list[RunCaution]:
    """Collect the cautions of all runs."""
    found = []
    for number, labelled in enumerate(runs):
        found += _of_run(labelled, number, sweep)
    cut_off = [
        _cut_off(sweep.text(point), flow, point, measurements)
        for flow in sweep.all_flows
        for point in sweep.points
        if measurements.is_cut_off(point, flow)
    ]
    if cut_off:
        found.append(
            RunCaution(
                "Some transfers were cut off by the end of the experiment. Completion times are of the others, so they"
                " are too small (marked * in the table).",
                _shortened(cut_off),
                "A longer duration lets them finish.",
            )
        )
    return found


def _of_run(labelled: LabelledRun, number: int, sweep: Sweep) -> list[RunCaution]:
    run, status = labelled.run, labelled.status
    who = f"{labelled.label}: " if sweep.is_of_several_runs else ""
    again = shlex.join(run.command)
    found = []
    if status.failures:
        items = [
            f"{_place(sweep, number, each.experiment, each.repetition)}: {each.message} [{each.code}]"
            for each in status.failures
        ]
        text = f"{who}{len(items)} of {status.expected} experiments failed."
        found.append(RunCaution(text, _shortened(items), "The same command tries them again.", again))
    if status.not_needed:
        text = f"{who}{status.not_needed} of {status.expected} experiments were not needed: the study was sure enough."
        found.append(RunCaution(text, [], "Points have different numbers of repetitions (n)."))
    if status.missing:
        text = f"{who}{status.missing} of {status.expected} experiments {are(status.missing)} not there (yet)."
        found.append(RunCaution(text, [], "The same command goes on where it stopped.", again))
    if status.untrustworthy:
        items = [
            f"{_place(sweep, number, each.experiment, each.repetition)}: {each.reason}" for each in status.untrustworthy
        ]
        marked = list(dict.fromkeys(mark.id for mark in status.untrustworthy))
        count = f"{len(marked)} of {status.expected} experiments {are(len(marked))}"
        text = f"{who}{count} untrustworthy and left out of the numbers."
        repeat = f"{again} {RETRY}" if again and RETRY not in run.command else again
        advice = "On a machine with less to do they may come out well; to run them again:" if again else ""
        found.append(RunCaution(text, _shortened(items), advice, repeat))
    if starved := analysis.starved_cautions(run, labelled.summary):
        text = f"{who}Some connections never delivered a byte. A mean over all of them hides that."
        found.append(RunCaution(text, _shortened(starved), ""))
    if copies := analysis.copies_caution(run):
        found.append(RunCaution(f"{who}{copies[:1].upper()}{copies[1:]}.", [], ""))
    elif labelled.summary["n"].max() == 1:
        text = f"{who}There is one repetition: the numbers have no confidence interval."
        found.append(RunCaution(text, [], "repetitions = 10 in the scenario, or --repetitions 10, gives them one."))
    return found


def _cut_off(where: str, flow: str, point: Point, measurements: Measurements) -> str:
    begun, completed = measurements.cell(point, "transfers", flow), measurements.cell(point, "completed", flow)
    gone = begun.mean - completed.mean if begun and completed else 0.0
    count = f"{gone:.4g} of {begun.mean if begun else 0:.4g} transfers per repetition"
    return f"{flow}, {where}: {count}" if where else f"{flow}: {count}"


def _place(sweep: Sweep, number: int, experiment: int, repetition: int) -> str:
    point = next(
        (point for point in sweep.points if (point.run, point.experiment) == (number, experiment)),
        Point(number, experiment, {}),
    )
    where = sweep.text(point)
    return f"{where}, repetition {repetition}" if where else f"repetition {repetition}"


def _shortened(items: list[str]) -> list[str]:
    if len(items) <= MAX_ITEMS:
        return items
    return [*items[:MAX_ITEMS], f"and {len(items) - MAX_ITEMS} more"]
