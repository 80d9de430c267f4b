"""Progress of a build: a bar if standard error is a terminal, otherwise one line per phase."""

from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

OBJECTS = 620
"""Approximate number of objects of Linux 6.1 with the default options."""


class KernelProgress:
    """Shows the phases and steps of a build; use it as a context manager."""

    # thalweg.run.Progress starts and stops its bar in the same way, but neither layer may import the other.

    def __init__(self, console: Console) -> None:
        self._console = console
        self._done = 0
        self._bar: Bar | None = None

    def __enter__(self) -> "KernelProgress":
        if self._console.is_terminal:
            columns = (
                TextColumn("{task.description}"),
                BarColumn(),
                TimeElapsedColumn(),
                TextColumn("{task.fields[name]}"),
            )
            self._bar = Bar(*columns, console=self._console, transient=True)
            self._task = self._bar.add_task("", total=None, name="")
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar:
            self._bar.stop()

    def phase(self, text: str) -> None:
        """Show the start of a phase."""
        if self._bar:
            self._bar.update(self._task, description=text)
        else:
            self._console.print(text, markup=False, highlight=False, soft_wrap=True)

    def step(self, name: str) -> None:
        """Count a built object; the bar stops short of the total, which is an estimate."""
        self._done += 1
        if self._bar:
            self._bar.update(self._task, completed=min(self._done, OBJECTS - 1), total=OBJECTS, name=name[-40:])
