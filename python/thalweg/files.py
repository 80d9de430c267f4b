"""Reads user-supplied files without blocking on a pipe or exhausting memory."""

import os
import stat
from pathlib import Path

from thalweg.errors import ThalwegError

LARGEST_TEXT = 16 * 10**6
"""Maximum size of a scenario, a file of rows or a configuration, in bytes."""


def read_regular(file: Path, limit: int) -> bytes:
    """Return the content of a regular file of at most `limit` bytes; links are followed.

    Raises:
        ThalwegError: If it is a pipe or a device, or larger.
        OSError: If it cannot be read, such as a directory or a socket.
    """
    # Without O_NONBLOCK, opening a pipe waits for its writer.
    descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as opened:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(None, "is a directory", str(file))
        if not stat.S_ISREG(mode):
            raise ThalwegError(
                "not-a-file",
                f"`{file}` is a pipe, a device or a socket",
                place=str(file),
                expected="a regular file",
                hint="save its output to a file, and name that file" if stat.S_ISFIFO(mode) else None,
            )
        content = opened.read(limit + 1)
    if len(content) > limit:
        raise ThalwegError(
            "too-large",
            f"`{file}` is larger than {f'{limit // 10**6} MB' if limit >= 10**6 else f'{limit} bytes'}",
            place=str(file),
            expected=f"at most {limit} bytes",
            hint=f"ls -l '{file}'",
        )
    return content
