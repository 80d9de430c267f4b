"""What every layer that starts programs or leaves files needs: none of them outlives thalweg."""

import ctypes
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

PR_SET_PDEATHSIG = 1
"""From linux/prctl.h: a signal for when the parent dies."""


def ends_with_parent() -> Callable[[], None]:
    """Return what a new process does to be asked to end when this one dies, even of a SIGKILL.

    Without it an engine or a compiler would go on, unseen, and hold the folder that it writes.
    """
    library = ctypes.CDLL(None)

    def ask() -> None:
        library.prctl(PR_SET_PDEATHSIG, int(signal.SIGTERM))

    return ask


@contextmanager
def asked_to_end() -> Iterator[None]:
    """Let SIGTERM and SIGHUP do what Ctrl-C does, so that they too leave nothing behind.

    Python hands signals to the main thread only; in other threads this does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
