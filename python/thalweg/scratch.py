"""Temporary folders that are removed at the end, also after errors and signals.

A folder is removed at once after an exception, and after signals that raise one (`processes.asked_to_end`). A folder
that remains, for example after SIGKILL, is removed when the next one with that prefix is created in the same parent
folder. Folders in use are locked; the kernel releases the lock when the process exits.
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
"""Random characters that Python inserts between prefix and suffix."""


class Scratch:
    """A private temporary folder, in the default or another parent folder."""

    def __init__(self, prefix: str, parent: Path | None = None) -> None:
        """Create the folder, and remove this user's unlocked ones with the same prefix.

        Raises:
            OSError: If the parent folder cannot be read, or the folder cannot be created.
        """
        parent = parent or Path(tempfile.gettempdir())
        _sweep(parent, prefix)
        self.folder, self._lock = _create(parent, prefix)

    def __enter__(self) -> Path:
        return self.folder

    def __exit__(self, *error: object) -> None:
        self.remove()

    def remove(self) -> None:
        """Remove the folder."""
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
            # Another process has locked or removed the folder, because it was not locked yet.
            continue
        except OSError:
            # The file system does not support locks, so stale folders are not removed.
            return folder, None


def _sweep(parent: Path, prefix: str) -> None:
    name = re.compile(re.escape(prefix) + LETTERS + re.escape(SUFFIX))
    for folder in parent.iterdir():
        if name.fullmatch(folder.name):
            # A folder in use is locked, which raises an OSError as well.
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

    Raises:
        BlockingIOError: If another process has locked it.
        FileNotFoundError: If it was removed.
        OSError: If it is not a folder, or locks are not supported.
    """
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # The folder may have been removed before it was locked.
        folder.lstat()
    except BaseException:
        os.close(lock)
        raise
    return lock
