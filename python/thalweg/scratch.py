"""Temporary folders that are removed at the end, also after errors and signals.

An exception, Ctrl-C or SIGTERM removes such a folder at once. A folder that remains after SIGKILL, or after a second
signal during its removal, is removed when the next folder with that prefix is made. A lock, which the kernel releases
when the process ends, marks folders that are in use.
"""

import fcntl
import os
import re
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

SUFFIX = ".part"
LETTERS = "[a-z0-9_]{8}"
"""Characters that Python puts between prefix and suffix."""


class Scratch:
    """A private folder, in the folder for temporary files or in another one."""

    def __init__(self, prefix: str, parent: Path | None = None) -> None:
        """Make the folder, and remove those with the same prefix that are no longer locked.

        Raises `OSError` if it cannot be created.
        """
        parent = parent or Path(tempfile.gettempdir())
        _sweep(parent, prefix)
        self.folder, self._lock = _create(parent, prefix)

    def __enter__(self) -> Path:
        """Return its path."""
        return self.folder

    def __exit__(self, *error: object) -> None:
        """Remove it."""
        self.remove()

    def remove(self) -> None:
        """Remove it."""
        shutil.rmtree(self.folder, ignore_errors=True)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def _create(parent: Path, prefix: str) -> tuple[Path, int | None]:
    while True:
        folder = Path(tempfile.mkdtemp(dir=parent, prefix=prefix, suffix=SUFFIX))
        try:
            return folder, _locked(folder)
        except (BlockingIOError, FileNotFoundError):
            # Another process removed the folder before it was locked.
            continue
        except OSError:
            # On a file system without locks, stale folders stay.
            return folder, None


def _sweep(parent: Path, prefix: str) -> None:
    name = re.compile(re.escape(prefix) + LETTERS + re.escape(SUFFIX))
    for folder in parent.iterdir():
        if name.fullmatch(folder.name):
            # Folders in use are locked, which is an error too.
            with suppress(OSError):
                _remove_if_free(folder)


def _remove_if_free(folder: Path) -> None:
    if folder.lstat().st_uid != os.getuid():
        return
    lock = _locked(folder)
    try:
        shutil.rmtree(folder)
    finally:
        os.close(lock)


def _locked(folder: Path) -> int:
    """Lock a folder.

    Raises `BlockingIOError` if another process holds it, `FileNotFoundError` if it was removed.
    """
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # It may have been removed before it was locked.
        folder.lstat()
    except BaseException:
        os.close(lock)
        raise
    return lock
