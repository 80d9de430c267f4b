"""A folder for what does not fit into memory: gone at the end, whatever that was.

An exception, Ctrl-C or SIGTERM removes it at once. What a SIGKILL leaves is removed by whoever needs such a folder
next: a lock tells it from one that is in use, and the kernel takes that off with the process.
"""

import fcntl
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

PREFIX = "thalweg-advise-"
LOCK = "lock"


class Scratch:
    """A folder of one's own in the folder for temporary files."""

    def __init__(self) -> None:
        """Make it, and remove those that nobody holds any more."""
        _sweep(Path(tempfile.gettempdir()))
        self.folder = Path(tempfile.mkdtemp(prefix=PREFIX))
        # It gets its name when it is locked: nobody finds it free.
        made = self.folder / f"{LOCK}.part"
        self._lock = os.open(made, os.O_CREAT | os.O_RDWR, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        made.rename(self.folder / LOCK)

    def remove(self) -> None:
        """Remove it."""
        shutil.rmtree(self.folder, ignore_errors=True)
        os.close(self._lock)


def _sweep(parent: Path) -> None:
    for folder in parent.glob(f"{PREFIX}*"):
        # Without a lock its owner has only just made it; what is in use is locked, and raises an error too.
        with suppress(OSError):
            if folder.lstat().st_uid == os.getuid():
                _remove_if_free(folder)


def _remove_if_free(folder: Path) -> None:
    lock = os.open(folder / LOCK, os.O_RDWR | os.O_NOFOLLOW)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder)
    finally:
        os.close(lock)
