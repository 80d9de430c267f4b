"""Output of an answer: text or JSON."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from thalweg.cli.printing import advise_table, output
from thalweg.cli.printing.advise_table import TITLES, broken, numbered

if TYPE_CHECKING:
    from pydantic import JsonValue

    from thalweg.advise import Age, Answer, Arm, Comparison, Difference, Effect, Part, Question, Step

MAX_ROLLOUT_STEPS = 5
METHOD = (
    "gain: change of the median with the treatment and its 95 % interval; positive: less time or more throughput."
    " docs/concepts/advice.md describes the method."
)


def show(answer: "Answer") -> None:
    """Print an answer."""
    from thalweg.records.where import text
    from thalweg.report.pages.records_table import period

    question = answer.question
    output.data(answer.headline)
    output.data("")
    output.data(
        f"{question.treatment} against {question.control}, {question.design.name}:"
        f" {answer.n:,} samples in {answer.rows:,} rows of {numbered(answer.files, 'file')},"
        f" {period(answer.first_us, answer.last_us)} UTC"
    )
    if question.where:
        output.data(f"only rows with {text(question.where)}")
    for n, rows in answer.not_compared:
        output.data(f"not compared: {numbered(n, 'row')} {rows}")
    if answer.parts:
        output.data("")
        output.data(advise_table.table(answer))
    if answer.too_small:
        adjective = "more " if answer.parts else ""
        of_parts = numbered(answer.too_small, f"{adjective}part")
        output.data(
            f"too few samples to judge {of_parts} ({answer.too_small_n:,} samples);"
            f" each needs {question.least_samples:,} of {question.treatment} and of {question.control}"
        )
    if answer.rollout:
        output.data("")
        output.data(_rollout(answer))
    for caution in answer.cautions:
        output.data("")
        affected = f" [{_first_parts(caution.parts)}]" if caution.parts else ""
        output.data("\n".join(broken(f"Caution: {caution.text}{affected}")))
    output.talk(METHOD)


def _rollout(answer: "Answer") -> str:
    from thalweg.advise.answers.answer import percent

    lines = [f"Change to {answer.question.treatment} first:"]
    for number, step in enumerate(answer.rollout[:MAX_ROLLOUT_STEPS], 1):
        lines.append(
            f"  {number}. {step.part.title}: {step.share:.0%} of the connections; expected gain of"
            f" {TITLES[step.metric]} {step.gain.value:.1%} (at least {step.gain.low:.1%}), {percent(step.traffic)} of"
            " the samples"
        )
    if len(answer.rollout) > MAX_ROLLOUT_STEPS:
        lines.append(f"  and {len(answer.rollout) - MAX_ROLLOUT_STEPS} more")
    return "\n".join(lines)


def _first_parts(names: Sequence[str]) -> str:
    return "; ".join(names[:3]) + (f"; and {len(names) - 3} more" if len(names) > 3 else "")


def as_json(answer: "Answer", places: Sequence[Path], policy: Path | None, page: Path | None) -> "dict[str, JsonValue]":
    """Return the complete answer."""
    return {
        "headline": answer.headline,
        "places": [str(place) for place in places],
        **({"policy": str(policy)} if policy else {}),
        **({"page": str(page)} if page else {}),
        "question": _question(answer.question),
        **_records(answer),
        "overall": _part(answer.overall),
        "parts": [_part(part) for part in answer.parts],
        "too_small": {"parts": answer.too_small, "samples": answer.too_small_n},
        "map": [_part(part) for part in answer.map],
        "sizes": [{"size": size.title, **_difference(size.difference)} for size in answer.sizes],
        "ages": [_age(age) for age in answer.ages],
        "since_activation": [
            {"since": span.title, "metric": span.metric, **_difference(span.difference)} for span in answer.since
        ],
        "step_us": answer.step_us,
        "over_time": list(answer.over_time.to_dicts()),
        "cautions": [
            {"code": caution.code, "text": caution.text, "parts": list(caution.parts)} for caution in answer.cautions
        ],
        "rollout": [_step(step) for step in answer.rollout],
    }


def _question(question: "Question") -> "dict[str, JsonValue]":
    return {
        "treatment": question.treatment,
        "control": question.control,
        "design": question.design.name,
        "at_us": question.design.at_us,
        "every_us": question.design.period_us if question.design.name == "switchback" else None,
        "turns_of": question.design.unit,
        "by": list(question.segments),
        "cluster": question.clusters,
        "size_limit_bytes": question.size_limit_bytes,
        "least_samples": question.least_samples,
        "false_share": question.false_share,
        "margin": question.margin,
        "without_receiver_limited": question.without_receiver_limited,
        "where": dict(question.where),
        "replicates": question.replicates,
        "seed": question.seed,
    }


def _records(answer: "Answer") -> "dict[str, JsonValue]":
    return {
        "engine": answer.engine,
        "files": answer.files,
        "left_out": [{"file": str(file.file), "why": file.why} for file in answer.left_out],
        "rows": answer.rows,
        "untouched_rows": answer.untouched,
        "other_algorithms": dict(answer.other_algorithms),
        "receiver_limited_rows": answer.receiver_limited,
        "rows_without_arm": dict(answer.without_arm),
        "samples": answer.n,
        "first_us": answer.first_us,
        "last_us": answer.last_us,
    }


def _age(age: "Age") -> "dict[str, JsonValue]":
    return {
        "age": age.title,
        "treatment": _arm(age.treatment),
        "control": _arm(age.control),
        "median": _effect(age.effect),
    }


def _step(step: "Step") -> "dict[str, JsonValue]":
    return {
        "part": list(step.part.names),
        "share": step.share,
        "metric": step.metric,
        "gain": step.gain.value,
        "gain_low": step.gain.low,
        "gain_high": step.gain.high,
        "traffic": step.traffic,
    }


def _part(part: "Part") -> "dict[str, JsonValue]":
    return {
        "part": list(part.names),
        "verdict": part.verdict,
        "reason": part.reason,
        "samples": part.n,
        "metrics": {metric: _comparison(comparison) for metric, comparison in part.comparisons.items()},
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


def _comparison(comparison: "Comparison") -> "dict[str, JsonValue]":
    gain = comparison.gain
    return {
        "verdict": comparison.verdict,
        "reason": comparison.reason,
        "p_adjusted": comparison.p_adjusted,
        "gain": {"value": gain.value, "low": gain.low, "high": gain.high} if gain else None,
        **(_difference(comparison.difference) if comparison.difference else {}),
        "networks": _networks(comparison),
        "receiver_limited": dict(zip(("treatment", "control"), comparison.receiver_limited, strict=True)),
        "imbalances": [
            {"of": imbalance.of, "standardized": imbalance.standardized, "ratio": imbalance.ratio, "p": imbalance.p}
            for imbalance in comparison.imbalances
        ],
    }


def _networks(comparison: "Comparison") -> "dict[str, JsonValue] | None":
    networks = comparison.networks
    if networks is None:
        return None
    effect = comparison.difference.median if comparison.difference else None
    carrier = networks.carrier(effect) if effect else None
    largest = networks.heavy[0] if networks.heavy else None
    return {
        "count": networks.count,
        "effective": networks.effective,
        "unknown_share": networks.unknown_share,
        "largest": {"network": largest.network, "share": largest.share} if largest else None,
        "carrier": {"network": carrier.network, "share": carrier.share} if carrier else None,
    }


def _difference(difference: "Difference") -> "dict[str, JsonValue]":
    return {
        "treatment": _arm(difference.treatment),
        "control": _arm(difference.control),
        "ratios": {
            **{f"{share:g}": _effect(effect) for share, effect in difference.quantiles.items()},
            "mean": _effect(difference.mean),
        },
    }


def _arm(arm: "Arm") -> "dict[str, JsonValue]":
    """Return an arm's numbers, in microseconds or bits per second."""
    from thalweg.advise import QUANTILES

    return {
        "samples": arm.n,
        "mean": arm.mean,
        "quantiles": {f"{share:g}": value for share, value in zip(QUANTILES, arm.quantiles, strict=True)},
        "groups": arm.groups,
        "cdf": [list(point) for point in arm.curve],
    }


def _effect(effect: "Effect | None") -> "dict[str, JsonValue] | None":
    if effect is None or not all(math.isfinite(number) for number in (effect.ratio, effect.low, effect.high)):
        return None
    return {"ratio": effect.ratio, "low": effect.low, "high": effect.high, "p": effect.p}
