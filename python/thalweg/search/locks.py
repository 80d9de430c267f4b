"""File locks between processes; the kernel releases them when a process exits."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


@contextmanager
def exclusive(file: Path) -> Iterator[None]:
    """Hold an exclusive lock on a file, which is created if missing."""
    with _opened(file) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def taken(file: Path) -> IO[bytes] | None:
    """Lock a file until it is closed; None if another process holds the lock."""
    lock = _opened(file)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        return None
    return lock


def _opened(file: Path) -> IO[bytes]:
    file.parent.mkdir(parents=True, exist_ok=True)
    return file.open("ab")
