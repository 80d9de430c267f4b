"""Results of `thalweg advise` as measures for claims; a negative gain is a loss."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import JsonValue

from thalweg.analysis import MEASURES as OF_RUNS
from thalweg.analysis.measuring.measures import Unit

if TYPE_CHECKING:  # importing it is slow, and most studies do not need it
    from thalweg.advise import Answer, Arm, Comparison, Part


@dataclass(frozen=True)
class AdviceMeasure:
    """A measure of a part of the traffic."""

    name: str
    title: str
    unit: Unit
    about: str


MEASURES: dict[str, AdviceMeasure] = {
    measure.name: measure
    for measure in (
        AdviceMeasure(
            "completion_time_gain",
            "Completion time saved, median",
            "ratio",
            "1 minus the ratio of the median completion times of transfers below 3 MB, BBR over CUBIC.",
        ),
        AdviceMeasure(
            "completion_time_gain_mean",
            "Completion time saved, mean",
            "ratio",
            "1 minus the ratio of the mean completion times of transfers below 3 MB, BBR over CUBIC.",
        ),
        AdviceMeasure(
            "completion_time_gain_p95",
            "Completion time saved, 95th percentile",
            "ratio",
            "1 minus the ratio of the 95th percentiles of completion times of transfers below 3 MB, BBR over CUBIC.",
        ),
        AdviceMeasure(
            "jitter_gain",
            "Jitter of completion times saved",
            "ratio",
            "1 minus the ratio of the jitters (95th minus 5th percentile) of completion times of transfers below 3 MB,"
            " BBR over CUBIC.",
        ),
        AdviceMeasure(
            "throughput_gain",
            "Throughput gained, median",
            "ratio",
            "The ratio of the median throughputs of transfers of 3 MB and more, BBR over CUBIC, minus 1.",
        ),
        AdviceMeasure(
            "throughput_gain_mean",
            "Throughput gained, mean",
            "ratio",
            "The ratio of the mean throughputs of transfers of 3 MB and more, BBR over CUBIC, minus 1.",
        ),
        AdviceMeasure("says_treatment", "BBR is advised", "ratio", "1 where BBR is advised, 0 where not."),
        AdviceMeasure("says_control", "CUBIC is advised", "ratio", "1 where CUBIC is advised, 0 where not."),
        AdviceMeasure(
            "rollout_place",
            "Position in the roll-out",
            "count",
            "Position among the parts that should change to BBR, from 1.",
        ),
    )
}

TIME, RATE = "completion_time", "throughput"


def unit_and_title(measure: str) -> tuple[Unit, str] | None:
    """Return the unit and the title of a measure of runs or records; None for a study's own measure."""
    found_measure = OF_RUNS.get(measure) or MEASURES.get(measure)
    return (found_measure.unit, found_measure.title) if found_measure else None


def values(answer: "Answer") -> "Iterator[tuple[Part, str, float]]":
    """Yield the measures of every part that was judged, except those without a value."""
    question = answer.question
    ranks = {step.part.names: rank for rank, step in enumerate(answer.rollout, 1)}
    for part in answer.parts:
        numbers: dict[str, float | None] = {
            **_gains(TIME, part.comparisons.get(TIME)),
            **_gains(RATE, part.comparisons.get(RATE)),
            "says_treatment": float(part.verdict == question.treatment),
            "says_control": float(part.verdict == question.control),
            "rollout_place": ranks.get(part.names),
        }
        yield from ((part, name, float(value)) for name, value in numbers.items() if value is not None)


def _gains(metric: str, comparison: "Comparison | None") -> dict[str, float | None]:
    difference = comparison.difference if comparison else None
    if difference is None:
        return {}
    treatment, control = difference.treatment, difference.control

    def saved(number: "Callable[[Arm], float]") -> float | None:
        return 1 - number(treatment) / number(control) if number(control) else None

    def added(number: "Callable[[Arm], float]") -> float | None:
        return number(treatment) / number(control) - 1 if number(control) else None

    if metric == RATE:
        return {"throughput_gain": added(_at(0.5)), "throughput_gain_mean": added(_mean)}
    return {
        "completion_time_gain": saved(_at(0.5)),
        "completion_time_gain_mean": saved(_mean),
        "completion_time_gain_p95": saved(_at(0.95)),
        "jitter_gain": saved(lambda arm: arm.jitter),
    }


def _at(share: float) -> "Callable[[Arm], float]":
    from thalweg.advise import QUANTILES

    return lambda arm: arm.quantiles[QUANTILES.index(share)]


def _mean(arm: "Arm") -> float:
    return arm.mean


def as_json(answer: "Answer") -> list[dict[str, JsonValue]]:
    """Return the verdict, the reason and the gains of each part."""
    return [
        {
            "part": list(part.names),
            "samples": part.n,
            "verdict": part.verdict,
            "reason": part.reason,
            "gains": {
                metric: {"value": gain.value, "low": gain.low, "high": gain.high}
                for metric, comparison in part.comparisons.items()
                if (gain := comparison.gain) is not None
            },
        }
        for part in answer.parts
    ]
