"""The order in which to roll out the treatment: by the lower end of each part's gain times its share of the samples."""

from collections.abc import Sequence

from thalweg.advise.answers.answer import Comparison, Part, Step
from thalweg.advise.question import Question
from thalweg.records.schema import UNKNOWN_TEXT

BOLD = 0.5
CAREFUL = 0.1
"""Initial fraction of a part's connections; the others keep the control, for comparison."""

LARGE = 0.05
"""Minimum gain, at the lower end of its interval, that permits a larger initial fraction."""


def steps(parts: Sequence[Part], n: int, question: Question) -> list[Step]:
    """Return a step for each part whose verdict is the treatment; parts with an unknown value are left out."""
    plan_steps = []
    for part in parts:
        won = [comparison for comparison in part.comparisons.values() if comparison.verdict == question.treatment]
        if part.verdict != question.treatment or not won or UNKNOWN_TEXT in part.names:
            continue
        best = max(won, key=_sure)
        assert best.gain, "a verdict rests on a gain"
        share = BOLD if best.gain.low >= LARGE else CAREFUL
        plan_steps.append(Step(part, share, best.gain, best.metric, part.n / n if n else 0.0))
    return sorted(plan_steps, key=lambda step: (-step.gain.low * step.traffic, step.part.names))


def _sure(comparison: Comparison) -> float:
    return comparison.gain.low if comparison.gain else 0.0
