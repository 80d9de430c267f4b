"""A user's table of networks, with columns such as AS and country.

Formats are CSV with a column `network`, such as MaxMind's `Blocks` with `Locations` in the same folder; RouteViews'
prefix-to-AS lines (pfx2as); and a folder of such files.

A network is stored as one or several keys: the IP version, then the leading hexadecimal digits of addresses. A length
that is not a multiple of four bits needs several keys. The longest matching network of an address is that of its
longest key, so an engine finds it by comparing texts.
"""

import csv
import gzip
import io
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from ipaddress import IPv6Network
from pathlib import Path
from typing import IO

import polars as pl

from thalweg.errors import Exit, Source, ThalwegError

NETWORK = "network"
AS, COUNTRY, AS_NAME = "as", "country", "as_name"

NAMES: Mapping[str, str] = {
    "asn": AS, "as_number": AS, "autonomous_system_number": AS,
    "country_iso_code": COUNTRY, "country_code": COUNTRY,
    "as_org": AS_NAME, "autonomous_system_organization": AS_NAME,
}  # fmt: skip
"""Alternative names of columns."""

RESERVED = frozenset({"key", "length", "line", "digits", "digits_n", "net_address", "found_address"})
"""Column names of the longest-prefix search; a user's column with such a name gets a trailing `_`."""

GEONAME = "geoname_id"
"""Column of MaxMind's networks: the identifier of their location in a separate file."""
LOCATIONS = "*Locations-en.csv"

BITS = {4: 32, 6: 128}
DIGIT_BITS = 4

GZIP = b"\x1f\x8b"

_Line = tuple[tuple[str, ...], str, tuple[str, ...], int]
"""Names of columns, the network, its values, the line number."""

EXPECTED = "CSV with a column `network`, or lines of RouteViews: address, length, AS"
HINT = "for example the heading network,asn,country and the row 192.0.2.0/24,64496,DE"


class _Bad(Exception):
    """Malformed row."""


@dataclass
class PrefixTable:
    """Networks with the same columns."""

    columns: tuple[str, ...]
    keys: list[str] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)
    """Prefix length of each key's network, in bits."""
    lines: list[int] = field(default_factory=list)
    """Index of each key's attributes in `known`."""
    known: dict[tuple[str, ...], int] = field(default_factory=dict)

    def add(self, network: str, values: tuple[str, ...]) -> None:
        """Add a network; raises `_Bad` if it is malformed."""
        version, value, bits = parsed(network)
        line = self.known.setdefault(values, len(self.known))
        for key in keys(version, value, bits):
            self.keys.append(key)
            self.lengths.append(bits)
            self.lines.append(line)

    def frame(self) -> pl.DataFrame:
        """Return one row per key: `key`, and the columns of the longest network that contains it (the last of equal
        ones).
        """
        rows = pl.DataFrame({"key": self.keys, "length": self.lengths, "line": self.lines})
        longest = rows.sort("length", maintain_order=True).unique("key", keep="last").drop("length")
        networks = pl.DataFrame(list(self.known), schema=dict.fromkeys(self.columns, pl.String), orient="row")
        networks = networks.with_columns(pl.all().replace("", None))
        return (
            longest.join(networks.with_row_index("line").cast({"line": pl.Int64}), on="line").drop("line").sort("key")
        )


def read(place: Path) -> list[PrefixTable]:
    """Read a table, or the tables in a folder; those with the same columns become one.

    Raises:
        ThalwegError: If a file cannot be read or has a malformed line, or if there are no networks.
    """
    tables: dict[tuple[str, ...], PrefixTable] = {}
    files = _files(place)
    for file in files:
        for columns, network, values, line in _lines(file):
            table = tables.setdefault(columns, PrefixTable(columns))
            try:
                table.add(network, values)
            except _Bad as why:
                raise _wrong(file, line, str(why)) from None
    if not tables:
        raise _wrong(files[0] if files else place, None, "no networks")
    return list(tables.values())


def parsed(network: str) -> tuple[int, int, int]:
    """Parse a network; return the IP version, the address as an integer, and the prefix length in bits.

    Raises:
        _Bad: If the network is malformed.

    >>> parsed("192.0.2.0/24") == (4, 0xC0000200, 24), parsed("2001:db8::/32")[2]
    (True, 32)
    """
    text, _, length = network.strip().partition("/")
    if text == NETWORK:
        raise _Bad("this line repeats the heading: remove it")
    if ":" in text:
        try:
            parsed_network = IPv6Network(network.strip())
        except ValueError as error:
            raise _Bad(f"`{network}` is not a network: {_reason(error)}") from None
        return 6, int(parsed_network.network_address), parsed_network.prefixlen
    value, bits = _address(text), int(length) if length.isdecimal() else BITS[4] if not length else -1
    if value is None or not 0 <= bits <= BITS[4]:
        raise _Bad(f"`{network}` is not a network")
    if value & ((1 << BITS[4] - bits) - 1):
        raise _Bad(f"`{network}` is not a network: it has bits set beyond its length")
    return 4, value, bits


