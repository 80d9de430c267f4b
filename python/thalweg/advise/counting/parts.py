"""Maps parts of the traffic to numbers, by which an engine groups, and back to names."""

from collections.abc import Sequence

import ibis
import polars as pl
from ibis.expr.types import IntegerValue, Table

from thalweg.advise.counting import keys, segments
from thalweg.advise.counting.engines import QueryEngine
from thalweg.advise.counting.places import Places
from thalweg.advise.counting.segments import MAP, UNKNOWN_CLASS, Dimension, PartValues

HOURS = 24
TAIL = HOURS * keys.CLASSES
"""Part numbers per part of destinations: one for each hour and class of sizes of a transfer."""


def are_asked(dimensions: Sequence[Dimension]) -> bool:
    """Return whether any dimension is not one of the map's."""
    return not {dimension.name for dimension in dimensions} <= set(MAP)


def number(rows: Table, dimensions: Sequence[Dimension]) -> IntegerValue:
    """Return the number of each row's part."""
    tail = segments.of_transfer(rows, dimensions)
    return packed(rows["part"], *(tail.get(name, ibis.literal(0)) for name in ("hour", "size")))


def packed(part: IntegerValue, hour: IntegerValue, size: IntegerValue) -> IntegerValue:
    """Pack a part of destinations with the hour and size of a transfer."""
    return (part * HOURS + hour) * keys.CLASSES + size


def type_of(places: Places) -> str:
    """Return the narrowest type that holds the part numbers."""
    return "int32" if places.n_parts * TAIL < 2**31 else "int64"


def number_of_map(cell: IntegerValue, dimensions: Sequence[Dimension]) -> IntegerValue:
    """Return the number of a sample's part if the dimensions are one or both of the map."""
    return of_place(keys.place_of(cell), [dimension.name for dimension in dimensions])


def of_place(place: IntegerValue, names: Sequence[str]) -> IntegerValue:
    """Return the packed classes in the named dimensions, with 0 for a dimension that is not named."""
    retransmits = place % keys.CLASSES
    return place if set(names) == set(MAP) else place - retransmits if "rtt" in names else retransmits


def named(
    engine: QueryEngine, places: Places, numbers: pl.Series, dimensions: Sequence[Dimension]
) -> dict[int, PartValues]:
    """Return the values of parts in each dimension, by their numbers."""
    requested = pl.DataFrame({"number": numbers}).with_columns(part=pl.col("number") // TAIL)
    if places.parts is not None:
        wanted = engine.put("wanted", requested.select("part").unique())
        values = engine.fetch(places.parts.semi_join(wanted, "part"))
        requested = requested.join(values, on="part", how="left")
    joined = requested.with_columns(
        hour=pl.col("number") // keys.CLASSES % HOURS, size=pl.col("number") % keys.CLASSES + UNKNOWN_CLASS
    )
    columns = [dimension.name if dimension.of == "transfer" else f"by_{dimension.name}" for dimension in dimensions]
    return dict(zip(joined["number"].to_list(), joined.select(columns).rows(), strict=True))


def of_map(numbers: pl.Series, dimensions: Sequence[Dimension]) -> dict[int, PartValues]:
    """Return the values of parts that `number_of_map` numbers, by their numbers."""
    places = keys.unpacked(pl.DataFrame({"key": numbers}), "key", keys.PLACE)
    return dict(zip(numbers.to_list(), places.select(dimension.name for dimension in dimensions).rows(), strict=True))
