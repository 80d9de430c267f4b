"""Policy files: map destinations to congestion controls, as docs/reference/policy.md describes."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from thalweg import printable

FORMAT = 1

FIRST_LINE = "# Algorithms by path; the first rule that matches applies. docs/reference/policy.md"


@dataclass(frozen=True)
class Between:
    """A condition on a number; the bounds are inclusive."""

    at_least: float | None = None
    at_most: float | None = None


Condition = Between | Sequence[str]
"""A condition on a number, or a list of accepted names or prefixes."""


@dataclass(frozen=True)
class Rule:
    """An algorithm, and the conditions of its destinations."""

    name: str
    algorithm: str
    when: Mapping[str, Condition]
    reason: str
    source: str
    cost: str = ""
    evidence: Sequence[str] = ()


@dataclass(frozen=True)
class LeftOutRule:
    """A rule of which only a comment is written."""

    name: str
    why: str


def text(source: str, default: str, rules: Sequence[Rule | LeftOutRule]) -> str:
    """Return the text of a policy file."""
    lines = [FIRST_LINE, f"format = {FORMAT}", f"source = {_text(source)}", f"default = {_text(default)}"]
    for rule in rules:
        lines += ["", *(_rule(rule) if isinstance(rule, Rule) else [f"# Left out: {rule.name} ({rule.why})"])]
    return "\n".join(lines) + "\n"


def _rule(rule: Rule) -> list[str]:
    conditions = ", ".join(f"{key} = {_condition(condition)}" for key, condition in rule.when.items())
    lines = [
        "[[rules]]",
        f"name = {_text(rule.name)}",
        f"algorithm = {_text(rule.algorithm)}",
        f"when = {{ {conditions} }}",
        f"reason = {_text(rule.reason)}",
        f"source = {_text(rule.source)}",
    ]
    if rule.cost:
        lines.append(f"cost = {_text(rule.cost)}")
    return [*lines, "evidence = [", *(f"    {_text(line)}," for line in rule.evidence), "]"]


def _condition(condition: Condition) -> str:
    """Return a condition in TOML.

    >>> _condition(Between(at_most=0.15)), _condition(["198.51.100.0/24"])
    ('{ at_most = 0.15 }', '["198.51.100.0/24"]')
    """
    if isinstance(condition, Between):
        ends = {"at_least": condition.at_least, "at_most": condition.at_most}
        return "{ " + ", ".join(f"{name} = {value:g}" for name, value in ends.items() if value is not None) + " }"
    return f"[{', '.join(_text(value) for value in condition)}]"


def _text(value: str) -> str:
    """Return a text as a string in TOML, with single spaces; the escapes of JSON are valid in TOML."""
    return printable.json_text(json.dumps(" ".join(value.split()), ensure_ascii=False))
