"""How an answer is printed: a sentence, a table of parts, what to beware of, which parts first; or JSON."""

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from thalweg.cli import output

if TYPE_CHECKING:
    from thalweg.advise import Answer, Arm, Comparison, Difference, Effect, Part

MOST_PARTS = 20
"""In the table; `--json` has them all."""
MOST_STEPS = 5
WIDTH = 100
"""Lines of text are broken here."""

UNITS = {"completion_time": ("ms", 1e3), "throughput": ("Mbit/s", 1e6)}
TITLES = {"completion_time": "completion time", "throughput": "throughput"}

METHOD = (
    "gain: of the treatment's median, with its 95 % interval; less time or more throughput is a gain."
    " docs/concepts/advice.md says how it is judged."
)


def show(answer: "Answer") -> None:
    """Print an answer."""
    from thalweg.report.records_table import period

    question = answer.question
    output.data(answer.headline)
    output.data("")
    output.data(
        f"{question.treatment} against {question.control}, {question.design.name}:"
        f" {answer.n:,} samples in {answer.rows:,} rows of {_number(answer.files, 'file')},"
        f" {period(answer.first_us, answer.last_us)} UTC"
    )
    if answer.parts:
        output.data("")
        output.data(_table(answer))
    if answer.too_small:
        output.data(f"and {_number(answer.too_small, 'part')} with too few samples ({answer.too_small_n:,})")
    if answer.rollout:
        output.data("")
        output.data(_rollout(answer))
    for caution in answer.cautions:
        output.data("")
        about = f" [{_some(caution.parts)}]" if caution.parts else ""
        output.data("\n".join(_broken(f"Beware: {caution.text}{about}")))
    output.talk(METHOD)


def _table(answer: "Answer") -> str:
    treatment, control = answer.question.treatment, answer.question.control
    headings = [
        *(each.title for each in answer.dimensions), "verdict", "of", "gain (%)", control, treatment, "unit", "samples"
    ]  # fmt: skip
    if not answer.dimensions:
        headings = ["part", *headings]
    rows = []
    shown = answer.parts[:MOST_PARTS]
    for part in shown:
        names, verdict = list(part.names), part.verdict
        for metric, each in part.comparisons.items():
            rows.append(
                [*names, verdict, TITLES[metric], _gain(each), *_medians(each), UNITS[metric][0], _samples(each)]
            )
            names, verdict = [""] * len(names), ""
    first = len(headings) - 5
    lines = [output.table(headings, rows, numbers=[first, first + 1, first + 2, first + 4])]
    if len(answer.parts) > len(shown):
        lines.append(f"and {_number(len(answer.parts) - len(shown), 'smaller part')}: --json names them all")
    reasons = [f"{part.title}: {part.verdict}: {part.reason}." for part in shown]
    return "\n".join([*lines, "", *(line for reason in reasons for line in _broken(reason))])


def _gain(comparison: "Comparison") -> str:
    gain = comparison.gain
    return "-" if gain is None else f"{gain.value * 100:+.1f} [{gain.low * 100:+.1f}, {gain.high * 100:+.1f}]"


def _medians(comparison: "Comparison") -> list[str]:
    if comparison.difference is None:
        return ["-", "-"]
    size = UNITS[comparison.metric][1]
    return [f"{arm.median / size:.4g}" for arm in (comparison.difference.control, comparison.difference.treatment)]


def _samples(comparison: "Comparison") -> str:
    if comparison.difference is None:
        return "-"
    return f"{comparison.difference.control.n:,}/{comparison.difference.treatment.n:,}"


def _rollout(answer: "Answer") -> str:
    lines = [f"Change to {answer.question.treatment} first:"]
    for number, step in enumerate(answer.rollout[:MOST_STEPS], 1):
        lines.append(
            f"  {number}. {step.part.title}: {step.share:.0%} of the connections; expected gain of"
            f" {TITLES[step.metric]} {step.gain.value:.1%} (at least {step.gain.low:.1%}), {step.traffic:.0%} of the"
            " samples"
        )
    if len(answer.rollout) > MOST_STEPS:
        lines.append(f"  and {len(answer.rollout) - MOST_STEPS} more")
    return "\n".join(lines)


def _some(names: Sequence[str]) -> str:
    return "; ".join(names[:3]) + (f"; and {len(names) - 3} more" if len(names) > 3 else "")


