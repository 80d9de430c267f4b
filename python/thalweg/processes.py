"""What every layer that starts programs needs: none of them outlives thalweg."""

import ctypes
import signal
from collections.abc import Callable

PR_SET_PDEATHSIG = 1
"""From linux/prctl.h: a signal for when the parent dies."""


def ends_with_parent() -> Callable[[], None]:
    """Give what a new process does to be asked to end when this one dies, even of a SIGKILL.

    Without it an engine or a compiler would go on, unseen, and hold the folder that it writes.
    """
    library = ctypes.CDLL(None)

    def ask() -> None:
        library.prctl(PR_SET_PDEATHSIG, int(signal.SIGTERM))

    return ask
