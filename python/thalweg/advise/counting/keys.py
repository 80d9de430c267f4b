"""Classes that are counted together, as one small number: an engine groups by one number much faster than by eight.

A *cell* is round-trip time, retransmissions, metric, arm and group of clusters; a *bin* is size and value. Both are
packed here, and unpacked once they are counted.
"""

from collections.abc import Mapping

import ibis
import polars as pl
from ibis.expr.types import IntegerValue

from thalweg.advise.counting.arms import GROUPS, HOURS_APART
from thalweg.advise.counting.buckets import LARGEST, PER_OCTAVE
from thalweg.advise.counting.segments import UNKNOWN_CLASS

CLASSES = 8
"""Number of classes of a property, including the unknown one."""
METRICS = 2
ARMS = 2
BUCKETS = 4096
"""Number of classes of values."""
assert LARGEST.bit_length() * PER_OCTAVE <= BUCKETS, "every value has a class"

LOTS = 8
"""Lots that the groups are in: enough to decide whether an effect occurs in all of them."""

OF_ARM = METRICS * ARMS
OF_GROUP = OF_ARM * GROUPS
"""Cells of one class of destinations."""
BINS = CLASSES * BUCKETS


def cell(
    rtt: IntegerValue, retransmits: IntegerValue, metric: IntegerValue, arm: IntegerValue, group: IntegerValue
) -> IntegerValue:
    """Pack a cell; no component exceeds 2^15."""
    of_place = place(rtt, retransmits) * METRICS + _wide(metric)
    return ((of_place * ARMS + _wide(arm)) * GROUPS + _wide(group)).cast("int16")


def place(rtt: IntegerValue, retransmits: IntegerValue) -> IntegerValue:
    """Pack the classes of a destination."""
    return (_wide(rtt) - UNKNOWN_CLASS) * CLASSES + (_wide(retransmits) - UNKNOWN_CLASS)


def by_network_hour(cell: IntegerValue, hour: IntegerValue) -> IntegerValue:
    """Move a cell from its network's group to that of its network's hour."""
    group = group_of(cell)
    return (_wide(cell) - group + (group + _wide(hour) * HOURS_APART) % GROUPS).cast("int16")


def bin_of(size: IntegerValue, bucket: IntegerValue) -> IntegerValue:
    """Pack the number of a bin into an integer."""
    return ((_wide(size) - UNKNOWN_CLASS) * BUCKETS + bucket).cast("int16")


def of_value(cell: IntegerValue, bins: IntegerValue) -> IntegerValue:
    """Pack both."""
    return _wide(cell) * BINS + _wide(bins)


def of_bucket(cell: IntegerValue, bins: IntegerValue) -> IntegerValue:
    """Pack metric, arm, group and value alone, where another column identifies the part."""
    return within(cell) * BUCKETS + _wide(bins) % BUCKETS


def within(cell: IntegerValue) -> IntegerValue:
    """Keep metric, arm and group of a cell."""
    return _wide(cell) % OF_GROUP


def arm_of(cell: IntegerValue) -> IntegerValue:
    """Keep class, metric and arm of a cell."""
    return _shifted(cell, GROUPS)


def metric_and_arm(cell: IntegerValue) -> IntegerValue:
    """Keep metric and arm of a cell."""
    return arm_of(cell) % OF_ARM


def lot_of(cell: IntegerValue) -> IntegerValue:
    """Keep class, metric, arm and lot of a cell."""
    return _shifted(cell, GROUPS // LOTS)


def metric_arm_and_lot(cell: IntegerValue) -> IntegerValue:
    """Keep metric, arm and lot of a cell."""
    return lot_of(cell) % (OF_ARM * LOTS)


def place_and_group(cell: IntegerValue) -> IntegerValue:
    """Keep class and group of a cell."""
    return place_of(cell) * GROUPS + group_of(cell)


def group_of(cell: IntegerValue) -> IntegerValue:
    """Keep the group of a cell."""
    return _wide(cell) % GROUPS


def place_of(cell: IntegerValue) -> IntegerValue:
    """Keep the classes of a cell's destinations."""
    return _shifted(cell, OF_GROUP)


def unpacked(counted: pl.DataFrame, key: str, sizes: Mapping[str, int]) -> pl.DataFrame:
    """Unpack a packed column of counts: names with the numbers that they have, the last one counting fastest; the
    first has what is left.

    >>> unpacked(pl.DataFrame({"key": [2 * 64 + 5]}), "key", {"arm": 0, "group": 64}).row(0)
    (2, 5)
    """
    rest = pl.col(key)
    columns: list[pl.Expr] = []
    for name, size in reversed(list(sizes.items())):
        own = rest % size if size else rest
        # Millions of rows: numbers that fit into 16 bits are stored in 16 bits.
        narrow = pl.Int16 if size else pl.Int64
        columns.append((own + UNKNOWN_CLASS if name in WITH_UNKNOWN else own).cast(narrow).alias(name))
        rest = rest // size if size else rest
    return counted.select(*reversed(columns), pl.exclude(key))


WITH_UNKNOWN = frozenset({"rtt", "retransmits", "size"})
"""Classes that may be unknown, which is packed as 0."""

PLACE = {"rtt": 0, "retransmits": CLASSES}
ARM = {"metric": METRICS, "arm": ARMS}
GROUP = {"group": GROUPS}
LOT = {"lot": LOTS}
"""Packing of keys."""


def _wide(value: IntegerValue) -> IntegerValue:
    return value.cast("int64")


def _shifted(value: IntegerValue, size: int) -> IntegerValue:
    return _wide(value) >> ibis.literal(size.bit_length() - 1, type="int32")
