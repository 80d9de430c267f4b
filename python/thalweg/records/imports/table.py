"""CSV of any kind: the user says which of its columns becomes which of ours, and in which unit it is.

    thalweg import csv flows.csv --map end_us=finished:s --map acked_bytes=size --map fct_us=time:ms --out records/

or the same in a file:

    end_us = {from = "finished", unit = "s"}
    acked_bytes = "size"
    fct_us = {from = "time", unit = "ms"}
    cc = {value = "cubic"}
"""

import csv
import difflib
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

from thalweg.errors import Exit, ThalwegError
from thalweg.errors import Source as Place
from thalweg.records.imports import values
from thalweg.records.imports.addresses import parsed
from thalweg.records.imports.items import TOO_LONG, Item, Source, Unread, item, rows_of_csv
from thalweg.records.schema import CLOSE, COLUMNS, INTERIM, TRANSFER

KINDS = (CLOSE, INTERIM, TRANSFER)
TIMES = ("start_us", "end_us")
"""Columns that may hold dates as well."""
ADDRESSES = ("local_address", "remote_address")
KEYS = {"from", "unit", "value"}
MOST_HEADING = 1000
"""Characters of a heading that an error shows."""
OWN = ("source", "ip_version")
"""Columns that are not for the user to fill: where a row comes from, and what its address says."""


@dataclass(frozen=True)
class Mapped:
    """What becomes of a column of ours."""

    column: str
    source: str = ""
    """The column in the CSV, as its heading has it; empty: there is a value."""
    unit: str = ""
    """Unit of what stands there; empty: as the column's name says, for times seconds or a date."""
    value: str = ""
    """What stands in every row."""


class Table:
    """CSV with a heading."""

    source = "csv"
    expected = "CSV whose first line names its columns"
    hint = "--map COLUMN=HEADING[:UNIT], as in --map end_us=time:s; the columns are in docs/reference/records.md"

    def __init__(self, mapped: Sequence[Mapped], delimiter: str = "") -> None:
        """Take the map, and what stands between two fields (empty: a tab in files named .tsv, else a comma)."""
        self._mapped = mapped
        self._delimiter = delimiter
        self._kind = TRANSFER if {"fct_us", "goodput_bps", "transfer"} & {each.column for each in mapped} else CLOSE

    def read(self, source: Source) -> Iterator[Item]:
        """Read a file.

        Raises `ThalwegError` if it lacks a column of the map.
        """
        is_tabbed = source.path.name.removesuffix(".gz").endswith(".tsv")
        reader = csv.reader(source.text, delimiter=self._delimiter or ("\t" if is_tabbed else ","))
        heading = [name.strip() for name in _heading(reader, source)]
        self._check(heading, source.path)
        places = [heading.index(each.source) for each in self._mapped if each.source]

        def is_row(fields: Sequence[str]) -> bool:
            # No value that is asked for goes on over several lines.
            return len(fields) == len(heading) and not any("\n" in fields[place] for place in places)

        for each in rows_of_csv(reader, source.text, is_row):
            if isinstance(each, Item):
                yield each
            elif each[1]:
                yield item(each[0], self._row, source.number(each[0]), heading, each[1])

    def _check(self, heading: Sequence[str], file: Path) -> None:
        for each in self._mapped:
            if each.source and heading.count(each.source) != 1:
                is_there = each.source in heading
                raise ThalwegError(
                    "no-column",
                    f"`{file}` has {'several columns' if is_there else 'no column'} `{each.source}`",
                    place=str(file),
                    found=_short(", ".join(f"`{name}`" for name in heading) or "an empty file"),
                    expected=f"the column that becomes {each.column}",
                    hint="give each a heading of its own" if is_there else f"--map {each.column}=HEADING",
                    source=Place(str(file), 1),
                )

    def _row(self, number: int, heading: Sequence[str], fields: Sequence[str]) -> dict[str, Any]:
        if len(fields) != len(heading):
            raise Unread(f"{len(fields)} fields, and the heading has {len(heading)}")
        by_name = dict(zip(heading, fields, strict=True))
        row: dict[str, Any] = {"connection": number, "kind": self._kind}
        for each in self._mapped:
            text = (by_name[each.source] if each.source else each.value).strip()
            value = _value(each, text)
            if value is not None:
                row[each.column] = value
        if row["kind"] not in KINDS:
            raise Unread(f"`{row['kind']}` is no kind of row: {', '.join(KINDS)}")
        return row


def _heading(reader: Any, source: Source) -> list[str]:
    try:
        heading: list[str] = next(reader, [])
        why = TOO_LONG if source.text.was_cut() else ""
    except csv.Error as error:
        why = str(error)
    if not why:
        return heading
    raise ThalwegError(
        "no-csv",
        f"the first line of `{source.path}` is no CSV: {why}",
        place=str(source.path),
        expected=Table.expected,
        source=Place(str(source.path), 1),
        exit_code=Exit.FAILED,
    )