def keys(version: int, value: int, bits: int) -> Iterator[str]:
    """Return the keys of a network.

    >>> list(keys(4, 0xC0000200, 24)), list(keys(4, 0x0A000000, 7))
    (['4c00002'], ['40a', '40b'])
    """
    digits = -(-bits // DIGIT_BITS)
    first = value >> BITS[version] - digits * DIGIT_BITS
    for number in range(1 << digits * DIGIT_BITS - bits):
        yield f"{version}{first + number:0{digits}x}" if digits else str(version)


def _address(text: str) -> int | None:
    parts = text.split(".")
    if len(parts) != 4 or not all(part.isdecimal() and len(part) <= 3 for part in parts):
        return None
    value = 0
    for part in parts:
        if int(part) > 255:
            return None
        value = value << 8 | int(part)
    return value


def _files(place: Path) -> list[Path]:
    if not place.is_dir():
        return [place]
    files = [file for file in sorted(place.iterdir()) if file.is_file() and not file.name.startswith(".")]
    return [
        file for file in files if not file.match("*Locations*") and file.suffix in (".csv", ".gz", ".txt", ".pfx2as")
    ]


def _lines(file: Path) -> Iterator[_Line]:
    """Yield the lines of a file."""
    with _opened(file) as text:
        try:
            number = 1
            while (first := text.readline()).startswith("#"):
                number += 1
            read = _routeviews(first, text) if "\t" in first else _csv(file, first, text, number)
            for columns, network, attributes, line in read:
                yield columns, network, attributes, line + number - 1
        except (UnicodeDecodeError, csv.Error, EOFError, OSError) as error:
            raise _wrong(file, None, f"it is not text: {_reason(error)}") from None


def _routeviews(first: str, text: IO[str]) -> Iterator[_Line]:
    number = 0
    for number, line in enumerate(_after(first, text), 1):
        fields = line.split()
        if fields and not line.startswith("#"):
            network = f"{fields[0]}/{fields[1]}" if len(fields) == 3 else line.strip()
            yield (AS,), network, (autonomous_system(fields[-1]),), number


def _csv(file: Path, first: str, text: IO[str], number: int) -> Iterator[_Line]:
    heading = [name.strip().lower() for name in next(csv.reader([first.removeprefix("\ufeff")]), [])]
    if NETWORK not in heading:
        raise _wrong(file, number, f"no column `{NETWORK}` in the heading")
    places = _places(file) if GEONAME in heading else {}
    named = [COUNTRY if name == GEONAME and places else NAMES.get(name, name) for name in heading]
    named = [f"{name}_" if name in RESERVED else name for name in named]
    at = heading.index(NETWORK)
    # Of two columns with the same name, the first is used.
    taken = [column for column, name in enumerate(named) if column != at and name and named.index(name) == column]
    columns = tuple(named[column] for column in taken)
    if not columns:
        raise _wrong(file, number, "it has no attributes of its networks")
    reader = csv.reader(text)
    for fields in reader:
        if not fields:
            continue
        if len(fields) != len(heading):
            raise _wrong(file, reader.line_num + number, f"{len(fields)} fields; the heading has {len(heading)}")
        values = tuple(_value(columns[i], fields[column], places) for i, column in enumerate(taken))
        yield columns, fields[at], values, reader.line_num + 1


def _value(column: str, text: str, places: Mapping[str, str]) -> str:
    text = text.strip()
    if column == AS and text:
        return autonomous_system(text)
    return places.get(text, "") if column == COUNTRY and places else text


def autonomous_system(text: str) -> str:
    """Return the name of an AS: of several origins (`_`) the first; the members of an AS set (`{}`) are one name.

    >>> autonomous_system("64496"), autonomous_system("AS64496_64497"), autonomous_system("{64496,64497}")
    ('AS64496', 'AS64496', 'AS64496,64497')
    """
    return f"AS{text.partition('_')[0].strip('{}').upper().removeprefix('AS')}"


def _places(file: Path) -> dict[str, str]:
    """Read MaxMind's locations in the folder of a network file; return the country of each identifier."""
    beside = next(iter(sorted(file.parent.glob(LOCATIONS))), None)
    if beside is None:
        return {}
    with _opened(beside) as text:
        reader = csv.DictReader(text)
        return {line[GEONAME]: line["country_iso_code"] or "" for line in reader if line.get(GEONAME)}


def _after(first: str, rest: IO[str]) -> Iterable[str]:
    yield first
    yield from rest


@contextmanager
def _opened(file: Path) -> Iterator[IO[str]]:
    try:
        with file.open("rb") as raw:
            is_compressed = raw.read(len(GZIP)) == GZIP
            raw.seek(0)
            plain = gzip.GzipFile(fileobj=raw) if is_compressed else raw
            yield io.TextIOWrapper(plain, encoding="utf-8", newline="")
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise ThalwegError(
            "cannot-read", f"the table `{file}` cannot be read: {why}", place="--prefixes", hint=f"ls -l '{file}'"
        ) from None


def _wrong(file: Path, line: int | None, why: str) -> ThalwegError:
    return ThalwegError(
        "bad-prefixes",
        f"`{file}` is not a table of networks: {why}",
        place="--prefixes",
        expected=EXPECTED,
        hint=HINT,
        source=Source(str(file), line),
        exit_code=Exit.USAGE,
    )


def _reason(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
