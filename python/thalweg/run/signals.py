"""Handling of SIGINT and SIGTERM while an engine runs.

The first one is passed on once: the engine stops what is running, keeps what is finished, and ends. The second one ends
the engine at once, and so does a deadline; nothing that is finished is lost by that either.
"""

import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

END_WITHIN_S = 15.0
"""How long an engine may take to end once it is asked to. It takes some seconds at most, unless it is stopped."""

PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass
class Interrupt:
    """Whether the user asked to stop."""

    is_asked: bool = False


@contextmanager
def forwarding(engine: subprocess.Popen[bytes], report: Callable[[], None]) -> Iterator[Interrupt]:
    """Pass signals on to the engine while the block runs, and tell of the first one.

    Python hands signals to the main thread only; in other threads this does nothing.
    """
    interrupt = Interrupt()
    if threading.current_thread() is not threading.main_thread():
        yield interrupt
        return

    deadline = threading.Timer(END_WITHIN_S, engine.kill)
    deadline.daemon = True

    def pass_on(number: int, frame: FrameType | None) -> None:
        engine.send_signal(signal.SIGKILL if interrupt.is_asked else signal.SIGINT)
        if not interrupt.is_asked:
            interrupt.is_asked = True
            deadline.start()
            report()

    before = {number: signal.signal(number, pass_on) for number in PASSED_ON}
    try:
        yield interrupt
    finally:
        deadline.cancel()
        for number, handler in before.items():
            signal.signal(number, handler)
