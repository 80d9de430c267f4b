"""The user's map: which fields of a source become which columns of records, and their units.

    --map end_us=finished:s --map acked_bytes=size --map fct_us=time:ms

or the same in a file:

    end_us = {from = "finished", unit = "s"}
    acked_bytes = "size"
    fct_us = {from = "time", unit = "ms"}
    cc = {value = "cubic"}
"""

import difflib
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path

from thalweg.errors import Source, ThalwegError
from thalweg.files import LARGEST_TEXT, read_regular
from thalweg.records.imports import times, values
from thalweg.records.imports.addresses import ends, known_form
from thalweg.records.imports.items import Assumed, ImportedRow, ImportedValue, Unknown, Unread
from thalweg.records.schema import COLUMNS

TIMES = ("start_us", "end_us")
"""Columns whose fields may also be dates."""
ADDRESSES = ("local_address", "remote_address")
KEYS = {"from", "unit", "value"}
OWN = ("source", "ip_version")
"""Columns that the user cannot map: the source of a row, and the IP version of its address."""
EXCEL = "excel"
"""Unit of spreadsheet times: days since 1899-12-30."""
EXCEL_EPOCH = 25_569
"""1970-01-01 in spreadsheet days."""
EXCEL_DAYS = (36_526, 80_000)
"""Range of valid spreadsheet days, from 2000-01-01 to the year 2119; as seconds they would be in 1970."""
DAY_MS = 86_400_000
NAMES = {"direction": ("in", "out"), "assignment": ("treated", "held_out", "untouched")}
DOT = re.compile(r"[+-]?[1-9]\d{0,2}\.\d{3}", re.ASCII)
"""A number whose dot may separate thousands or decimals, depending on the country."""


@dataclass(frozen=True)
class Mapped:
    """Mapping of a field or a constant to a column of records."""

    column: str
    source: str = ""
    """Field of the source; empty: the column has a constant value."""
    unit: str = ""
    """Unit of the field; empty: the unit in the column's name, or for times seconds or a date."""
    value: str = ""


@dataclass(frozen=True)
class Notation:
    """A source's notation of numbers and times."""

    decimal: str = ""
    """Decimal mark, `.` or `,`; empty: `.`, and ambiguous numbers are rejected."""
    time_format: str = ""
    """Format of times for `datetime.strptime`; empty: the formats that `times.instant` parses."""
    is_european: bool = False
    """Whether semicolons separate the fields; then commas usually separate decimals, and dots thousands."""


OF_SERVERS = Notation(decimal=".")


def mapped_row(
    mapped: Sequence[Mapped], field: Callable[[str], str | Unknown], notation: Notation | None = None
) -> ImportedRow:
    """Return the mapped columns of a line.

    Args:
        mapped: The map.
        field: Returns the text of a field of the line.
        notation: Notation of numbers and times; by default that of server logs.

    Raises:
        Unread: A value does not fit its column.
    """
    row: ImportedRow = {}
    notation = notation or OF_SERVERS
    names = {column.column for column in mapped}
    for column in mapped:
        text = field(column.source) if column.source else column.value
        if isinstance(text, Unknown):
            row[column.column] = text
            continue
        try:
            columns = list(_columns(column, text.strip(), notation))
        except Unread as why:
            raise Unread(f"{column.column}: {why.reason}", why.found) from None
        # A port that is mapped takes precedence over the port of an address.
        row |= {name: value for name, value in columns if name == column.column or name not in names}
    return row


def _columns(mapped: Mapped, text: str, notation: Notation) -> Iterator[tuple[str, ImportedValue]]:
    """Yield the column of a field, and for an address with a port also the port column.

    Addresses that were already truncated or hashed are unchanged.
    """
    if mapped.column in ADDRESSES:
        row: ImportedRow = {mapped.column: known_form(text)}
        if row[mapped.column] is None and not values.is_unknown(text):
            row = ends(mapped.column.partition("_")[0], text)
        yield from ((name, value) for name, value in row.items() if value is not None)
    elif (value := _value(mapped, text, notation)) is not None:
        yield mapped.column, value


