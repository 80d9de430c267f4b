"""Writes a study's conclusion as a policy file, limited to the rules that an engine confirms."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from thalweg import __version__, policy_file
from thalweg.report.files import put
from thalweg.studies.claims.models import Policy, PolicyRule
from thalweg.studies.judging.judged import Judged


@dataclass(frozen=True)
class Decided:
    """A rule, and whether its claims hold."""

    rule: PolicyRule
    fails: Sequence[str]
    """Claims that do not hold, each with its verdict; empty: the rule is written."""
    evidence: Sequence[str]


def decide(policy: Policy, judged: Mapping[str, Judged]) -> list[Decided]:
    """Check for each rule whether all of its claims hold on an engine."""
    decided = []
    for rule in policy.rules:
        fails = [f"{claim}: {judged[claim].verdict}" for claim in rule.claims if judged[claim].verdict != "holds"]
        evidence = [_evidence(claim, judged[claim]) for claim in rule.claims]
        decided.append(Decided(rule, fails, evidence))
    return decided


def text(
    study: str, concluded: Policy, engine: str, version: str, judged: Mapping[str, Judged], *, is_quick: bool
) -> str:
    """Return the text of the policy file."""
    size = "quick set" if is_quick else "full set"
    source = f"study {study}, {size}, engine {engine} (results {version}), thalweg {__version__}"
    return policy_file.text(source, concluded.default, [_written(rule) for rule in decide(concluded, judged)])


def write(content: str, file: Path) -> None:
    """Write a policy file into an existing folder. The folder is not created, because a mistyped path would not be read
    by any server.

    Raises:
        ThalwegError: If it cannot be written.
    """
    put(file, content, "the policy", "choose another path with `--policy FILE`", makes_folders=False)


def _written(decided: Decided) -> policy_file.Rule | policy_file.LeftOutRule:
    rule = decided.rule
    if decided.fails:
        return policy_file.LeftOutRule(rule.name, "; ".join(decided.fails))
    conditions: dict[str, policy_file.Condition] = {
        key: policy_file.Between(limits.at_least, limits.at_most) for key, limits in rule.when.items()
    }
    return policy_file.Rule(
        rule.name, rule.algorithm, conditions, rule.reason, rule.source, cost=rule.cost, evidence=decided.evidence
    )


def _evidence(claim: str, judged: Judged) -> str:
    if judged.value is None:
        return f"{claim}: {judged.verdict}"
    ends = "" if judged.low is None or judged.high is None else f" ({judged.low:.3g} to {judged.high:.3g})"
    return f"{claim}: {judged.verdict}, {judged.value:.3g}{ends}"
