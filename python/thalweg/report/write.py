"""Writing a report about runs."""

from collections.abc import Sequence
from pathlib import Path

from thalweg.errors import Exit, ThalwegError
from thalweg.report.content import Content
from thalweg.report.files import replace
from thalweg.report.page import page


def write(run_dirs: Sequence[Path], output: Path) -> None:
    """Write one HTML file about one run or several; a file that is there is replaced only by a complete one.

    A pipe or a device (`/dev/stdout`) is written to, and never replaced.

    Raises `ThalwegError` if a run directory cannot be read (see `thalweg.results.open_run`) or `output` cannot be
    written.
    """
    if not run_dirs:
        raise ThalwegError("no-run", "a report needs at least one run directory", hint="thalweg report RUN_DIR...")
    html = page(Content(run_dirs))
    try:
        replace(output, html.encode())
    except OSError as error:
        raise ThalwegError(
            "cannot-write",
            f"the report cannot be written to `{output}`: {error.strerror or error}",
            place=str(output),
            hint="name another file with `thalweg report RUN_DIR --output FILE`",
            exit_code=Exit.CANNOT_WRITE,
        ) from error
