"""How far a search is: a bar where standard error is a terminal, else a line now and then."""

import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING

from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from thalweg import printable
from thalweg.engine_output import EngineEvent
from thalweg.run.progress import LINE_EVERY_S
from thalweg.search.candidates import Candidate, front
from thalweg.search.outcome import objective_text

if TYPE_CHECKING:
    from rich.console import Console

    from thalweg.search.table import Search


class SearchProgress:
    """Shows candidates as they are evaluated; use it as a context manager."""

    def __init__(self, console: "Console", search: "Search", clock: Callable[[], float] = time.monotonic) -> None:
        """Write to `console`, which is standard error."""
        self._console, self._search, self._clock = console, search, clock
        self._bar: Bar | None = None
        self._last_line = clock()
        self._is_begun = False

    def __enter__(self) -> "SearchProgress":
        """Start showing."""
        if self._console.is_terminal:
            columns = (
                TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
                TextColumn("left"), TimeRemainingColumn(),
            )  # fmt: skip
            self._bar = Bar(*columns, console=self._console, transient=True)
            self._task = self._bar.add_task("candidates", total=self._search.budget)
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop showing."""
        self.end()

    def end(self) -> None:
        """Remove the bar."""
        if self._bar:
            self._bar.stop()
            self._bar = None

    def candidates(self, evaluated: Sequence[Candidate]) -> None:
        """Show how many candidates are evaluated, and the best one."""
        count, budget = len(evaluated), self._search.budget
        if not self._is_begun:
            self._is_begun = True
            already = f"; {count} are evaluated already" if count else ""
            self._say(f"{budget} candidates{already}")
        best = front(evaluated, self._search)
        text = ""
        if len(self._search.objectives) > 1 and best:
            text = f"{len(best)} on the Pareto front"
        elif best:
            text = f"best {best[0].name}: {objective_text(self._search, best[0])}"
        if self._bar:
            description = printable.value(f"candidates ({text})" if text else "candidates")
            self._bar.update(self._task, completed=count, description=description)
        elif self._clock() - self._last_line >= LINE_EVERY_S:
            self._last_line = self._clock()
            self._say(f"{count} of {budget} candidates" + (f"; {text}" if text else ""))

    def verifying(self, engine: str, name: str) -> None:
        """Show which candidate is run at the held-out points."""
        which = "the default" if name == "default" else f"candidate {name}"
        if self._bar:
            self._bar.update(self._task, description=f"held-out points on {engine}: {which}")
        else:
            self._say(f"held-out points on {engine}: {which}")

    def event(self, event: EngineEvent) -> None:
        """Show what an engine reports that a reader should know at once."""
        if event["event"] == "stopping":
            self._say("stopping; what is finished is kept (once more: at once)")
        if event["event"] == "untrustworthy":
            self._say(f"an experiment is not to be trusted, and left out: {event['reason']}")

    def _say(self, text: str) -> None:
        self._console.print(printable.lines(text), markup=False, highlight=False, soft_wrap=True)
