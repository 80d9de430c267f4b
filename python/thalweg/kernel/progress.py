"""Progress of a build: a bar if standard error is a terminal, otherwise one line per phase."""

from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

OBJECTS = 620
"""Approximate number of objects of Linux 6.1 with the default options; other versions and options have more or fewer.
"""


class KernelProgress:
    """Shows the phases and steps of a build; use it as a context manager."""

    # The bar starts and stops like that of thalweg.run.Progress. The classes share no base class, because neither layer
    # may import the other, and they update their bars differently.

    def __init__(self, console: Console) -> None:
        """Write to `console`, which is standard error."""
        self._console = console
        self._done = 0
        self._bar: Bar | None = None

    def __enter__(self) -> "KernelProgress":
        """Start the display."""
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
        """Stop the display."""
        if self._bar:
            self._bar.stop()

    def phase(self, text: str) -> None:
        """Show the start of a phase."""
        if self._bar:
            self._bar.update(self._task, description=text)
        else:
            self._console.print(text, markup=False, highlight=False, soft_wrap=True)

    def step(self, name: str) -> None:
        """Count a built object; the total is an estimate, which the count never exceeds."""
        self._done += 1
        if self._bar:
            self._bar.update(self._task, completed=min(self._done, OBJECTS - 1), total=OBJECTS, name=name[-40:])
