"""Figures as files for papers: shared code of the commands that write them."""

from typing import Annotated

from thalweg.cli.options import option
from thalweg.errors import Exit, ThalwegError

Form = Annotated[str | None, option("--format", "FORMAT", "Format of --figures: svg, png or pdf. [default: svg]")]

DEFAULT = "svg"


def only_with_figures(form: str | None, command: str) -> None:
    """Reject a format if no figures were requested; `command` is the name of the command.

    Raises:
        ThalwegError: If a format was given.
    """
    if form is not None:
        raise ThalwegError(
            "no-figures",
            "`--format` applies to figures, and none were requested",
            place="--format",
            hint=f"{command} --figures DIR --format {form}",
            exit_code=Exit.USAGE,
        )
