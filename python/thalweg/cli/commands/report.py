"""`thalweg report`: one HTML file about one run or several."""

from pathlib import Path
from typing import Annotated

import typer

from thalweg.cli.options import option
from thalweg.cli.printing import figure_files, output

EPILOG = "Example: thalweg report runs/quickstart-sim-* --out both.html"

NAME = "report.html"


def command(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN_DIR", help="Run directories.", show_default=False)],
    out: Annotated[
        Path | None,
        option(
            "--out",
            "FILE",
            "Output file. [default: report.html in RUN_DIR; for several runs, in the current directory]",
        ),
    ] = None,
    figures: Annotated[
        Path | None,
        option("--figures", "DIR", "Write the figures as files into DIR; write the report only if --out is given."),
    ] = None,
    form: figure_files.Form = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the paths as JSON.")] = False,
) -> None:
    """Write a report of existing runs.

    Several runs are combined in one file. No experiment is run.
    """
    written: dict[str, object] = {}
    if figures is None:
        figure_files.only_with_figures(form, "thalweg report RUN_DIR")
    else:
        written["figures"] = _figures(runs, figures, form or figure_files.DEFAULT)
    if figures is None or out is not None:
        target = out or (runs[0] / NAME if len(runs) == 1 else Path(NAME))
        from thalweg.report import write

        write(runs, target)
        written["report"] = str(target)
    if as_json:
        output.data_json(written)
        return
    for paths in written.values():
        for path in paths if isinstance(paths, list) else [paths]:
            output.data(str(path))


def _figures(runs: list[Path], directory: Path, form: str) -> list[str]:
    from thalweg.report import figures

    files, omitted = figures(runs, directory, form)
    if omitted:
        output.talk(
            f"{omitted} points of the sweep have no figures of their own; the figures over the sweep include them"
        )
    return [str(file) for file in files]
