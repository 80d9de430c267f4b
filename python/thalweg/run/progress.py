"""Progress of a run: a bar on a terminal, otherwise periodic lines."""

import math
import time
from collections import Counter
from collections.abc import Callable
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from thalweg import printable
from thalweg.engine_output import EngineEvent

LINE_EVERY_S = 10.0
"""Interval of lines without a terminal, so that the log of a long run stays readable."""

MAX_LISTED = 5
"""Maximum number of listed failures, and of listed untrustworthy experiments."""


class Progress:
    """Shows events as they arrive; use it as a context manager."""

    def __init__(
        self,
        console: Console,
        clock: Callable[[], float] = time.monotonic,
        *,
        title: str = "",
        real_time_s: float | None = None,
    ) -> None:
        """Write to `console`, which is standard error.

        `title` precedes the first line. `real_time_s` is the total time of all experiments on an engine in real time.
        """
        self._console = console
        self._title = title
        self._real_time_s = real_time_s
        self._counts: Counter[str] = Counter()
        self._clock = clock
        self._bar: Bar | None = None
        self._is_terminal = console.is_terminal
        self._total = self._done = self._pending = 0
        self._last_line = clock()

    def __enter__(self) -> "Progress":
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
        if self._bar:
            self._bar.stop()

    def event(self, event: EngineEvent) -> None:
        """Show an event."""
        match event["event"]:
            case "plan":
                self._total, self._done = event["experiments"], event["present"]
                self._begin(event)
            case "finished" | "failed":
                self._done += 1
                self._step()
        if event["event"] == "failed":
            self._list("failed", f"experiment {_name(event)} failed: {event['message']}")
        if event["event"] == "untrustworthy":
            self._list("untrustworthy", f"experiment {_name(event)} is untrustworthy: {event['reason']}")
        if event["event"] == "stopping":
            self._print("stopping; finished experiments are kept (press again to stop at once)")

    def _begin(self, event: EngineEvent) -> None:
        experiments = event["experiments"]
        text = f"{experiments} experiment{'' if experiments == 1 else 's'}, {event['threads']} at a time"
        if event["present"]:
            text += f"; {event['present']} {'is' if event['present'] == 1 else 'are'} already finished"
        if self._real_time_s and experiments and event["pending"]:
            seconds_left = self._real_time_s * event["pending"] / experiments / min(event["threads"], event["pending"])
            text += f"; in real time: about {duration(seconds_left)}"
        self._print(f"{self._title}: {text}" if self._title else text)
        if self._bar:
            self._bar.update(self._task, total=self._total, completed=self._done)

    def _step(self) -> None:
        if self._bar:
            self._bar.update(self._task, completed=self._done)
        elif self._clock() - self._last_line >= LINE_EVERY_S:
            self._last_line = self._clock()
            self._print(f"{self._done} of {self._total} experiments")

    def _list(self, kind: str, text: str) -> None:
        self._counts[kind] += 1
        if self._counts[kind] <= MAX_LISTED:
            self._print(text.strip().replace("\n", "\n  "))
        elif self._counts[kind] == MAX_LISTED + 1:
            self._print("further ones are counted at the end")

    def _print(self, text: str) -> None:
        self._console.print(printable.lines(text), markup=False, highlight=False, soft_wrap=True)


def duration(seconds: float) -> str:
    """Format an estimated duration, with a precision that suits an estimate.

    >>> duration(8.2), duration(100), duration(7300)
    ('9 s', '2 min', '2.0 h')
    """
    if seconds < 90:
        return f"{math.ceil(seconds)} s"
    return f"{math.ceil(seconds / 60)} min" if seconds < 90 * 60 else f"{seconds / 3600:.1f} h"


def _name(event: EngineEvent) -> str:
    return f"{event['experiment']} (repetition {event['repetition']})"
