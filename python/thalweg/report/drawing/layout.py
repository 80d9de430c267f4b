"""Which axis of the sweep a chart lays along x, which become panels, and which the reader chooses."""

from collections.abc import Sequence
from dataclasses import dataclass

from thalweg.analysis import Axis

MAX_PANELS = 12
"""Maximum number of panels; above it, the reader selects axes until at most this many are left."""

FLOW = "flow"
"""Axis along x without a sweep."""


@dataclass(frozen=True)
class Layout:
    """Roles of the axes, by their place in the list of axes."""

    x: int | None
    """None: the flows are along x."""
    panels: list[int]
    chosen: list[int]


def layout(axes: Sequence[Axis], runs: int) -> Layout:
    """Lay out the axes: along x lies the ordered one with the most values, or else the one with the most values.

    >>> cc, buffer = Axis("flow.a.cc", ["bbr", "cubic"], False), Axis("path.buffer", ["1bdp", "2bdp"], True)
    >>> layout([cc, buffer], 1)
    Layout(x=1, panels=[0], chosen=[])
    >>> layout([], 1)
    Layout(x=None, panels=[], chosen=[])
    """
    if not axes:
        return Layout(None, [], [])
    x = max(range(len(axes)), key=lambda i: (axes[i].is_ordered, len(axes[i].values), i))
    # Few values first: a choice among many values is a better use of a list than of panels.
    rest = sorted((i for i in range(len(axes)) if i != x), key=lambda i: (axes[i].is_ordered, len(axes[i].values), i))
    panels: list[int] = []
    count = runs
    for i in rest:
        if count * len(axes[i].values) > MAX_PANELS:
            break
        panels.append(i)
        count *= len(axes[i].values)
    return Layout(x, sorted(panels), sorted(set(rest) - set(panels)))
