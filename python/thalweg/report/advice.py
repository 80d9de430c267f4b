"""The page of advice: the answer in a sentence, a verdict per part, what to beware of, and what it rests on."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from thalweg.advise import Answer, Comparison, Part
from thalweg.report.advice_figures import METRICS, figures
from thalweg.report.colours import line_colours
from thalweg.report.draw import draw, packed
from thalweg.report.files import put
from thalweg.report.labels import NOTHING
from thalweg.report.numbers import scale_for
from thalweg.report.offline import render
from thalweg.report.records_table import period

MOST_PARTS = 1000
"""Rows of the table, about: more would make the page heavy; `--json` has all."""


@dataclass(frozen=True)
class Row:
    """A metric of a part."""

    names: Sequence[str]
    verdict: str
    kind: str
    """better, worse or none: how the verdict looks."""
    metric: str
    gain: str
    interval: str
    gain_value: float | None
    """To sort by."""
    control: str
    treatment: str
    samples: int
    reason: str


def write(answer: Answer, places: Sequence[Path], output: Path) -> None:
    """Write the page as one HTML file; a file that is there is replaced only by a complete one.

    Raises `ThalwegError` if `output` cannot be written.
    """
    put(output, html(answer, places), "the page", "name another file with `thalweg advise DIR --out FILE`")


def html(answer: Answer, places: Sequence[Path]) -> str:
    """Write the page as text."""
    drawn = [(figure, draw(figure)) for figure in figures(answer)]
    question = answer.question
    return render(
        "advice.html.j2",
        ["common.js", "figures.js", "parts.js"],
        {"choices": [], "figures": [packed(drawing) for _, drawing in drawn]},
        answer=answer,
        question=question,
        period=period(answer.first_us, answer.last_us),
        places=[str(place) for place in places],
        rows=[row for part in answer.parts[:MOST_PARTS] for row in _rows(part, answer)],
        hidden=max(0, len(answer.parts) - MOST_PARTS),
        figures=drawn,
        hues=line_colours([question.treatment, question.control]),
        metrics={name: axis for name, (_, axis, *_rest) in METRICS.items()},
    )


def _rows(part: Part, answer: Answer) -> list[Row]:
    return [_row(part, each, answer) for each in part.comparisons.values()]


def _row(part: Part, comparison: Comparison, answer: Answer) -> Row:
    _, axis, unit, size = METRICS[comparison.metric]
    found = comparison.gain
    control = treatment = NOTHING
    n = 0
    if comparison.difference:
        values = [arm.median * size for arm in (comparison.difference.control, comparison.difference.treatment)]
        scale = scale_for(unit, values)
        control, treatment = (f"{value / scale.size:.4g}\u00a0{scale.unit}" for value in values)
        n = comparison.difference.control.n + comparison.difference.treatment.n
    kinds = {answer.question.treatment: "better", answer.question.control: "worse"}
    return Row(
        names=part.names,
        verdict=comparison.verdict,
        kind=kinds.get(comparison.verdict, "none"),
        metric=axis,
        gain=f"{found.value:+.1%}" if found else "",
        interval=f"{found.low:+.1%} to\u00a0{found.high:+.1%}" if found else "",
        gain_value=found.value if found else None,
        control=control,
        treatment=treatment,
        samples=n,
        reason=comparison.reason,
    )