def _value(mapped: Mapped, text: str, notation: Notation) -> ImportedValue:
    """Parse a field as the value of its column, which is not an address; `None` if it is unknown."""
    kind = COLUMNS[mapped.column].kind
    if kind == "string":
        if text not in values.NOTHING and text not in NAMES.get(mapped.column, (text,)):
            raise Unread(f"not one of {', '.join(NAMES[mapped.column])}", f"`{text}`")
        return None if text in values.NOTHING else text
    if values.is_unknown(text):
        return None
    if mapped.column == "connection" and not (text.isdecimal() and text.isascii()):
        return int.from_bytes(blake2b(text.encode(errors="replace"), digest_size=8).digest())
    if kind == "bool":
        return values.truth(text)
    unit = units(mapped.column).get(mapped.unit, 1.0)
    if mapped.column in TIMES and not mapped.unit and notation.time_format:
        return times.formatted(text, notation.time_format)
    text = _number(text, notation, is_integer=kind == "u64" and unit == 1.0)
    if mapped.column in TIMES and not mapped.unit:
        if values.is_number(text) and EXCEL_DAYS[0] <= float(text) < EXCEL_DAYS[1]:
            raise Unread("a number of days, as spreadsheets store dates: its unit is excel", f"`{text}`")
        return times.instant(text)
    if mapped.unit == EXCEL:
        return _of_spreadsheet(text)
    number = values.number(text, unit)
    if number is not None and is_share(mapped.column) and not 0 <= number <= 1:
        raise Unread("a share that is not from 0 to 1", f"`{text}`")
    if kind != "u64" or number is None:
        return number
    if unit == 1.0 and not mapped.column.endswith("_us") and not number.is_integer():
        raise Unread("a fraction in a column of whole numbers", f"`{text}`")
    return values.count(text, unit)


def is_share(column: str) -> bool:
    """Return whether the values of a column are fractions of a whole."""
    return column.endswith("_share")


def _of_spreadsheet(text: str) -> int | None:
    """Parse a spreadsheet time, to the millisecond, which is its precision."""
    days = values.number(text)
    if days is None:
        return None
    if days < EXCEL_EPOCH:
        raise Unread("a time before 1970", f"`{text}`")
    return Assumed(round((days - EXCEL_EPOCH) * DAY_MS) * 1000, times.NO_ZONE)


def _number(text: str, notation: Notation, *, is_integer: bool) -> str:
    """Return a number with a decimal point.

    Raises:
        Unread: If the number is ambiguous.
    """
    if notation.decimal:
        return values.with_point(text, notation.decimal)
    if DOT.fullmatch(text) and (is_integer or notation.is_european):
        raise Unread("a dot that separates either thousands or decimals: see --decimal", f"`{text}`")
    if values.GROUPED.fullmatch(text) and not values.is_number(text):
        raise Unread(f"{values.COMMA}: see --decimal", f"`{text}`")
    return text


def mapping(settings: Sequence[str], file: Path | None) -> list[Mapped]:
    """Parse the map: `COLUMN=FIELD[:UNIT]`, and a TOML file with a key per column; settings take precedence.

    Raises:
        ThalwegError: The file cannot be read, or the map is malformed, repeats a column or has an unknown name.

    >>> mapping(["end_us=finished:s"], None)
    [Mapped(column='end_us', source='finished', unit='s', value='')]
    """
    mapped: dict[str, Mapped] = {} if file is None else {column.column: column for column in _from_file(file)}
    columns = [_from_setting(text) for text in settings]
    repeated = next((name for name, count in Counter(each.column for each in columns).items() if count > 1), None)
    if repeated:
        raise ThalwegError(
            "bad-map",
            f"`{repeated}` is mapped twice",
            place="--map",
            found=" and ".join(f"`{text}`" for text in settings if text.partition("=")[0] == repeated),
            expected="one field for each column",
            hint="remove one of them",
        )
    return list((mapped | {column.column: column for column in columns}).values())


def with_time(mapped: Sequence[Mapped]) -> Sequence[Mapped]:
    """Return the map; it must include the end time of rows, or their start and duration.

    Raises:
        ThalwegError: The map lacks them.
    """
    columns = {column.column for column in mapped}
    if "end_us" not in columns and not {"start_us", "duration_us"} <= columns:
        raise ThalwegError(
            "no-time",
            "the map has no end time of rows",
            place="--map",
            expected="end_us, or start_us and duration_us",
            hint="--map end_us=HEADING:s for UNIX time in seconds; a date needs no unit",
        )
    return mapped


