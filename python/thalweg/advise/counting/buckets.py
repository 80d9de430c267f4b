"""Narrow classes of positive whole numbers, so that distributions are counts, and counts of parts add up to those of
the whole.

A class is computed with whole-number arithmetic, so that every engine assigns a number to the same one. Between two
powers of two there are 96 classes: 64 of equal width in the lower half and 32 in the upper one. So no class is wider
than 1/96 (1.04 %) of its smallest value. 96 equal widths would be equally fine, but take a division per value; true
logarithms would take 67 classes, and differ between engines at the edges.
"""

import math

import ibis
import numpy as np
from ibis.expr.types import IntegerValue
from numpy.typing import NDArray

PER_OCTAVE = 96
LARGEST = 2**40 - 1
"""Larger values are cut to this: 12 days in microseconds, 1.1 Tbit/s."""


OCTAVES_OF_E = 1 / math.log(2)
"""Makes a natural logarithm one to base 2, which Ibis writes as the ratio of two logarithms."""


def of_column(value: IntegerValue) -> IntegerValue:
    """Return the class of each number of a column; values below 1, and empty ones, count as 1.

    There is no CASE in it: DuckDB computes parts that occur twice only once, but not within one.
    """
    value = ibis.least(ibis.greatest(ibis.coalesce(value, 1), 1), LARGEST).cast("int64")
    # Half a unit away from every power of two: no error of a logarithm is large enough to matter below 2^40.
    octave = ((value.cast("float64") + 0.5).ln() * OCTAVES_OF_E).floor().cast("int32")
    leading = (value * 128) >> octave
    # From 192 on classes are twice as wide: the lower of both lines applies.
    within = ibis.least(leading - 128, (leading - 64) >> ibis.literal(1, type="int32"))
    return octave.cast("int64") * PER_OCTAVE + within


def of_number(value: int) -> int:
    """Return the class of a number.

    >>> of_number(1), of_number(2), of_number(3), of_number(1_000_000)
    (0, 96, 160, 1914)
    """
    value = min(max(value, 1), LARGEST)
    octave = value.bit_length() - 1
    leading = (value * 128) >> octave
    return octave * PER_OCTAVE + min(leading - 128, (leading - 64) // 2)


def lows(numbers: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the smallest value of each class; that of the next class is the end of this one.

    >>> lows(np.array([0, 96, 160, 192]))
    array([1., 2., 3., 4.])
    """
    octave, within = np.divmod(numbers, PER_OCTAVE)
    leading = np.where(within < 64, 128 + within, 192 + 2 * (within - 64))
    return np.asarray(leading * np.exp2(octave - 7.0))
