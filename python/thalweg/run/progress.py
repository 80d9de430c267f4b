"""How far a run is: a bar where standard error is a terminal, else a line now and then."""

import time
from collections.abc import Callable
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

LINE_EVERY_S = 10.0
"""How often a line is written where there is no terminal: a log of a long run stays readable."""


class Progress:
    """Shows events as they come; use it as a context manager."""

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        """Write to `console`, which is standard error."""
        self._console = console
        self._clock = clock
        self._bar: Bar | None = None
        self._is_terminal = console.is_terminal
        self._total = self._done = self._pending = 0
        self._last_line = clock()

    def __enter__(self) -> "Progress":
        """Start showing."""
        if self._is_terminal:
            columns = (
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                TextColumn("left"),
                TimeRemainingColumn(),
            )
            self._bar = Bar(*columns, console=self._console, transient=True)
            self._task = self._bar.add_task("experiments", total=None)
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop showing."""
        if self._bar:
            self._bar.stop()

    def event(self, event: dict[str, Any]) -> None:
        """Show an event."""
        match event["event"]:
            case "plan":
                self._total, self._done = event["experiments"], event["present"]
                self._begin(event)
            case "finished" | "failed":
                self._done += 1
                self._step()
        if event["event"] == "failed":
            self._say(f"experiment {_name(event)} failed: {event['message']}")
        if event["event"] == "untrustworthy":
            self._say(f"experiment {_name(event)} is not to be trusted: {event['reason']}")
        if event["event"] == "stopping":
            self._say("stopping; what is finished is kept (once more: at once)")

    def _begin(self, event: dict[str, Any]) -> None:
        many = event["experiments"]
        text = f"{many} experiment{'' if many == 1 else 's'}, {event['threads']} at a time"
        if event["present"]:
            text += f"; {event['present']} are there already"
        self._say(text)
        if self._bar:
            self._bar.update(self._task, total=self._total, completed=self._done)

    def _step(self) -> None:
        if self._bar:
            self._bar.update(self._task, completed=self._done)
        elif self._clock() - self._last_line >= LINE_EVERY_S:
            self._last_line = self._clock()
            self._say(f"{self._done} of {self._total} experiments")

    def _say(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)


def _name(event: dict[str, Any]) -> str:
    return f"{event['experiment']} (repetition {event['repetition']})"