def _number(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _broken(text: str) -> Iterable[str]:
    """Break a text into lines, the others indented."""
    import textwrap

    return textwrap.wrap(text, WIDTH, subsequent_indent="  ", break_on_hyphens=False)


def as_json(answer: "Answer", places: Sequence[Path], policy: Path | None, page: Path | None) -> dict[str, Any]:
    """Give everything that an answer holds."""
    question = answer.question
    return {
        "headline": answer.headline,
        "places": [str(place) for place in places],
        **({"policy": str(policy)} if policy else {}),
        **({"page": str(page)} if page else {}),
        "question": {
            "treatment": question.treatment,
            "control": question.control,
            "design": question.design.name,
            "at_us": question.design.at_us,
            "every_us": question.design.every_us,
            "turns_of": question.design.unit,
            "by": list(question.segments),
            "cluster": question.clusters,
            "size_limit_bytes": question.size_limit_bytes,
            "least_samples": question.least_samples,
            "false_share": question.false_share,
            "margin": question.margin,
            "replicates": question.replicates,
            "seed": question.seed,
        },
        "engine": answer.engine,
        "files": answer.files,
        "left_out": [{"file": str(each.file), "why": each.why} for each in answer.left_out],
        "rows": answer.rows,
        "untouched_rows": answer.untouched,
        "samples": answer.n,
        "first_us": answer.first_us,
        "last_us": answer.last_us,
        "overall": _part(answer.overall),
        "parts": [_part(part) for part in answer.parts],
        "too_small": {"parts": answer.too_small, "samples": answer.too_small_n},
        "map": [_part(part) for part in answer.map],
        "sizes": [{"size": each.title, **_difference(each.difference)} for each in answer.sizes],
        "ages": [
            {
                "age": each.title,
                "treatment": _arm(each.treatment),
                "control": _arm(each.control),
                "median": _effect(each.effect),
            }
            for each in answer.ages
        ],
        "since_activation": [
            {"since": each.title, "metric": each.metric, **_difference(each.difference)} for each in answer.since
        ],
        "step_us": answer.step_us,
        "over_time": answer.over_time.to_dicts(),
        "cautions": [{"code": each.code, "text": each.text, "parts": list(each.parts)} for each in answer.cautions],
        "rollout": [
            {
                "part": list(step.part.names),
                "share": step.share,
                "metric": step.metric,
                "gain": step.gain.value,
                "gain_low": step.gain.low,
                "gain_high": step.gain.high,
                "traffic": step.traffic,
            }
            for step in answer.rollout
        ],
    }


def _part(part: "Part") -> dict[str, Any]:
    return {
        "part": list(part.names),
        "verdict": part.verdict,
        "reason": part.reason,
        "samples": part.n,
        "metrics": {metric: _comparison(each) for metric, each in part.comparisons.items()},
        "losses": None
        if part.losses is None
        else {
            "lossy": part.losses.n_lossy,
            "clean": part.losses.n_clean,
            "standardized": part.losses.standardized,
            "high": part.losses.high if math.isfinite(part.losses.high) else None,
            "follow_queues": part.losses.follow_queues,
        },
    }


def _comparison(comparison: "Comparison") -> dict[str, Any]:
    gain = comparison.gain
    return {
        "verdict": comparison.verdict,
        "reason": comparison.reason,
        "p_adjusted": comparison.p_adjusted,
        "gain": gain and {"value": gain.value, "low": gain.low, "high": gain.high},
        **(_difference(comparison.difference) if comparison.difference else {}),
        "imbalances": [
            {"of": each.of, "standardized": each.standardized, "ratio": each.ratio, "p": each.p}
            for each in comparison.imbalances
        ],
    }


def _difference(difference: "Difference") -> dict[str, Any]:
    return {
        "treatment": _arm(difference.treatment),
        "control": _arm(difference.control),
        "ratios": {
            **{f"{share:g}": _effect(effect) for share, effect in difference.quantiles.items()},
            "mean": _effect(difference.mean),
        },
    }


def _arm(arm: "Arm") -> dict[str, Any]:
    """Give an arm's numbers; microseconds, or bits per second."""
    from thalweg.advise import QUANTILES

    return {
        "samples": arm.n,
        "mean": arm.mean,
        "quantiles": {f"{share:g}": value for share, value in zip(QUANTILES, arm.quantiles, strict=True)},
        "groups": arm.groups,
        "cdf": [list(point) for point in arm.curve],
    }


def _effect(effect: "Effect | None") -> dict[str, float] | None:
    if effect is None or not all(math.isfinite(each) for each in (effect.ratio, effect.low, effect.high)):
        return None
    return {"ratio": effect.ratio, "low": effect.low, "high": effect.high, "p": effect.p}
