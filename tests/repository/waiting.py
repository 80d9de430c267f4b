"""Waiting until something is so, rather than for a time."""

import time
from collections.abc import Callable

PATIENCE = 60.0
"""How many seconds anything may take on a busy machine."""


def wait_until(is_so: Callable[[], bool]) -> None:
    """Return once it is so; fail if it never is."""
    deadline = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.02)
