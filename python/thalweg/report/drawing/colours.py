"""Colours of congestion controls; those of cubic, bbr and reno are the same in every report.

Most hues are those of Okabe and Ito ("Color Universal Design", 2008), which are distinguishable with any colour vision.
Where necessary, they are darkened for a light page or lightened for a dark one to reach a contrast of 3:1 (WCAG 2.2,
1.4.11).
"""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Colour:
    """A colour for a light page and one for a dark page."""

    light: str
    dark: str


_KNOWN = {
    "cubic": Colour("#0072b2", "#56b4e9"),
    "bbr": Colour("#d55e00", "#ff8b45"),
    "reno": Colour("#00805d", "#2fc79b"),
}
_OTHERS = (
    Colour("#a64d84", "#e28fc0"),
    Colour("#8a6500", "#e6b422"),
    Colour("#5b4bb5", "#a99cf5"),
    Colour("#3d7d8c", "#7fd3e4"),
    Colour("#8f3b2e", "#e59a8c"),
)
PATH = Colour("#5c6773", "#9aa7b5")
"""Colour of everything without a congestion control."""


def colours(ccs: Iterable[str]) -> dict[str, Colour]:
    """Assign a colour to each congestion control; those without a fixed colour share the remaining ones, in
    alphabetical order.

    >>> colours(["bbr", "mine"])["mine"] == colours(["mine", "cubic"])["mine"]
    True
    """
    names = sorted(set(ccs))
    others = [name for name in names if name not in _KNOWN]
    return {name: _KNOWN.get(name) or _OTHERS[others.index(name) % len(_OTHERS)] for name in names}


def line_colours(names: Iterable[str]) -> dict[str, Colour]:
    """Assign colours to the lines of a figure; those of known congestion controls are fixed.

    >>> line_colours(["bbr", "equation"])["bbr"] == colours(["bbr"])["bbr"]
    True
    """
    lines = list(names)
    free = [hue for cc, hue in _KNOWN.items() if cc not in lines] + list(_OTHERS)
    others = [name for name in lines if name not in _KNOWN]
    return {name: _KNOWN.get(name) or free[others.index(name) % len(free)] for name in lines}
