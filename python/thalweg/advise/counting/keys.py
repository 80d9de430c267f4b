"""Packs several classes into one small integer, by which an engine groups faster than by several columns.

A *cell* packs round-trip time, retransmissions, metric, arm and group of clusters; a *bin* packs the class of a size
and the bucket of a value.
"""

from collections.abc import Mapping

import ibis
import polars as pl
from ibis.expr.types import IntegerValue

from thalweg.advise.counting.arms import GROUPS, HOURS_APART
from thalweg.advise.counting.buckets import LARGEST, PER_OCTAVE
from thalweg.advise.counting.segments import UNKNOWN_CLASS

CLASSES = 8
"""Maximum number of classes of a property, including unknown."""
METRICS = 2
ARMS = 2
BUCKETS = 4096
"""Upper bound of the number of buckets of values."""
assert LARGEST.bit_length() * PER_OCTAVE <= BUCKETS, "every value has a class"

LOTS = 8
"""Number of subsamples of the groups of clusters."""

OF_ARM = METRICS * ARMS
OF_GROUP = OF_ARM * GROUPS
"""Number of cells in one class of destinations."""
BINS = CLASSES * BUCKETS


def cell(
    rtt: IntegerValue, retransmits: IntegerValue, metric: IntegerValue, arm: IntegerValue, group: IntegerValue
) -> IntegerValue:
    """Pack a cell; it is below 2^14, so that it fits into 16 bits."""
    of_place = place(rtt, retransmits) * METRICS + _wide(metric)
    return ((of_place * ARMS + _wide(arm)) * GROUPS + _wide(group)).cast("int16")


def place(rtt: IntegerValue, retransmits: IntegerValue) -> IntegerValue:
    """Pack the round-trip time and retransmission classes of a destination."""
    return (_wide(rtt) - UNKNOWN_CLASS) * CLASSES + (_wide(retransmits) - UNKNOWN_CLASS)


def by_network_hour(cell: IntegerValue, hour: IntegerValue) -> IntegerValue:
    """Move a cell from the group of its network to the group of its network and hour."""
    group = group_of(cell)
    return (_wide(cell) - group + (group + _wide(hour) * HOURS_APART) % GROUPS).cast("int16")


def bin_of(size: IntegerValue, bucket: IntegerValue) -> IntegerValue:
    """Pack the class of a size and the bucket of a value into a bin."""
    return ((_wide(size) - UNKNOWN_CLASS) * BUCKETS + bucket).cast("int16")


def of_value(cell: IntegerValue, bins: IntegerValue) -> IntegerValue:
    """Pack a cell and a bin."""
    return _wide(cell) * BINS + _wide(bins)


def of_bucket(cell: IntegerValue, bins: IntegerValue) -> IntegerValue:
    """Pack metric, arm, group and bucket."""
    return within(cell) * BUCKETS + _wide(bins) % BUCKETS


def within(cell: IntegerValue) -> IntegerValue:
    """Return the metric, arm and group of a cell."""
    return _wide(cell) % OF_GROUP


def arm_of(cell: IntegerValue) -> IntegerValue:
    """Return the class, metric and arm of a cell."""
    return _shifted(cell, GROUPS)


def metric_and_arm(cell: IntegerValue) -> IntegerValue:
    """Return the metric and arm of a cell."""
    return arm_of(cell) % OF_ARM


def lot_of(cell: IntegerValue) -> IntegerValue:
    """Return the class, metric, arm and subsample of a cell."""
    return _shifted(cell, GROUPS // LOTS)


def metric_arm_and_lot(cell: IntegerValue) -> IntegerValue:
    """Return the metric, arm and subsample of a cell."""
    return lot_of(cell) % (OF_ARM * LOTS)


def place_and_group(cell: IntegerValue) -> IntegerValue:
    """Return the class and group of a cell."""
    return place_of(cell) * GROUPS + group_of(cell)


def group_of(cell: IntegerValue) -> IntegerValue:
    """Return the group of a cell."""
    return _wide(cell) % GROUPS


def place_of(cell: IntegerValue) -> IntegerValue:
    """Return the classes of a cell's destinations."""
    return _shifted(cell, OF_GROUP)


def unpacked(counted: pl.DataFrame, key: str, sizes: Mapping[str, int]) -> pl.DataFrame:
    """Unpack a column of keys. `sizes` maps each component to its number of values; the last varies fastest, and the
    first may have size 0: it takes the remainder.

    >>> unpacked(pl.DataFrame({"key": [2 * 64 + 5]}), "key", {"arm": 0, "group": 64}).row(0)
    (2, 5)
    """
    rest = pl.col(key)
    columns: list[pl.Expr] = []
    for name, size in reversed(list(sizes.items())):
        own = rest % size if size else rest
        # Values that fit are stored in 16 bits, because there are millions of rows.
        narrow = pl.Int16 if size else pl.Int64
        columns.append((own + UNKNOWN_CLASS if name in WITH_UNKNOWN else own).cast(narrow).alias(name))
        rest = rest // size if size else rest
    return counted.select(*reversed(columns), pl.exclude(key))


WITH_UNKNOWN = frozenset({"rtt", "retransmits", "size"})
"""Components that may be unknown, which is packed as 0."""

PLACE = {"rtt": 0, "retransmits": CLASSES}
ARM = {"metric": METRICS, "arm": ARMS}
GROUP = {"group": GROUPS}
LOT = {"lot": LOTS}
"""Components of the packed keys, with their sizes."""


def _wide(value: IntegerValue) -> IntegerValue:
    return value.cast("int64")


def _shifted(value: IntegerValue, size: int) -> IntegerValue:
    return _wide(value) >> ibis.literal(size.bit_length() - 1, type="int32")
