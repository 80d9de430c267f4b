"""Searches for conditions that cause each failure, and shrinks the findings."""

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from thalweg import plan, scenario
from thalweg.engine import Capabilities, Engine
from thalweg.errors import ThalwegError
from thalweg.plan import Plan
from thalweg.scenario.document import Value
from thalweg.search.candidates import Candidate
from thalweg.search.conditions import Conditions, applied, elements
from thalweg.search.failures import Failure
from thalweg.search.findings import Confirmed, Finding
from thalweg.search.fuzz_table import Fuzz
from thalweg.search.measuring import Lab, raise_failed
from thalweg.search.planning import digest
from thalweg.search.shrinking import shrink
from thalweg.search.store import Claimed, Store

MAX_SHRUNK = 3

JOURNAL = "shrinking.jsonl"
"""Journal of shrinking, so that it can be resumed."""

Scores = Sequence[tuple[float, float]]
"""Score and value of the measure, by repetition. Empty if any repetition has no value."""


@dataclass
class Fuzzing:
    """A fuzzing session in its folder."""

    fuzz: Fuzz
    engine: Engine
    known: Capabilities
    lab: Lab
    folder: Path
    listener: Callable[[Failure, list[Candidate]], None] = field(default=lambda failure, evaluated: None)
    tell: Callable[[str], None] = field(default=lambda text: None)
    without_value: dict[str, list[Candidate]] = field(default_factory=dict)
    """Candidates that could not be run or measured, by failure."""

    def run(self) -> list[Finding]:
        """Search for all failures.

        Raises:
            Interrupted: If the user requested a stop; the same call resumes.
            ThalwegError: If the engine cannot run, or a file cannot be written.
        """
        return [finding for failure in self.fuzz.failures for finding in self._search(failure)]

    def plan(
        self, conditions: Conditions, engine: Engine | None = None, settings: Mapping[str, Value] | None = None
    ) -> Plan:
        """Plan the scenario under conditions, with additional `settings`.

        Raises:
            ThalwegErrors: If the resulting scenario has mistakes, or the engine does not support it.
        """
        document = scenario.overridden(applied(self.fuzz.document, conditions), dict(settings or {}))
        document = scenario.checked(document)
        return plan.make(document, engine or self.engine, self.known.engines)

    def confirm(self, finding: Finding, engine: Engine) -> Finding:
        """Run a finding on another engine.

        Raises:
            Interrupted: If the user requested a stop; the same call resumes.
            ThalwegError: If the engine cannot run, or a file cannot be written.
        """
        try:
            planned = self.plan(finding.conditions, engine)
        except ThalwegError as error:
            return replace(finding, confirmed=Confirmed(engine.name, 0, 0, None, error.errors[0].message))
        directory = self.folder / f"confirm-{engine.name}" / digest(planned.model_dump_json())
        try:
            scores = self._scores(finding.failure, planned, directory)
        except ThalwegError as error:
            if error.code not in ("experiments-failed", "empty-run"):
                raise
            return replace(finding, confirmed=Confirmed(engine.name, 0, 0, None, error.message.partition(";")[0]))
        if not scores:
            return replace(
                finding, confirmed=Confirmed(engine.name, 0, 0, None, "the measure has no value at this point")
            )
        failing = sum(score >= 0 for score, _ in scores)
        mean = sum(value for _, value in scores) / len(scores)
        return replace(finding, confirmed=Confirmed(engine.name, len(scores), failing, mean))

    def _search(self, failure: Failure) -> list[Finding]:
        folder = self.folder / failure.name
        folder.mkdir(parents=True, exist_ok=True)
        tries = _Tries(self, failure, folder)
        with tries.exclusive():
            always = tries.scores(())
        if _is_failing(always):
            return [Finding(failure, (), [value for _, value in always], None, 0)]
        store = tries.store
        self.listener(failure, store.evaluated())
        while True:
            while claimed := store.claim():
                self._evaluate(failure, store, claimed, folder)
                self.listener(failure, store.evaluated())
            if not store.is_shared():
                break
            store.wait()
        self.without_value[failure.name] = [candidate for candidate in store.evaluated() if candidate.failed]
        with tries.exclusive():
            return self._shrunk(failure, store, tries)

    def _evaluate(self, failure: Failure, store: Store, claimed: Claimed, folder: Path) -> None:
        candidate = Candidate(claimed.number, claimed.settings)
        directory = folder / "candidates" / str(claimed.number)
        try:
            scores = self._scores(failure, self.plan(elements(claimed.settings)), directory)
        except ThalwegError as error:
            if error.code in ("cannot-write", "disk-full", "short-of-resources", "engine-died", "bad-engine"):
                raise
            candidate = replace(candidate, failed=error.errors[0].message)
        else:
            if scores:
                candidate = replace(candidate, values=[[score for score, _ in scores]])
            else:
                candidate = replace(candidate, failed="not every repetition has a value")
        store.keep(claimed, candidate)
        shutil.rmtree(directory, ignore_errors=True)

    def _shrunk(self, failure: Failure, store: Store, tries: "_Tries") -> list[Finding]:
        """Shrink the failing candidate with the fewest elements of each set of kinds, `MAX_SHRUNK` at most; return one
        finding per set of kinds.
        """
        failing = [candidate for candidate in store.evaluated() if fails(candidate)]
        failing.sort(key=lambda candidate: (len(elements(candidate.settings)), candidate.number))
        chosen: dict[frozenset[str], Candidate] = {}
        for candidate in failing:
            chosen.setdefault(frozenset(element.kind for element in elements(candidate.settings)), candidate)
        findings: dict[frozenset[str], Finding] = {}
        for candidate in list(chosen.values())[:MAX_SHRUNK]:
            self.tell(f"{failure.name}: shrinking candidate {candidate.name}")
            before = tries.count
            minimal = shrink(elements(candidate.settings), lambda conditions: _is_failing(tries.scores(conditions)))
            values = [value for _, value in tries.scores(minimal)]
            finding = Finding(failure, minimal, values, candidate.number, tries.count - before)
            findings.setdefault(finding.kinds, finding)
        return list(findings.values())

    def _scores(self, failure: Failure, planned: Plan, directory: Path) -> Scores:
        raise_failed(self.lab.run(planned, directory))
        repetitions = len(planned.experiments)
        by_repetition = failure.scores(directory, self.fuzz.duration_s, repetitions)
        return [by_repetition[number] for number in range(repetitions)] if len(by_repetition) == repetitions else []


