"""Assigns the axes of the sweep to the x axis, panels, and selection lists of a chart."""

from collections.abc import Sequence
from dataclasses import dataclass

from thalweg.analysis import Axis

MAX_PANELS = 12

FLOW = "flow"
"""Name of the x axis without a sweep."""


@dataclass(frozen=True)
class Layout:
    """Roles of the axes, as indices of the list of axes."""

    x: int | None
    """Axis on x; None: the flows."""
    panels: list[int]
    chosen: list[int]


def layout(axes: Sequence[Axis], runs: int) -> Layout:
    """Assign the axes; x is the axis with the most values, among the ordered ones if there are any.

    >>> cc, buffer = Axis("flow.a.cc", ["bbr", "cubic"], False), Axis("path.buffer", ["1bdp", "2bdp"], True)
    >>> layout([cc, buffer], 1)
    Layout(x=1, panels=[0], chosen=[])
    >>> layout([], 1)
    Layout(x=None, panels=[], chosen=[])
    """
    if not axes:
        return Layout(None, [], [])
    x = max(range(len(axes)), key=lambda i: (axes[i].is_ordered, len(axes[i].values), i))
    # Unordered axes and those with few values first: they become panels, up to the maximum; later ones become lists.
    rest = sorted((i for i in range(len(axes)) if i != x), key=lambda i: (axes[i].is_ordered, len(axes[i].values), i))
    panels: list[int] = []
    count = runs
    for i in rest:
        if count * len(axes[i].values) > MAX_PANELS:
            break
        panels.append(i)
        count *= len(axes[i].values)
    return Layout(x, sorted(panels), sorted(set(rest) - set(panels)))
