"""The evidence behind the numbers of a run."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import polars as pl

from thalweg.analysis.tables.status import Status, status
from thalweg.results import Run

Extent = Literal["all", "part", "none"]


@dataclass(frozen=True)
class Evidence:
    """Extent of the usable experiments, and a caution about the others."""

    extent: Extent
    caution: str | None = None
    """None if all experiments can be used."""


@lru_cache(maxsize=32)
def evidence(run: Run) -> Evidence:
    """Return the evidence of a run.

    The result is cached, because it reads the tables `flows`.
    """
    extent = of_status(status(run))
    if extent.extent == "none" or run.collect(run.scan("flows", run.trustworthy_ids).select(pl.len())).item():
        return extent
    return Evidence("none", "no connection was opened in any experiment, so there is nothing to measure")


def of_status(state: Status) -> Evidence:
    """Return the evidence from the state of the experiments alone.

    >>> of_status(Status(3, 3, [], []))
    Evidence(extent='all', caution=None)
    >>> of_status(Status(3, 1, [], []))
    Evidence(extent='part', caution='2 of 3 experiments are not finished: the numbers include only the other 1')
    """
    marked = len({mark.id for mark in state.untrustworthy})
    needed = state.expected - state.not_needed
    unusable = [
        f"{count} of {needed} experiment{'s' if needed > 1 else ''} {problem}"
        for count, problem in (
            (marked, f"{are(marked)} untrustworthy, and left out of the numbers"),
            (len(state.failures), "failed"),
            (state.missing, f"{are(state.missing)} not finished"),
        )
        if count
    ]
    if not unusable:
        return Evidence("all")
    usable = state.finished - marked
    if usable:
        return Evidence("part", f"{'; '.join(unusable)}: the numbers include only the other {usable}")
    return Evidence("none", f"no experiment can be used: {'; '.join(unusable)}")


def are(count: int) -> str:
    """Return "is" or "are" for a number of things."""
    return "is" if count == 1 else "are"
