"""Retries of untrustworthy experiments."""

from pathlib import Path
from typing import Annotated

import typer

from thalweg.cli import typed
from thalweg.cli.printing import output
from thalweg.errors import ThalwegError

FLAG = "--retry-untrustworthy"

Retry = Annotated[bool, typer.Option(FLAG, help="Run experiments again that this machine disturbed (untrustworthy).")]


def forget_untrustworthy(directory: Path) -> None:
    """Mark the untrustworthy experiments of a run directory as incomplete, so that the engine runs them again."""
    if not (directory / "run.json").exists():
        return
    from thalweg.results import open_run

    try:
        run = open_run(directory)
    except ThalwegError as error:
        if error.code == "empty-run":
            return
        raise
    ids = {mark.id for mark in run.untrustworthy}
    for id in ids:
        (directory / "flows" / f"{id}.parquet").unlink(missing_ok=True)
    if ids:
        output.talk(f"untrustworthy, and run again: {len(ids)} of {len(run.finished_ids)} finished experiments")


def command() -> str:
    """Return the command that runs untrustworthy experiments again."""
    return typed.again() if FLAG in typed.words() else f"{typed.again()} {FLAG}"