class _Tries:
    """Cache of the conditions that were run for a failure."""

    def __init__(self, fuzzing: Fuzzing, failure: Failure, folder: Path) -> None:
        self._fuzzing, self._failure, self._folder = fuzzing, failure, folder
        seed = fuzzing.fuzz.document.raw.get("seed", 1)
        self.store = Store(folder, fuzzing.fuzz.search(), seed if isinstance(seed, int) else 1)
        self.exclusive = self.store.exclusive
        self._known: dict[str, Scores] = {}
        self.count = 0
        """Number of evaluations, including those whose result was known."""

    def scores(self, conditions: Conditions) -> Scores:
        """Return the scores under conditions; empty if they cannot be run or measured."""
        self._read()
        key = digest(json.dumps([[condition.kind, sorted(condition.values.items())] for condition in conditions]))
        self.count += 1
        if key not in self._known:
            directory = self._folder / "shrinking" / key
            try:
                scores = self._fuzzing._scores(self._failure, self._fuzzing.plan(conditions), directory)
            except ThalwegError as error:
                if error.code in ("cannot-write", "disk-full", "short-of-resources", "engine-died", "bad-engine"):
                    raise
                scores = []
            with (self._folder / JOURNAL).open("a", encoding="utf-8") as file:
                file.write(json.dumps([key, scores]) + "\n")
            self._known[key] = scores
            shutil.rmtree(directory, ignore_errors=True)
        return self._known[key]

    def _read(self) -> None:
        """Read earlier results; an incomplete line is run again."""
        file = self._folder / JOURNAL
        if self._known or not file.exists():
            return
        for line in file.read_text(encoding="utf-8").splitlines():
            try:
                key, scores = json.loads(line)
            except ValueError:
                continue
            self._known[key] = [(score, value) for score, value in scores]


def _is_failing(scores: Scores) -> bool:
    return bool(scores) and all(score >= 0 for score, _ in scores)


def fails(candidate: Candidate) -> bool:
    """Return whether a candidate fails in every repetition."""
    return candidate.is_measured and all(score is not None and score >= 0 for score in candidate.values[0])


def fingerprint(fuzz: Fuzz, planned: Plan, version: str) -> str:
    """Return a hash of all settings of a search except the budget."""
    settings = [repr(setting) for setting in (*fuzz.failures, *fuzz.parameters)]
    text = planned.model_copy(update={"scenario_toml": ""}).model_dump_json()
    return digest(text, *settings, planned.engine, version)
