"""Handling of SIGINT, SIGTERM and SIGHUP while an engine runs.

The first signal is forwarded as SIGINT: the engine stops running experiments, keeps finished ones, and exits. A second
signal or a timeout kills the engine.
"""

import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

END_WITHIN_S = 15.0

PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass
class Interrupt:
    """Whether the user requested a stop."""

    is_asked: bool = False


@contextmanager
def forwarding(engine: subprocess.Popen[bytes], report: Callable[[], None]) -> Iterator[Interrupt]:
    """Forward signals to the engine while the block runs, and report the first one. Ignored signals stay ignored, as
    with nohup.

    Python delivers signals only to the main thread; in other threads this does nothing.
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

    heeded = [number for number in PASSED_ON if signal.getsignal(number) != signal.SIG_IGN]
    before = {number: signal.signal(number, pass_on) for number in heeded}
    try:
        yield interrupt
    finally:
        deadline.cancel()
        for number, handler in before.items():
            signal.signal(number, handler)
