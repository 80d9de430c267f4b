"""The search: evaluates candidates until the budget is used."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from thalweg.errors import ThalwegError
from thalweg.search.candidates import Candidate, front, reason_to_stop, rounds
from thalweg.search.measuring import Lab, all_quantities
from thalweg.search.planning import Planner, Settings
from thalweg.search.store import Claimed, Store
from thalweg.search.table import Search


@dataclass
class Searching:
    """A search in its folder."""

    planner: Planner
    lab: Lab
    folder: Path
    store: Store
    listener: Callable[[list[Candidate]], None] = field(default=lambda evaluated: None)
    """Called with all evaluated candidates, at the start and after each one that this process evaluates."""

    @property
    def search(self) -> Search:
        """Definition of the search."""
        return self.planner.search

    def run(self) -> list[Candidate]:
        """Evaluate the default, then candidates until the budget is used; other processes may share the work.

        Raises:
            Interrupted: If the user requested a stop; finished experiments are kept.
            ThalwegError: If the engine cannot run, or a file cannot be written.
        """
        with self.store.exclusive():
            if self.store.default is None:
                self.store.keep_default(self._measured(None, {}))
        self.listener(self.store.evaluated())
        while True:
            while claimed := self.store.claim():
                self._evaluate(claimed)
                self.listener(self.store.evaluated())
            if not self.store.is_shared():
                break
            self.store.wait()
        shutil.rmtree(self.folder / "candidates", ignore_errors=True)
        return self.store.evaluated()

    def _evaluate(self, claimed: Claimed) -> None:
        evaluated = self.store.evaluated()
        same = next((candidate for candidate in evaluated if candidate.settings == claimed.settings), None)
        if same is not None:
            candidate = replace(same, number=claimed.number)
        else:
            candidate = self._measured(claimed.number, claimed.settings, front(evaluated, self.search))
        self.store.keep(claimed, candidate)
        shutil.rmtree(self._directory(claimed.number), ignore_errors=True)

    def _measured(self, number: int | None, settings: Settings, best: list[Candidate] | None = None) -> Candidate:
        candidate = Candidate(number, dict(settings))
        try:
            plan = self.planner.plan(settings, "seen")
        except ThalwegError as error:
            return replace(candidate, failed=error.errors[0].message)
        counts = rounds(self.planner.repetitions) if best is not None else [self.planner.repetitions]
        for count in counts:
            try:
                values = self.lab.measure(plan, self._directory(number), self.search.terms, count)
            except ThalwegError as error:
                if error.code != "experiments-failed":
                    raise
                return replace(candidate, failed=error.message)
            candidate = replace(candidate, values=all_quantities(values, self.search.quantities, plan))
            if failed := unmeasured(candidate, self.search):
                return replace(candidate, failed=failed)
            if count < counts[-1] and (reason := reason_to_stop(candidate, best or [], self.search)):
                return replace(candidate, stopped=reason)
        return candidate

    def _directory(self, number: int | None) -> Path:
        return self.folder / "default" if number is None else self.folder / "candidates" / str(number)


def unmeasured(candidate: Candidate, search: Search) -> str:
    """Return as text which quantities have no value in any repetition; empty if all have values."""
    lacking = [
        quantity.name
        for quantity, estimate in zip(search.quantities, candidate.estimates, strict=True)
        if estimate is None
    ]
    return f"no value of {', '.join(lacking)}" if lacking else ""
