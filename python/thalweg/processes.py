"""Process handling for layers that start programs or create temporary files, so that neither outlives thalweg."""

import ctypes
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

PR_SET_PDEATHSIG = 1
"""Option of prctl(2), from linux/prctl.h, that requests a signal when the parent process dies."""


def ends_with_parent() -> Callable[[], None]:
    """Return a function for new processes that requests SIGTERM when this process dies, even from SIGKILL, or when the
    thread that started them ends.

    Otherwise an engine or a compiler would continue in the background.
    """
    library = ctypes.CDLL(None)

    def ask() -> None:
        library.prctl(PR_SET_PDEATHSIG, int(signal.SIGTERM))

    return ask


SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

REPEAT_S = 0.05
"""Delay before SIGINT is sent again."""


@contextmanager
def repeating_ignored() -> Iterator[None]:
    """Send SIGINT again if Python ignores its `KeyboardInterrupt`.

    Python ignores exceptions in some callbacks, such as finalizers.
    """
    before = sys.unraisablehook

    def repeat(ignored: "sys.UnraisableHookArgs") -> None:
        if issubclass(ignored.exc_type, KeyboardInterrupt):
            timer = threading.Timer(REPEAT_S, os.kill, (os.getpid(), signal.SIGINT))
            timer.daemon = True
            timer.start()
        else:
            before(ignored)

    sys.unraisablehook = repeat
    try:
        yield
    finally:
        sys.unraisablehook = before


@contextmanager
def asked_to_end() -> Iterator[None]:
    """Handle SIGTERM and SIGHUP like Ctrl-C, so that cleanup code runs. Ignored signals stay ignored, as with nohup.

    Python delivers signals only to the main thread; in other threads this does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    heeded = [number for number in SIGNALS if signal.getsignal(number) != signal.SIG_IGN]
    before = {number: signal.signal(number, signal.default_int_handler) for number in heeded}
    try:
        with repeating_ignored():
            yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