def _from_setting(text: str) -> Mapped:
    column, equals, source = text.partition("=")
    if not equals or not source:
        raise ThalwegError(
            "bad-map",
            f"`--map {text}` names no field",
            place="--map",
            expected="COLUMN=FIELD, or COLUMN=FIELD:UNIT",
            hint="--map end_us=time:s",
        )
    heading, colon, unit = source.rpartition(":")
    if colon and unit in units(column):
        return _checked(Mapped(column, heading, unit))
    return _checked(Mapped(column, source))


def _from_file(file: Path) -> Iterator[Mapped]:
    try:
        content = tomllib.loads(read_regular(file, LARGEST_TEXT).decode("utf-8"))
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise ThalwegError("cannot-read", f"the map `{file}` cannot be read: {why}", place="--map-file") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ThalwegError("bad-map", f"the map `{file}` is not valid TOML: {error}", place="--map-file") from None
    for column, entry in content.items():
        table: Mapping[str, object] = {"from": entry} if isinstance(entry, str) else entry
        is_table = isinstance(table, dict) and table.keys() <= KEYS
        if not is_table or ("from" in table) == ("value" in table) or table.get("from") == "":
            raise ThalwegError(
                "bad-map",
                f"in the map `{file}`, `{column}` has neither a field nor a value",
                place=column,
                found=str(entry),
                expected='a field, {from = "field", unit = "s"}, or {value = "cubic"}',
                source=Source(str(file)),
            )
        value = table.get("value", "")
        text = str(value).lower() if isinstance(value, bool) else str(value)
        yield _checked(Mapped(column, str(table.get("from", "")), str(table.get("unit", "")), text))


def _checked(mapped: Mapped) -> Mapped:
    if mapped.column in OWN:
        raise ThalwegError(
            "no-column",
            f"`{mapped.column}` cannot be mapped",
            place="--map",
            expected="a column that the import does not fill itself",
            hint="remove it from the map",
        )
    if mapped.column not in COLUMNS:
        raise ThalwegError(
            "no-column",
            f"records have no column `{mapped.column}`",
            place="--map",
            expected="a column of docs/reference/records.md",
            hint=f"did you mean {_nearest(mapped.column)}?",
        )
    if mapped.unit and mapped.unit not in units(mapped.column):
        unit_names = ", ".join(units(mapped.column)) or "none: it has no unit"
        raise ThalwegError(
            "no-unit",
            f"`{mapped.unit}` is not a unit of {mapped.column}",
            place="--map",
            expected=unit_names,
        )
    return mapped


def _nearest(column: str) -> str:
    names = [name for name in COLUMNS if name not in OWN]
    return (difflib.get_close_matches(column, names, 1, 0.0) or ["end_us"])[0]


def units(column: str) -> Mapping[str, float]:
    """Return the accepted units of a column's values, each with its size in the column's own unit (`EXCEL`: 0).

    >>> sorted(units("rtt_min_us")), units("cc")
    (['min', 'ms', 'ns', 's', 'us'], {})
    """
    by_name = values.UNITS.get(column.rpartition("_")[2], {})
    return {**by_name, EXCEL: 0.0} if column in TIMES else by_name


def of_fields(mapped: Sequence[Mapped], fields: Collection[str], sign: str) -> list[Mapped]:
    """Check a map of the fields of a log's format; return it without the signs.

    Args:
        mapped: The map.
        fields: Names of the format's fields.
        sign: Optional prefix of a field's name: `$` or `%`.

    Raises:
        ThalwegError: The format lacks a field of the map.
    """
    plain = [replace(column, source=column.source.removeprefix(sign)) for column in mapped]
    for column in plain:
        if column.source and column.source not in fields:
            raise ThalwegError(
                "no-field",
                f"the log's format has no field `{sign}{column.source}`",
                place="--map",
                found=", ".join(f"`{sign}{name}`" for name in sorted(fields)),
                expected=f"the field that becomes {column.column}",
                hint=f"--map {column.column}=FIELD, with a field of the format",
            )
    return plain
