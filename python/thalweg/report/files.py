"""Atomic writing of files."""

import os
from pathlib import Path

from thalweg.errors import Exit, ThalwegError
from thalweg.scratch import Scratch


def put(output: Path, content: str, subject: str, hint: str, *, makes_folders: bool = True) -> None:
    """Write a text atomically, as `replace` does.

    Raises:
        ThalwegError: If it cannot be written; `subject` and `hint` are parts of the error.
    """
    try:
        replace(output, content.encode(), makes_folders=makes_folders)
    except OSError as error:
        raise cannot_write(output, subject, error.strerror or str(error), hint) from error


def cannot_write(output: Path, subject: str, why: str, hint: str) -> ThalwegError:
    """Return the error for a file that cannot be written, with the reason and a hint."""
    return ThalwegError(
        "cannot-write",
        f"{subject} cannot be written to `{output}`: {why}",
        place=str(output),
        hint=hint,
        exit_code=Exit.CANNOT_WRITE,
    )


def replace(output: Path, content: bytes, *, makes_folders: bool = True) -> None:
    """Write a file atomically, and create its folder if requested; a pipe or a device is written in place.

    Raises:
        OSError: If it cannot be written.
    """
    if makes_folders:
        output.parent.mkdir(parents=True, exist_ok=True)
    if output.exists() and not output.is_file():
        with output.open("wb") as through:
            through.write(content)
    else:
        _replace(output.resolve(), content)


def _replace(output: Path, content: bytes) -> None:
    with Scratch(f".{output.name}.", output.parent) as folder:
        temporary = folder / output.name
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(output)
