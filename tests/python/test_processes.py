"""Signals that ask thalweg to end."""

import os
import signal
import subprocess
import sys
import time

import pytest
from thalweg.processes import asked_to_end


class Signalled:
    """An object in whose finalizer a signal arrives."""

    def __init__(self, number: signal.Signals) -> None:
        self.number = number

    def __del__(self) -> None:
        os.kill(os.getpid(), self.number)
        time.sleep(0)


def test_an_interrupt_that_arrives_during_a_fork_is_not_lost() -> None:
    """Python ignores exceptions in the functions that run around a fork, as those of `logging`."""
    program = """
import os, signal, time
from thalweg.processes import repeating_ignored
os.register_at_fork(after_in_parent=lambda: os.kill(os.getpid(), signal.SIGINT))
with repeating_ignored():
    os.fork() or os._exit(0)
    time.sleep(30)
"""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert done.returncode == -signal.SIGINT, done.stderr
    assert "Exception ignored" not in done.stderr


def wait_with(signalled: Signalled) -> None:
    """Drop the object, and wait at most 30 s."""
    del signalled
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        time.sleep(0.01)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
def test_a_signal_that_arrives_in_a_finalizer_is_not_lost(number: signal.Signals) -> None:
    with pytest.raises(KeyboardInterrupt), asked_to_end():
        wait_with(Signalled(number))


def test_an_ignored_signal_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with asked_to_end():
            os.kill(os.getpid(), signal.SIGHUP)
            time.sleep(0.1)
    finally:
        signal.signal(signal.SIGHUP, before)
