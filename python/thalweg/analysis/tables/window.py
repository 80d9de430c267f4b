"""A time window within an experiment."""

import math
from dataclasses import dataclass

from thalweg.analysis.tables.flows import MICROSECONDS
from thalweg.errors import ThalwegError


@dataclass(frozen=True)
class Window:
    """An interval between two moments, counted from the start of the experiment."""

    from_us: float
    to_us: float

    @classmethod
    def of(cls, window: tuple[float, float] | None) -> "Window":
        """Create a window from two times in seconds; None is the entire experiment.

        Raises:
            ThalwegError: If the window is empty, or begins before the experiment.
        """
        if window is None:
            return WHOLE
        from_s, to_s = window
        if not 0 <= from_s < to_s:
            raise ThalwegError(
                "bad-window",
                f"the window from {from_s:g} s to {to_s:g} s has no length",
                found=f"from {from_s:g} s to {to_s:g} s",
                expected="two times since the start of the experiment, the earlier one first",
                hint='window = ["5s", "15s"]',
            )
        return cls(from_s * MICROSECONDS, to_s * MICROSECONDS)


WHOLE = Window(0.0, math.inf)
