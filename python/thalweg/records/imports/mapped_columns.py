"""The user's map, vectorised over many rows; `mapped` defines the meaning of each text."""

from collections.abc import Mapping, Sequence
from functools import partial

import polars as pl

from thalweg.records.imports.addresses import Addresses
from thalweg.records.imports.items import ImportedRow
from thalweg.records.imports.mapped import (
    ADDRESSES,
    NAMES,
    OF_SERVERS,
    TIMES,
    Mapped,
    Notation,
    is_share,
    mapped_row,
    units,
)
from thalweg.records.imports.vectorized import (
    COUNT,
    DECIMAL,
    DECIMAL_IN_TABLE,
    PLAIN,
    UNIX_S,
    WHY,
    Conversion,
    Ends,
    Instants,
    Matching,
    Values,
    counted,
    rounded,
    scaled,
    without_unknown,
)
from thalweg.records.schema import COLUMNS, SCHEMA

MAPPED = "mapped:"
"""Prefix of a mapped column's name; a mapped column takes precedence over the format's own column."""
NEVER = "[^\x00-\U0010ffff]"
"""Pattern that matches nothing."""


def conversion(mapped: Mapped, notation: Notation, addresses: Addresses) -> Conversion:
    """Return the conversion of a mapped column's field."""
    name = MAPPED + mapped.column

    def definition(text: str) -> ImportedRow:
        row = mapped_row([mapped], lambda _: text, notation)
        return {MAPPED + column: value for column, value in row.items()}

    if mapped.column in ADDRESSES:
        return Ends(name, addresses, definition)
    if mapped.column in TIMES and not mapped.unit:
        unix = "" if notation.time_format else UNIX_S.partition("(")[0] if notation.decimal == "," else UNIX_S
        return Instants(name, lambda text: definition(text).get(name), unix)
    column, unit = COLUMNS[mapped.column], units(mapped.column).get(mapped.unit, 1.0)
    decimal = {".": DECIMAL, ",": "[0-9]{1,15}"}.get(notation.decimal, DECIMAL_IN_TABLE)
    if column.kind == "string":
        names = f"(?:{'|'.join(NAMES[mapped.column])})" if mapped.column in NAMES else PLAIN
        certain = NEVER if mapped.column == "kind" else names
        return Matching(name, pl.String(), certain, without_unknown, definition)
    if column.kind == "bool" or not unit or is_share(mapped.column):
        kinds = {"bool": pl.Boolean(), "f64": pl.Float64()}
        return Matching(name, kinds.get(column.kind, pl.Int64()), NEVER, without_unknown, definition)
    if column.kind == "f64":
        return Matching(name, pl.Float64(), decimal, partial(scaled, unit=unit), definition)
    if mapped.column == "connection" or (unit == 1.0 and not mapped.column.endswith("_us")):
        return Matching(name, pl.Int64(), COUNT, counted, definition)
    return Matching(name, pl.Int64(), decimal, partial(rounded, unit=unit), definition)


def _constant(mapped: Mapped, notation: Notation, addresses: Addresses) -> tuple[Values, bool]:
    """Return the columns of a map with a constant value, as one row, and whether they are certain."""
    columns, is_certain = conversion(mapped, notation, addresses).convert(pl.Series([mapped.value], dtype=pl.String))
    return columns, is_certain is None or is_certain.all()


def has_unread_constants(mapped: Sequence[Mapped], notation: Notation = OF_SERVERS) -> bool:
    """Return whether a constant of the map must be read row by row, because its vectorised conversion is uncertain."""
    return not all(column.source or _constant(column, notation, Addresses())[1] for column in mapped)


def by_field(
    own_columns: Sequence[tuple[str | None, Conversion]],
    mapped: Sequence[Mapped],
    notation: Notation,
    addresses: Addresses,
) -> Mapping[str, Sequence[Conversion]]:
    """Return the conversions of each field, for the format's own columns and for mapped ones."""
    conversions: dict[str, list[Conversion]] = {}
    for field, own_conversion in own_columns:
        if field is not None:
            conversions.setdefault(field, []).append(own_conversion)
    for each_mapped in mapped:
        if each_mapped.source:
            conversions.setdefault(each_mapped.source, []).append(conversion(each_mapped, notation, addresses))
    return conversions


def with_mapped(
    frame: pl.DataFrame, mapped: Sequence[Mapped], notation: Notation, addresses: Addresses
) -> pl.DataFrame:
    """Replace columns by mapped columns where these have a value."""
    for column in mapped:
        name, version = column.column, f"{column.column}_version"
        if not column.source:
            columns, _ = _constant(column, notation, addresses)
            frame = frame.with_columns(pl.lit(value[0], value.dtype).alias(column) for column, value in columns.items())
        mapped_value = pl.col(MAPPED + name)
        frame = present(frame, name, *([version] if name in ADDRESSES else []))
        if name in ADDRESSES:
            of_theirs = pl.col(f"{MAPPED}{version}")
            frame = frame.with_columns(
                pl.when(mapped_value.is_not_null()).then(of_theirs).otherwise(version).alias(version)
            )
        if {name + WHY, MAPPED + name + WHY} & set(frame.columns):
            frame = present(frame, name + WHY, MAPPED + name + WHY)
            why = pl.when(mapped_value.is_not_null()).then(MAPPED + name + WHY).otherwise(name + WHY)
            frame = frame.with_columns(why.cast(pl.String).alias(name + WHY)).drop(MAPPED + name + WHY)
        frame = frame.with_columns(
            pl.coalesce(mapped_value.cast(SCHEMA[name]), pl.col(name).cast(SCHEMA[name])).alias(name)
        )
    return frame


def present(frame: pl.DataFrame, *names: str) -> pl.DataFrame:
    """Add null columns for the missing ones of these names."""
    missing = [name for name in names if name not in frame.columns]
    return frame.with_columns(pl.lit(None, SCHEMA.get(name, pl.Int64())).alias(name) for name in missing)
