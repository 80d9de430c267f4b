"""`thalweg report`: one HTML file about one run or several."""

from pathlib import Path
from typing import Annotated

import typer

from thalweg.cli import output
from thalweg.cli.options import option

EPILOG = "Example: thalweg report runs/quickstart-sim-* --output both.html"

NAME = "report.html"


def command(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN_DIR", help="Run directories.", show_default=False)],
    to: Annotated[
        Path | None,
        option("--output", "FILE", "Where to write it. [default: report.html in RUN_DIR, or here for several]"),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print where it is as JSON.")] = False,
) -> None:
    """Write the report of runs again.

    Several runs are shown together in one file. Nothing is run.
    """
    target = to or (runs[0] / NAME if len(runs) == 1 else Path(NAME))
    from thalweg.report import write

    write(runs, target)
    if as_json:
        output.data_json({"report": str(target)})
    else:
        output.data(str(target))
