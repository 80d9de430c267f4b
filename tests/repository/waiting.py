"""Waits for conditions, not for fixed times."""

import time
from collections.abc import Callable

PATIENCE = 60.0
"""Timeout of a wait, in seconds."""


def wait_until(is_so: Callable[[], bool]) -> None:
    """Return as soon as the condition holds; fail if it does not within `PATIENCE`."""
    deadline = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.02)
