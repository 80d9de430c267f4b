"""Formats numbers with a unit and a precision that suit all values shown together."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from thalweg.report.text.labels import NOTHING

NARROW = "\N{NARROW NO-BREAK SPACE}"

# Displayed units by unit of a measure: name, and size in the measure's unit; largest first.
_SCALES: dict[str, Sequence[tuple[str, float]]] = {
    "bit/s": (("Gbit/s", 1e9), ("Mbit/s", 1e6), ("kbit/s", 1e3), ("bit/s", 1)),
    "s": (("s", 1), ("ms", 1e-3), ("µs", 1e-6)),
    "B": (("GB", 1e9), ("MB", 1e6), ("kB", 1e3), ("B", 1)),
    "ratio": (("%", 0.01),),
    "count": (("", 1),),
    "1/s": (("1/s", 1),),
}


NOISE = 1e-9
"""Maximum half-width of an interval, relative to the median value, that is attributed to rounding errors."""


@dataclass(frozen=True)
class Scale:
    """Unit and precision of a measure's values in a report."""

    unit: str
    """Displayed unit, which is written once, in the heading."""
    size: float
    """Size of the displayed unit in the measure's own unit."""
    decimals: int

    def text(self, value: float | None) -> str:
        """Return a value without its unit.

        >>> Scale("Mbit/s", 1e6, 1).text(34_280_000.0), Scale("%", 0.01, 0).text(0.00443)
        ('34.3', '0.44')
        """
        return NOTHING if value is None else _fixed(value / self.size, self.decimals)

    def with_unit(self, value: float | None) -> str:
        """Return a value with its unit."""
        return self.text(value) + (NARROW + self.unit if self.unit and value is not None else "")

    def half_width(self, low: float | None, high: float | None) -> str | None:
        """Return half the width of an interval; None without an interval."""
        if low is None or high is None:
            return None
        return self.text((high - low) / 2)


def _fixed(number: float, decimals: int) -> str:
    """Return a number with fixed decimals, or with two significant digits if it would become zero."""
    text = f"{number:.{decimals}f}"
    finer = f"{number:.2g}"
    return finer if number and not float(text) and "e" not in finer else text


def scale_for(unit: str, means: Iterable[float], half_widths: Iterable[float] = ()) -> Scale:
    """Choose the largest unit in which the median of the nonzero values is at least 1, and at most four decimals.

    The median half-width has two significant digits; without intervals, the median value has at least three.

    >>> scale_for("bit/s", [30e6, 34e6], [0.4e6, 0.2e6])
    Scale(unit='Mbit/s', size=1000000.0, decimals=2)
    >>> scale_for("ratio", [0.95])
    Scale(unit='%', size=0.01, decimals=1)
    """
    values = sorted(abs(mean) for mean in means if mean)
    typical = values[len(values) // 2] if values else 1.0
    scales = _SCALES[unit]
    name, size = next((entry for entry in scales if typical >= entry[1]), scales[-1])
    widths = sorted(half for half in half_widths if half > typical * NOISE)
    reference, digits = (widths[len(widths) // 2], 2) if widths else (typical, 3)
    return Scale(name, size, min(4, max(0, digits - 1 - math.floor(math.log10(reference / size)))))


def amount(value: float, unit: str) -> str:
    """Return one value in the largest unit that it reaches, with at most four significant digits.

    >>> amount(40e6, "bit/s"), amount(0.045, "s"), amount(0, "s")
    ('40\\u202fMbit/s', '45\\u202fms', '0\\u202fs')
    """
    scales = _SCALES[unit]
    base = next(entry for entry in scales if entry[1] == 1)
    name, size = next((entry for entry in scales if abs(value) >= entry[1]), scales[-1]) if value else base
    return f"{value / size:.4g}{NARROW}{name}"


def per_cent(ratio: float) -> str:
    """Return a ratio as a percentage.

    >>> per_cent(0.0125)
    '1.25\\u202f%'
    """
    return f"{ratio * 100:.3g}{NARROW}%"


def rounded(value: float | None, digits: int = 5) -> float | None:
    """Round to significant digits, for data that is only drawn."""
    return None if value is None else float(f"{value:.{digits}g}")
