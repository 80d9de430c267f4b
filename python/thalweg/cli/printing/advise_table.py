"""The table of verdicts, as `thalweg advise` prints it."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from thalweg.cli.printing import output

if TYPE_CHECKING:
    from thalweg.advise import Answer, Comparison

MAX_PARTS = 20
WIDTH = 100

UNITS = {"completion_time": ("ms", 1e3), "throughput": ("Mbit/s", 1e6)}
TITLES = {"completion_time": "completion time", "throughput": "throughput"}

NOTHING = "-"
RECEIVER_LIMITED = "receiver-limited (%)"
NUMBERS = ("gain (%)", "samples", "networks", RECEIVER_LIMITED)
"""Headings of columns that are aligned to the right, in addition to the columns of the algorithms."""


def table(answer: "Answer") -> str:
    """Return a table with a row per part and metric, and a reason per part."""
    treatment, control = answer.question.treatment, answer.question.control
    parts = answer.parts[:MAX_PARTS]
    compared = [(part, metric, comparison) for part in parts for metric, comparison in part.comparisons.items()]
    limits = [_receiver_limited(comparison) for _, _, comparison in compared]
    headings = [
        *([dimension.title for dimension in answer.dimensions] or ["part"]), "verdict", "of", "gain (%)",
        control, treatment, "unit", "samples", "networks", RECEIVER_LIMITED,
    ]  # fmt: skip
    rows = []
    last = None
    for (part, metric, comparison), limit in zip(compared, limits, strict=True):
        is_first, last = part is not last, part
        names, verdict = (part.names, part.verdict) if is_first else ([""] * len(part.names), "")
        numbers = [
            _gain(comparison),
            *_medians(comparison),
            UNITS[metric][0],
            _samples(comparison),
            _networks(comparison),
            limit,
        ]
        rows.append([*names, verdict, TITLES[metric], *numbers])
    if set(limits) == {NOTHING}:
        headings, rows = headings[:-1], [row[:-1] for row in rows]
    right = [index for index, heading in enumerate(headings) if heading in (*NUMBERS, treatment, control)]
    lines = [output.table(headings, rows, numbers=right)]
    if len(answer.parts) > len(parts):
        lines.append(f"and {numbered(len(answer.parts) - len(parts), 'smaller part')}: --json lists all of them")
    reasons = [f"{part.title}: {part.verdict}: {part.reason}." for part in parts]
    return "\n".join([*lines, "", *(line for reason in reasons for line in broken(reason))])


def _gain(comparison: "Comparison") -> str:
    gain = comparison.gain
    return NOTHING if gain is None else f"{gain.value * 100:+.1f} [{gain.low * 100:+.1f}, {gain.high * 100:+.1f}]"


def _medians(comparison: "Comparison") -> list[str]:
    if comparison.difference is None:
        return [NOTHING, NOTHING]
    size = UNITS[comparison.metric][1]
    return [f"{arm.median / size:.4g}" for arm in (comparison.difference.control, comparison.difference.treatment)]


def _samples(comparison: "Comparison") -> str:
    if comparison.difference is None:
        return NOTHING
    return f"{comparison.difference.control.n:,}/{comparison.difference.treatment.n:,}"


def _networks(comparison: "Comparison") -> str:
    effective = comparison.networks.effective if comparison.networks else None
    return NOTHING if effective is None else f"{effective:.3g}" if effective < 1000 else f"{effective:,.0f}"


def _receiver_limited(comparison: "Comparison") -> str:
    treatment, control = comparison.receiver_limited
    if treatment is None and control is None:
        return NOTHING
    return "/".join(NOTHING if share is None else f"{share * 100:.3g}" for share in (control, treatment))


def numbered(count: int, noun: str) -> str:
    """Return a count with its noun."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def broken(text: str) -> Iterable[str]:
    """Split a text into lines; all but the first are indented."""
    import textwrap

    return textwrap.wrap(text, WIDTH, subsequent_indent="  ", break_on_hyphens=False)
