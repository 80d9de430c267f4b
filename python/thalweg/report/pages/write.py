"""Writes the report of one or several runs."""

from collections.abc import Sequence
from pathlib import Path

from thalweg.errors import ThalwegError
from thalweg.report.content import Content
from thalweg.report.drawing.paper import save
from thalweg.report.drawing.sweeps import MAX_POINTS, heat_maps, point_figures, sweep_figures
from thalweg.report.files import put
from thalweg.report.pages.page import page


def figures(run_dirs: Sequence[Path], directory: Path, form: str = "svg") -> tuple[list[Path], int]:
    """Write the figures of a report for papers; return the files, and the number of points without separate figures."""
    content = Content(run_dirs)
    sweep, measurements = content.sweep, content.measurements
    listed = [
        *sweep_figures(sweep, measurements),
        *heat_maps(sweep, measurements),
        *point_figures(content.runs, sweep),
    ]
    return save(listed, directory, form), max(0, len(sweep.points) - MAX_POINTS)


def write(run_dirs: Sequence[Path], output: Path) -> None:
    """Write one HTML file about one or several runs, atomically; a pipe or a device is written in place.

    Raises:
        ThalwegError: If `run_dirs` is empty, a run directory cannot be read (see `thalweg.results.open_run`), or
            `output` cannot be written.
    """
    if not run_dirs:
        raise ThalwegError("no-run", "a report needs at least one run directory", hint="thalweg report RUN_DIR...")
    html = page(Content(run_dirs))
    put(output, html, "the report", "choose another file with `thalweg report RUN_DIR --out FILE`")
