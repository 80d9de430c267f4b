"""A study's conclusion as a policy file: which algorithm for which path, as far as an engine bears it out.

docs/reference/policy.md describes the file.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from thalweg import __version__
from thalweg.report.files import put
from thalweg.studies.judge import Judged
from thalweg.studies.models import Policy, Range, Rule

FORMAT = 1
"""Version of the file: a reader refuses one that it does not know."""

FIRST_LINE = "# Which algorithm for which path; the first rule that applies decides. docs/reference/policy.md"


@dataclass(frozen=True)
class Decided:
    """A rule, and whether what it rests on holds."""

    rule: Rule
    fails: Sequence[str]
    """Its claims that do not hold, each with its verdict; empty: the rule is in the file."""
    evidence: Sequence[str]


def decide(policy: Policy, judged: Mapping[str, Judged]) -> list[Decided]:
    """Say which rules an engine's verdicts bear out: those of which every claim holds."""
    found = []
    for rule in policy.rules:
        fails = [f"{claim}: {judged[claim].verdict}" for claim in rule.claims if judged[claim].verdict != "holds"]
        evidence = [_evidence(claim, judged[claim]) for claim in rule.claims]
        found.append(Decided(rule, fails, evidence))
    return found


def text(study: str, policy: Policy, engine: str, version: str, judged: Mapping[str, Judged], *, is_quick: bool) -> str:
    """Write the policy file."""
    size = "quick set" if is_quick else "full set"
    lines = [
        FIRST_LINE,
        f"format = {FORMAT}",
        f"source = {_text(f'study {study}, {size}, engine {engine} (results {version}), thalweg {__version__}')}",
        f"default = {_text(policy.default)}",
    ]
    for each in decide(policy, judged):
        if each.fails:
            lines += ["", f"# Left out: {each.rule.name} ({'; '.join(each.fails)})"]
            continue
        rule = each.rule
        lines += ["", "[[rules]]", f"name = {_text(rule.name)}", f"algorithm = {_text(rule.algorithm)}"]
        lines.append(f"when = {{ {', '.join(f'{key} = {_range(wanted)}' for key, wanted in rule.when.items())} }}")
        lines += [f"reason = {_text(rule.reason)}", f"source = {_text(rule.source)}"]
        if rule.cost:
            lines.append(f"cost = {_text(rule.cost)}")
        lines += ["evidence = [", *(f"    {_text(line)}," for line in each.evidence), "]"]
    return "\n".join(lines) + "\n"


def write(content: str, file: Path) -> None:
    """Write a policy file into a folder that is there: servers look for it where somebody said, nowhere else.

    Raises `ThalwegError` if it cannot be written.
    """
    put(file, content, "the policy", "name another place with `--policy FILE`", makes_folders=False)


def _evidence(claim: str, judged: Judged) -> str:
    if judged.value is None:
        return f"{claim}: {judged.verdict}"
    ends = "" if judged.low is None or judged.high is None else f" ({judged.low:.3g} to {judged.high:.3g})"
    return f"{claim}: {judged.verdict}, {judged.value:.3g}{ends}"


def _range(wanted: Range) -> str:
    ends = {"at_least": wanted.at_least, "at_most": wanted.at_most}
    return "{ " + ", ".join(f"{name} = {value:g}" for name, value in ends.items() if value is not None) + " }"


def _text(value: str) -> str:
    """Write a text as TOML takes it: JSON's escapes are a part of TOML's."""
    return json.dumps(" ".join(value.split()), ensure_ascii=False)
