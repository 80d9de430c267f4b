"""Converts an answer to a policy file: rules for the parts that gain from the treatment, in roll-out order."""

from datetime import UTC, datetime

from thalweg import __version__, policy_file
from thalweg.advise.answers.answer import Answer, Part, Step
from thalweg.advise.counting.segments import LOSS_EDGES, LOSS_SCALE, RTT_EDGES_US, Dimension, PartValue

CANNOT = {
    "size": "an agent does not know the size of a transfer when its connection opens",
    "hour": "rules cannot depend on the hour",
}


def has_rules(answer: Answer) -> bool:
    """Return whether the policy that follows from an answer has a rule."""
    return any(isinstance(rule, policy_file.Rule) for rule in _rules(answer))


def text(answer: Answer) -> str:
    """Return the policy that follows from an answer, as TOML."""
    question = answer.question
    first, last = (
        datetime.fromtimestamp(us / 1e6, UTC).strftime("%Y-%m-%dT%H:%MZ") for us in (answer.first_us, answer.last_us)
    )
    source = (
        f"thalweg advise {__version__}, {question.design.name}, {question.treatment} against {question.control},"
        f" {answer.n} samples from {first} to {last}"
    )
    return policy_file.text(source, question.control, _rules(answer))


def _rules(answer: Answer) -> list[policy_file.Rule | policy_file.LeftOutRule]:
    return [_rule(step, answer) for step in answer.rollout]


def _rule(step: Step, answer: Answer) -> policy_file.Rule | policy_file.LeftOutRule:
    part = step.part
    conditions: dict[str, policy_file.Condition] = {}
    for dimension, value in zip(answer.dimensions, part.values, strict=True):
        condition = _condition(dimension, value)
        if isinstance(condition, str):
            return policy_file.LeftOutRule(part.title, condition)
        conditions |= condition
    if not conditions:
        return policy_file.LeftOutRule("everything", "it has no condition; to apply it, set default")
    return policy_file.Rule(
        name=part.title,
        algorithm=answer.question.treatment,
        when=conditions,
        reason=part.reason,
        source="records of live servers",
        evidence=_evidence(part, step),
    )


def _condition(dimension: Dimension, value: PartValue) -> dict[str, policy_file.Condition] | str:
    """Return the condition for a part's value in one dimension, or the reason why a rule cannot express it."""
    if dimension.name in CANNOT and dimension.titles:
        return CANNOT[dimension.name]
    if dimension.titles:
        assert isinstance(value, int), "classes are numbered"
        name, edges = {
            "rtt": ("rtt_s", [edge / 1e6 for edge in RTT_EDGES_US]),
            "retransmits": ("loss_ratio", [edge / LOSS_SCALE for edge in LOSS_EDGES]),
        }[dimension.name]
        low = edges[value - 1] if value > 0 else None
        high = edges[value] if value < len(edges) else None
        return {name: policy_file.Between(low, high)}
    return {dimension.name: [str(value)]}


def _evidence(part: Part, step: Step) -> list[str]:
    lines = [f"roll out to {step.share:.0%} of the connections first"]
    for metric, comparison in part.comparisons.items():
        effect = comparison.difference.median if comparison.difference else None
        if comparison.difference and effect:
            n = comparison.difference.treatment.n, comparison.difference.control.n
            lines.append(
                f"{metric}: {comparison.verdict}, ratio of medians {effect.ratio:.3g}"
                f" ({effect.low:.3g} to {effect.high:.3g}), {n[0]} and {n[1]} samples"
            )
    return lines
