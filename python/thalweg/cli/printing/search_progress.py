"""Progress of a search: a bar on a terminal, otherwise periodic lines."""

import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING

from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bar
from rich.table import Column

from thalweg import printable
from thalweg.engine_output import EngineEvent
from thalweg.run.progress import LINE_EVERY_S
from thalweg.search.candidates import Candidate

if TYPE_CHECKING:
    from rich.console import Console


class SearchProgress:
    """Shows candidates as they are evaluated; use it as a context manager."""

    def __init__(
        self,
        console: "Console",
        budget: int,
        describe: Callable[[Sequence[Candidate]], str],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._console, self._budget, self._describe, self._clock = console, budget, describe, clock
        self._bar: Bar | None = None
        self._last_line = clock()
        self._title: str | None = None

    def __enter__(self) -> "SearchProgress":
        if self._console.is_terminal:
            # Times are not truncated if the line is too short.
            columns = (
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeElapsedColumn(table_column=Column(min_width=7, no_wrap=True)),
                TextColumn("left"),
                TimeRemainingColumn(table_column=Column(min_width=7, no_wrap=True)),
                TextColumn("{task.fields[summary]}", table_column=Column(no_wrap=True, overflow="ellipsis")),
            )
            self._bar = Bar(*columns, console=self._console, transient=True)
            self._task = self._bar.add_task("candidates", total=self._budget, summary="")
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def end(self) -> None:
        """Remove the bar."""
        if self._bar:
            self._bar.stop()
            self._bar = None

    def candidates(self, evaluated: Sequence[Candidate], title: str = "") -> None:
        """Show the number of evaluated candidates; `title` distinguishes several searches."""
        count, before = len(evaluated), f"{title}: " if title else ""
        if self._title != title:
            self._title = title
            suffix = f"; {count} of them evaluated already" if count else ""
            self.say(f"{before}{self._budget} candidates{suffix}")
        text = self._describe(evaluated)
        if self._bar:
            summary, title = printable.value(text), printable.value(f"{before}candidates")
            self._bar.update(self._task, completed=count, description=title, summary=summary)
        elif self._clock() - self._last_line >= LINE_EVERY_S:
            self._last_line = self._clock()
            self.say(f"{before}{count} of {self._budget} candidates" + (f"; {text}" if text else ""))

    def verifying(self, engine: str, name: str) -> None:
        """Show the candidate that is being run at the held-out points."""
        candidate = "the default" if name == "default" else f"candidate {name}"
        if self._bar:
            self._bar.update(self._task, description=f"held-out points on {engine}: {candidate}")
        else:
            self.say(f"held-out points on {engine}: {candidate}")

    def event(self, event: EngineEvent) -> None:
        """Show engine events that a user should see immediately."""
        if event["event"] == "stopping":
            self.say("stopping; finished experiments are kept (press again to stop at once)")
        if event["event"] == "untrustworthy":
            self.say(f"untrustworthy experiment left out: {event['reason']}")

    def say(self, text: str) -> None:
        """Write a line."""
        self._console.print(printable.lines(text), markup=False, highlight=False, soft_wrap=True)
