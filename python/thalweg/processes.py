"""Process handling for layers that start programs or create files, so that neither outlives thalweg."""

import ctypes
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

PR_SET_PDEATHSIG = 1
"""Option of prctl(2), from linux/prctl.h, that requests a signal when the parent process dies."""


def ends_with_parent() -> Callable[[], None]:
    """Return a function for new processes that requests SIGTERM when this process dies, even from SIGKILL.

    Without it an engine or a compiler would continue in the background and keep its folder locked.
    """
    library = ctypes.CDLL(None)

    def ask() -> None:
        library.prctl(PR_SET_PDEATHSIG, int(signal.SIGTERM))

    return ask


@contextmanager
def asked_to_end() -> Iterator[None]:
    """Handle SIGTERM and SIGHUP like Ctrl-C, so that they also clean up.

    Python delivers signals only to the main thread; in other threads this does nothing.
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
