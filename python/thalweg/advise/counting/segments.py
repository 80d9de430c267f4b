"""Dimensions by which clients and their transfers are divided, and the names of the parts.

Classes of round-trip time and of retransmissions are properties of a destination network, and retransmissions are the
control's alone. With classes of single connections, an algorithm that causes losses would move its own connections to
classes with many losses, and be compared there with connections to clients on lossy paths.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import ibis
from ibis.expr.types import BooleanValue, IntegerValue, Table

from thalweg.advise.question import HOUR_US
from thalweg.errors import ThalwegError
from thalweg.records.schema import UNKNOWN_TEXT
from thalweg.records.sizes import SIZES

UNKNOWN_CLASS = -1

RTT_EDGES_US = (10_000, 30_000, 60_000, 100_000, 200_000)
"""Upper ends for a city, a country, a continent, an ocean and the other side of the world."""

LOSS_EDGES = (10, 50, 150, 500)
"""Per 10,000 segments: 0.1 % is the limit of a network's loss in ITU-T Y.1541; above 1/64 bpftune selects BBR."""
LOSS_SCALE = 10_000

MIN_SEGMENTS = 500
"""Minimum number of segments for a retransmission ratio; with fewer, one loss would be more than 0.2 %."""

MISSED = 0.01
"""Probability that a network of the minimum number of samples has none of the control."""

RTT_TITLES = ("below 10 ms", "10 to 30 ms", "30 to 60 ms", "60 to 100 ms", "100 to 200 ms", "200 ms and more")
LOSS_TITLES = ("below 0.1 %", "0.1 to 0.5 %", "0.5 to 1.5 %", "1.5 to 5 %", "5 % and more")

MAP = ("rtt", "retransmits")
"""Dimensions of the map, which is part of an answer whatever the question."""

Of = Literal["network", "table", "transfer", "records"]

PartValue = str | int | None
"""Value of a part in one dimension: a text, or the number of a class (`UNKNOWN_CLASS` if unknown)."""
PartValues = tuple[PartValue, ...]


@dataclass(frozen=True)
class Dimension:
    """A dimension that divides clients or transfers."""

    name: str
    title: str
    of: Of
    """Its subject: a network as observed in the records, a network of the user's table, a transfer, or a column."""
    titles: tuple[str, ...] = ()
    """Titles of numbered classes."""

    def text(self, value: PartValue) -> str:
        """Return the name of a value."""
        if not self.titles:
            return UNKNOWN_TEXT if value is None else str(value)
        return self.titles[value] if isinstance(value, int) and value >= 0 else UNKNOWN_TEXT


KNOWN = {
    each.name: each
    for each in (
        Dimension("prefix", "network", "network"),
        Dimension("rtt", "RTT", "network", RTT_TITLES),
        Dimension("retransmits", "retransmitted", "network", LOSS_TITLES),
        Dimension("as", "AS", "table"),
        Dimension("country", "country", "table"),
        Dimension("size", "size", "transfer", tuple(size.title for size in SIZES)),
        Dimension("hour", "hour (UTC)", "transfer", tuple(f"{hour:02}" for hour in range(24))),
    )
}


def dimensions(names: Sequence[str], columns: set[str], of_table: set[str]) -> list[Dimension]:
    """Resolve the names, given the columns of the records and of the user's table of networks.

    Raises:
        ThalwegError: If a name is unknown in these records and this table.
    """
    return [_dimension(name, columns, of_table) for name in names]


def rtt_class(sum_us: IntegerValue, n: IntegerValue) -> IntegerValue:
    """Return the class of a mean round-trip time."""
    return _class(sum_us, [n * edge for edge in RTT_EDGES_US], n > 0)


def are_enough(samples: IntegerValue, segments: IntegerValue, share_of_control: float) -> BooleanValue:
    """Return whether networks have enough samples and segments, of both arms together, for the control's ratio.

    If the result depended on the assignment, small networks would have a class only if their samples belong to the
    control, and the arms would cover different networks.
    """
    if not 0 < share_of_control < 1:
        return ibis.literal(share_of_control >= 1) & (segments >= MIN_SEGMENTS)
    min_samples = math.ceil(math.log(MISSED) / math.log1p(-share_of_control))
    return (samples >= min_samples) & (segments.cast("float64") * share_of_control >= MIN_SEGMENTS)


def loss_class(retransmits: IntegerValue, segments: IntegerValue, is_known: BooleanValue) -> IntegerValue:
    """Return the class of a retransmission ratio."""
    return _class(retransmits * LOSS_SCALE, [segments * edge for edge in LOSS_EDGES], is_known & (segments > 0))


def size_class(size_bytes: IntegerValue) -> IntegerValue:
    """Return the class of a size."""
    return _class(size_bytes, [ibis.literal(size.least_bytes) for size in SIZES[1:]], size_bytes.notnull())


def of_transfer(rows: Table, dimensions: Sequence[Dimension]) -> dict[str, IntegerValue]:
    """Return the requested classes that are properties of the single transfer, numbered from 0."""
    classes = {
        "hour": lambda: hour_of_day(rows["began_us"]),
        "size": lambda: size_class(rows["size_bytes"]) - UNKNOWN_CLASS,
    }
    return {dimension.name: classes[dimension.name]() for dimension in dimensions if dimension.of == "transfer"}


def hour_of_day(time_us: IntegerValue) -> IntegerValue:
    """Return the hour of the day in UTC."""
    return (whole(time_us, HOUR_US) % 24).cast("int8")


def whole(value: IntegerValue, unit: int) -> IntegerValue:
    """Divide and discard the remainder; exact below 2^53."""
    return (value / unit).floor().cast("int64")


def _class(value: IntegerValue, edges: Sequence[IntegerValue], is_known: BooleanValue) -> IntegerValue:
    number = sum(((value >= edge).cast("int8") for edge in edges), start=ibis.literal(0, type="int8"))
    return ibis.ifelse(is_known.fill_null(False), number.cast("int8"), UNKNOWN_CLASS).cast("int8")


def _dimension(name: str, columns: set[str], of_table: set[str]) -> Dimension:
    dimension = KNOWN.get(name)
    if dimension and (dimension.of != "table" or name in of_table):
        return dimension
    if name in of_table:
        return Dimension(name, name.replace("_", " "), "table")
    if name in columns:
        return Dimension(name, name.replace("_", " "), "records")
    if dimension and of_table:
        listed = ", ".join(f"`{column}`" for column in sorted(of_table))
        raise ThalwegError(
            "no-table-column",
            f"the table of --prefixes has no column `{name}`, only {listed}",
            place="--prefixes",
            expected=f"CSV with the columns network and {name}" + (", or pfx2as of RouteViews" if name == "as" else ""),
            hint=f"--by {name} --prefixes FILE.csv, such as MaxMind's; or --by {min(of_table)} with this table",
        )
    if dimension:
        raise ThalwegError(
            "no-table",
            f"`{name}` is not a column of the records, but of a table of networks",
            place="--by",
            expected="--prefixes FILE, or a name that needs no table, such as prefix or pop",
            hint=f"--by {name} --prefixes FILE, a pfx2as file of RouteViews or a CSV such as MaxMind's",
        )
    raise ThalwegError(
        "no-segment",
        f"the records have no column `{name}` to split the traffic by",
        place="--by",
        expected=", ".join([*KNOWN, "or a column of the records or of --prefixes, such as cgroup or machine"]),
    )
