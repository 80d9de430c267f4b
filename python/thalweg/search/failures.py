"""Failures that a fuzzer searches for: a condition on a measure, over the entire experiment or in a time window.

A failure is written like a constraint, with optional times: `utilisation <= 20% for 5s after 2s`. With `for`, the
measure must satisfy the condition in at least one window of that length; windows overlap by at least half. With
`after`, earlier times are ignored.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from thalweg import analysis
from thalweg.analysis import MEASURES
from thalweg.checks import HARM, TermError
from thalweg.results import open_run
from thalweg.scenario.text import quantities
from thalweg.scenario.text.quantities import QuantityError
from thalweg.search.terms import Constraint

_TIMES = re.compile(r"(.*?)(?:\s+for\s+(\S+))?(?:\s+after\s+(\S+))?\s*")

NANOS = 10**9


@dataclass(frozen=True)
class Failure:
    """Definition of a failure."""

    name: str
    bound: Constraint
    window_s: float | None
    """Length of the window; None: until the end."""
    after_s: float = 0.0
    """Start of the evaluation; earlier times are ignored."""

    @classmethod
    def parse(cls, name: str, text: str, flows: Sequence[str]) -> "Failure":
        """Parse `measure(flow) <op> number`, optionally with `for TIME`, `after TIME`, or both.

        Raises:
            TermError: If the text has any other form.

        >>> found = Failure.parse("stall", "utilisation <= 20% for 5s after 1s", [])
        >>> found.bound.bound, found.window_s, found.after_s
        (0.2, 5.0, 1.0)
        """
        match = _TIMES.fullmatch(text)
        assert match, "it matches every text"
        window_s, after_s = (_seconds(group) for group in match.groups()[1:])
        bound = Constraint.parse(match[1], flows)
        if bound.term.measure == HARM:
            raise TermError(
                "harm requires separate runs with the flow alone", "a measure of one run", "share(FLOW) <= 0.05"
            )
        if (window_s or after_s) and not MEASURES[bound.term.measure].in_window:
            expected = "a failure without `for` and `after`"
            raise TermError(f"`{bound.term.measure}` cannot be measured within a time window", expected)
        return cls(name, bound, window_s, after_s or 0.0)

    @property
    def text(self) -> str:
        """The failure in the notation of users."""
        duration = f" for {self.window_s:g}s" if self.window_s else ""
        return f"{self.bound.text}{duration}" + (f" after {self.after_s:g}s" if self.after_s else "")

    def scores(self, directory: Path, duration_s: float, repetitions: int) -> dict[int, tuple[float, float]]:
        """Evaluate a run directory of one point.

        Returns:
            By repetition, the score and the measure's value in the window that fails most. The score is the distance
            by which the value satisfies the condition, as a fraction of the bound; at 0 or above the repetition fails.
            Repetitions without a value are missing.
        """
        run = open_run(directory)
        scores: dict[int, tuple[float, float]] = {}
        for window in windows(duration_s, self.window_s, self.after_s):
            term = self.bound.term
            frame = analysis.repetitions(run, window, measures={term.measure})
            rows = frame.filter(pl.col("flow").eq_missing(pl.lit(term.flow, pl.String))).drop_nulls("value")
            for repetition, value in rows.select("repetition", "value").iter_rows():
                score = -self.bound.excess(value)
                if repetition < repetitions and (repetition not in scores or score > scores[repetition][0]):
                    scores[repetition] = score, value
        return scores


def windows(duration_s: float, window_s: float | None, after_s: float = 0.0) -> list[tuple[float, float] | None]:
    """Return the windows of an experiment; None: the entire experiment.

    >>> windows(4.0, 2.0), windows(4.0, None), windows(4.0, None, 1.0)
    ([(0.0, 2.0), (1.0, 3.0), (2.0, 4.0)], [None], [(1.0, 4.0)])
    >>> windows(5.0, 4.0)
    [(0.0, 4.0), (1.0, 5.0)]
    """
    if window_s is None:
        return [(after_s, duration_s)] if after_s else [None]
    every_s = window_s / 2
    last_s = max(after_s, duration_s - window_s)
    starts_s = [after_s + number * every_s for number in range(int((last_s - after_s) / every_s) + 1)]
    if starts_s[-1] < last_s:
        starts_s.append(last_s)
    return [(start_s, start_s + window_s) for start_s in starts_s]


def _seconds(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        if seconds := quantities.time(text) / NANOS:
            return seconds
    except QuantityError:
        pass
    raise TermError(f"`{text}` is not a time", "a time, such as 5s")


def described(failures: Sequence[Failure]) -> Mapping[str, str]:
    """Return the texts of the failures, by name."""
    return {failure.name: failure.text for failure in failures}
