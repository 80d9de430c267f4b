"""Narrow buckets of positive integers: distributions are stored as counts per bucket, which add up over parts.

Buckets are computed with integer arithmetic, except for a logarithm that selects only the octave, because logarithms of
engines differ. Between two powers of two there are 96 buckets: 64 of equal width in the lower half and 32 in the upper
one, so that none is wider than 1/96 of its smallest value. 96 equal widths would need a division per value.
"""

import math

import ibis
import numpy as np
from ibis.expr.types import IntegerValue
from numpy.typing import NDArray

PER_OCTAVE = 96
LARGEST = 2**40 - 1
"""Maximum value; larger values are clamped to it: 12 days in microseconds, 1.1 Tbit/s."""


OCTAVES_OF_E = 1 / math.log(2)
"""Converts a natural logarithm to base 2."""


def of_column(value: IntegerValue) -> IntegerValue:
    """Return the bucket of each number of a column; null and values below 1 count as 1.

    The expression contains no CASE, because DuckDB does not eliminate common subexpressions within CASE.
    """
    value = ibis.least(ibis.greatest(ibis.coalesce(value, 1), 1), LARGEST).cast("int64")
    # Half a unit is added, so that a rounding error of the logarithm cannot change the octave of a value below 2^40.
    octave = ((value.cast("float64") + 0.5).ln() * OCTAVES_OF_E).floor().cast("int32")
    leading = (value * 128) >> octave
    # From 192 on buckets are twice as wide; the smaller of the two expressions applies.
    within = ibis.least(leading - 128, (leading - 64) >> ibis.literal(1, type="int32"))
    return octave.cast("int64") * PER_OCTAVE + within


def of_number(value: int) -> int:
    """Return the bucket of a number.

    >>> of_number(1), of_number(2), of_number(3), of_number(1_000_000)
    (0, 96, 160, 1914)
    """
    value = min(max(value, 1), LARGEST)
    octave = value.bit_length() - 1
    leading = (value * 128) >> octave
    return octave * PER_OCTAVE + min(leading - 128, (leading - 64) // 2)


def lows(numbers: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the lower bound of each bucket.

    >>> lows(np.array([0, 96, 160, 192]))
    array([1., 2., 3., 4.])
    """
    octave, within = np.divmod(numbers, PER_OCTAVE)
    leading = np.where(within < 64, 128 + within, 192 + 2 * (within - 64))
    return np.asarray(leading * np.exp2(octave - 7.0))
