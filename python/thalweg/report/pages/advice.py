"""The page of advice."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from thalweg.advise import Answer, Comparison, Part
from thalweg.advise.answers.answer import percent
from thalweg.records.where import text
from thalweg.report.drawing.advice_figures import METRICS, figures
from thalweg.report.drawing.colours import line_colours
from thalweg.report.drawing.draw import draw, packed
from thalweg.report.files import put
from thalweg.report.offline import render
from thalweg.report.pages.records_table import period
from thalweg.report.text.labels import NOTHING
from thalweg.report.text.numbers import scale_for

MAX_PARTS = 1000
"""Maximum number of parts in the table, which limits the size of the page."""

MAX_LEFT_OUT = 20


@dataclass(frozen=True)
class AdviceRow:
    """A table row: one metric of a part."""

    names: Sequence[str]
    verdict: str
    kind: str
    """Style of the verdict: better, worse or none."""
    metric: str
    gain: str
    interval: str
    gain_value: float | None
    control: str
    treatment: str
    samples: int
    networks: str
    """Effective number of networks; empty: unknown, or the part lies within one network."""
    receiver_limited: str
    """Receiver-limited fractions of the control's and of the treatment's samples."""
    limited: float | None
    reason: str


def write(answer: Answer, paths: Sequence[Path], output: Path) -> None:
    """Write the page as one HTML file.

    Raises:
        ThalwegError: If `output` cannot be written.
    """
    put(output, html(answer, paths), "the page", "choose another file with `thalweg advise DIR --out FILE`")


def html(answer: Answer, paths: Sequence[Path]) -> str:
    """Return the page as HTML."""
    drawings = [(figure, draw(figure), number) for number, figure in enumerate(figures(answer))]
    question = answer.question
    rows = [row for part in answer.parts[:MAX_PARTS] for row in _rows(part, answer)]
    return render(
        "advice.html.j2",
        ["common.js", "figures.js", "parts.js"],
        {"choices": [], "figures": [packed(drawing) for _, drawing, _ in drawings]},
        answer=answer,
        question=question,
        percent=percent,
        period=period(answer.first_us, answer.last_us),
        places=[str(path) for path in paths],
        where=text(question.where),
        rows=rows,
        has_limits=any(row.limited is not None for row in rows),
        hidden=max(0, len(answer.parts) - MAX_PARTS),
        maps=[drawing_entry for drawing_entry in drawings if drawing_entry[0].kind == "heatmap"],
        figures=[drawing_entry for drawing_entry in drawings if drawing_entry[0].kind != "heatmap"],
        left_out=_omissions(answer),
        hues=line_colours([question.treatment, question.control]),
        metrics={name: axis for name, (_, axis, *_rest) in METRICS.items()},
    )


def _omissions(answer: Answer) -> list[str]:
    sentences = [f"Not compared: {n:,} row{'' if n == 1 else 's'} {rows}." for n, rows in answer.not_compared]
    if answer.untouched:
        sentences.append(
            f"{answer.untouched:,} rows were left out: an application, a route or the administrator chose the algorithm"
            " of their connections, for an unknown reason."
        )
    sentences += [f"{file.file.name} was left out: {file.why}." for file in answer.left_out[:MAX_LEFT_OUT]]
    if len(answer.left_out) > MAX_LEFT_OUT:
        sentences.append(f"{len(answer.left_out) - MAX_LEFT_OUT} more files were left out.")
    return sentences


def _rows(part: Part, answer: Answer) -> list[AdviceRow]:
    return [_row(part, comparison, answer) for comparison in part.comparisons.values()]


def _row(part: Part, comparison: Comparison, answer: Answer) -> AdviceRow:
    _, axis, unit, size = METRICS[comparison.metric]
    gain = comparison.gain
    control = treatment = NOTHING
    n = 0
    if comparison.difference:
        values = [arm.median * size for arm in (comparison.difference.control, comparison.difference.treatment)]
        scale = scale_for(unit, values)
        control, treatment = (f"{value / scale.size:.4g}\u00a0{scale.unit}" for value in values)
        n = comparison.difference.control.n + comparison.difference.treatment.n
    effective = comparison.networks.effective if comparison.networks else None
    limits = tuple(reversed(comparison.receiver_limited))
    limited = [share for share in limits if share is not None]
    kinds = {answer.question.treatment: "better", answer.question.control: "worse"}
    return AdviceRow(
        names=part.names,
        verdict=comparison.verdict,
        kind=kinds.get(comparison.verdict, "none"),
        metric=axis,
        gain=f"{gain.value:+.1%}" if gain else "",
        interval=f"{gain.low:+.1%} to\u00a0{gain.high:+.1%}" if gain else "",
        gain_value=gain.value if gain else None,
        control=control,
        treatment=treatment,
        samples=n,
        networks="" if effective is None else f"{effective:,.0f}" if effective >= 10 else f"{effective:.1f}",
        receiver_limited=" / ".join(NOTHING if share is None else f"{share:.1%}" for share in limits)
        if limited
        else "",
        limited=max(limited, default=None),
        reason=comparison.reason,
    )
