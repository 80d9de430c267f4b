"""`check` ends with a plan or with reported mistakes for any structure of a scenario, never with a traceback.

By default, the mutations take a few seconds; THALWEG_FUZZ_SECONDS=600 runs as many as fit into ten minutes.
"""

import os
import re
import time
import tomllib
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, seed, settings
from mutations import Originals, mutated
from thalweg import engine, plan
from thalweg.errors import ThalwegError
from thalweg.scenario import check, structure
from thalweg.scenario.document import Document
from thalweg.scenario.mistakes import Mistakes

ROOT = Path(__file__).parents[3]

SECONDS = float(os.environ.get("THALWEG_FUZZ_SECONDS", "0"))
EXAMPLES = 100
"""Number of mutated scenarios in a batch."""


def originals() -> Originals:
    """Return the bundled scenarios, and those of the documentation."""
    texts = [file.read_text("utf-8") for file in sorted((ROOT / "scenarios").rglob("*.toml"))]
    for page in sorted((ROOT / "docs").rglob("*.md")):
        texts += re.findall(r"```toml\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
    parsed = [tomllib.loads(text) for text in texts]
    return Originals(raw for raw in parsed if "path" in raw)


ORIGINALS = originals()
ENGINES = engine.capabilities().engines


def explained_or_planned(raw: dict[str, Any]) -> None:
    """Check and plan a scenario as `thalweg check` does.

    Raises:
        Exception: If planning raises any exception other than `ThalwegError`, which is a bug.
    """
    document = Document(ROOT / "scenarios" / "x.toml", "", raw)
    try:
        check.check(document)
        planned = plan.make(document, ENGINES["sim"], ENGINES)
    except ThalwegError as problem:
        for error in problem.errors:
            assert error.text().startswith(f"error[{error.code}]: ")
        return
    assert planned.experiments


def batch(number: int) -> Callable[[], None]:
    """Return a test of EXAMPLES mutated scenarios; each number produces different ones."""

    @settings(max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @seed(number)
    @given(raw=mutated(ORIGINALS))
    def test(raw: dict[str, Any]) -> None:
        explained_or_planned(raw)

    return test


def test_a_mutated_scenario_is_explained_or_planned() -> None:
    end = time.monotonic() + SECONDS
    for number in count(1):
        batch(number)()
        if time.monotonic() >= end:
            break


@settings(max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@seed(1)
@given(raw=mutated(ORIGINALS))
def test_a_rule_ignores_the_keys_that_it_does_not_declare(raw: dict[str, Any]) -> None:
    document = Document(ROOT / "scenarios" / "x.toml", "", raw)
    sound = structure.sound(raw, structure.check(document, raw))
    for rule, keys in check.RULES:
        of_all, of_declared = Mistakes(), Mistakes()
        rule(sound, document.file.parent, of_all)
        rule(check.extract(sound, keys), document.file.parent, of_declared)
        assert of_declared.entries == of_all.entries, rule
