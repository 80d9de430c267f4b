"""Process handling for layers that start programs or create files, so that neither outlives thalweg."""

import ctypes
import os
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


SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

REPEAT_S = 0.05
"""Delay before a signal that arrived in a finalizer is sent again."""


@contextmanager
def asked_to_end() -> Iterator[None]:
    """Handle SIGTERM and SIGHUP like Ctrl-C, so that they also clean up. Ignored signals stay ignored, as with nohup.

    Python delivers signals only to the main thread; in other threads this does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(number: int, frame: FrameType | None) -> None:
        if _is_in_finalizer(frame):  # Python would ignore the exception
            threading.Timer(REPEAT_S, os.kill, (os.getpid(), number)).start()
            return
        raise KeyboardInterrupt

    heeded = [number for number in SIGNALS if signal.getsignal(number) != signal.SIG_IGN]
    before = {number: signal.signal(number, interrupt) for number in heeded}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _is_in_finalizer(frame: FrameType | None) -> bool:
    while frame:
        if frame.f_code.co_name == "__del__":
            return True
        frame = frame.f_back
    return False