def _short(text: str) -> str:
    """Cut what stands in a heading: of a file that is no table, it can be anything."""
    return text if len(text) <= MOST_HEADING else f"{text[:MOST_HEADING]}..."


def mapping(settings: Sequence[str], file: Path | None) -> list[Mapped]:
    """Read the map: `COLUMN=HEADING[:UNIT]`, and a TOML file with a key per column; settings go before the file.

    Raises `ThalwegError` if there is no such column of ours or no such unit of it, or if nothing says when a row ended.

    >>> mapping(["end_us=finished:s"], None)
    [Mapped(column='end_us', source='finished', unit='s', value='')]
    """
    mapped: dict[str, Mapped] = {} if file is None else {each.column: each for each in _from_file(file)}
    mapped |= {each.column: each for each in map(_from_setting, settings)}
    if "end_us" not in mapped and not {"start_us", "duration_us"} <= mapped.keys():
        raise ThalwegError(
            "no-time",
            "the map does not say when a row ended",
            place="--map",
            expected="end_us, or start_us and duration_us",
            hint="--map end_us=HEADING:s for UNIX time in seconds; a date needs no unit",
        )
    return list(mapped.values())


def _from_setting(text: str) -> Mapped:
    column, equals, source = text.partition("=")
    if not equals or not source:
        raise ThalwegError(
            "bad-map",
            f"`--map {text}` maps nothing",
            place="--map",
            expected="COLUMN=HEADING, or COLUMN=HEADING:UNIT",
            hint="--map end_us=time:s",
        )
    heading, colon, unit = source.rpartition(":")
    if colon and unit in _units(column):
        return _checked(Mapped(column, heading, unit))
    return _checked(Mapped(column, source))


def _from_file(file: Path) -> Iterator[Mapped]:
    try:
        content = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise ThalwegError("cannot-read", f"the map `{file}` cannot be read: {why}", place="--map-file") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ThalwegError("bad-map", f"the map `{file}` is no TOML: {error}", place="--map-file") from None
    for column, entry in content.items():
        given: Mapping[str, Any] = {"from": entry} if isinstance(entry, str) else entry
        is_table = isinstance(given, dict) and given.keys() <= KEYS
        if not is_table or ("from" in given) == ("value" in given) or given.get("from") == "":
            raise ThalwegError(
                "bad-map",
                f"in the map `{file}`, `{column}` says neither a heading nor a value",
                place=column,
                found=str(entry),
                expected='a heading, {from = "heading", unit = "s"}, or {value = "cubic"}',
                source=Place(str(file)),
            )
        value = given.get("value", "")
        text = str(value).lower() if isinstance(value, bool) else str(value)
        yield _checked(Mapped(column, str(given.get("from", "")), str(given.get("unit", "")), text))


def _checked(mapped: Mapped) -> Mapped:
    if mapped.column not in COLUMNS or mapped.column in OWN:
        raise ThalwegError(
            "no-column",
            f"records have no column `{mapped.column}` that could be mapped",
            place="--map",
            expected="a column of docs/reference/records.md",
            hint=f"did you mean {_nearest(mapped.column)}?",
        )
    if mapped.unit and mapped.unit not in _units(mapped.column):
        known = ", ".join(unit for unit in _units(mapped.column) if unit) or "none: it is no quantity"
        raise ThalwegError(
            "no-unit",
            f"`{mapped.unit}` is no unit of {mapped.column}",
            place="--map",
            expected=known,
        )
    return mapped


def _nearest(column: str) -> str:
    return (difflib.get_close_matches(column, COLUMNS, 1, 0.0) or ["end_us"])[0]


def _units(column: str) -> Mapping[str, float]:
    """Give the units that a column's values may come in.

    >>> sorted(_units("rtt_min_us")), _units("cc")
    (['min', 'ms', 'ns', 's', 'us'], {})
    """
    return values.UNITS.get(column.rpartition("_")[2], {})


def _value(mapped: Mapped, text: str) -> Any:
    """Read a field as what its column holds."""
    kind = COLUMNS[mapped.column].kind if mapped.column in COLUMNS else "string"
    if text in values.NOTHING:
        return None
    if mapped.column in ADDRESSES:
        return _address(text)
    if mapped.column == "connection" and not text.isdecimal():
        return int.from_bytes(blake2b(text.encode(), digest_size=8).digest())
    if kind == "string":
        return text
    if kind == "bool":
        return values.truth(text)
    if mapped.column in TIMES and not mapped.unit:
        return values.instant(text)
    unit = _units(mapped.column).get(mapped.unit, 1.0)
    return values.count(text, unit) if kind == "u64" else values.number(text, unit)


def _address(text: str) -> Any:
    """Read an address; one that was truncated or hashed before stays as it is."""
    if text.startswith("h:") or "/" in text:
        return text
    address = parsed(text)
    if address is None:
        raise Unread(f"`{text}` is no address")
    return address
