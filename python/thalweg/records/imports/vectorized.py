"""Converts texts of many rows to columns at once if their format is unambiguous; other texts are converted one by one.

The functions in `values`, `times`, `addresses` and `mapped` define the meaning of a text. A conversion here has a
pattern of texts for which a polars expression returns the same result. A row with another text is uncertain, unless
the conversion has a defining function: it receives each distinct other text, and the row is uncertain if it rejects the
text, or if its result does not fit the columns. Uncertain rows are parsed again individually.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Protocol

import polars as pl
import pyarrow.compute as pc

from thalweg.records.imports import times, values
from thalweg.records.imports.addresses import MAX_PORT, Address, Addresses
from thalweg.records.imports.items import Assumed, ImportedRow, ImportedValue, Unknown, Unread

CERTAIN = "certain"
"""Column that marks rows whose columns are known to equal the result of parsing the row individually."""
LINE = "line"
WHY = ":why"
"""Suffix of the column with the reasons why the values of another column are assumed."""

OCTET = "(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
IPV4 = rf"{OCTET}\.{OCTET}\.{OCTET}\.{OCTET}"
GROUP = "(?:0|[1-9a-f][0-9a-f]{0,3})"
IPV6_AFTER_48 = "|".join(
    ["(?::GROUP){5}", *(f"(?::GROUP){{{before}}}::(?:GROUP(?::GROUP){{0,{3 - before}}})?" for before in range(4)),
     "(?::GROUP){4}::"]
)  # fmt: skip
IPV6_OF_48 = f"GROUP:GROUP:[1-9a-f][0-9a-f]{{0,3}}(?:{IPV6_AFTER_48})".replace("GROUP", GROUP)
"""IPv6 addresses in the usual format whose third group is not zero; their /48 network is the first three groups."""
COUNT = "[0-9]{1,18}"
"""Integers that fit into signed 64 bits."""
DECIMAL = r"[0-9]{1,15}(?:\.[0-9]{1,9})?"
DECIMAL_IN_TABLE = r"[0-9]{1,15}|[0-9]{1,12}\.(?:[0-9]{1,2}|[0-9]{4,9})|[0-9]{4,12}\.[0-9]{3}"
"""Numbers that cannot contain a thousands separator."""
UNIX_S = r"1[0-9]{9}(?:\.[0-9]{1,6})?"
"""UNIX time from 2001 to 2033 in seconds."""
PLAIN = "[!-~](?:[ -~]{0,200}[!-~])?"
"""Printable ASCII without spaces around it."""
CLOCK = "(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
ISO = rf"[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}[T ]{CLOCK}(?:\.[0-9]{{1,6}})?(?:Z| UTC|\+00:00)"
ISO_LOCAL = rf"[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}[T ]{CLOCK}(?:\.[0-9]{{1,6}})?"
SLASHED = rf"\[?[0-9]{{2}}/[A-Z][a-z]{{2}}/[0-9]{{4}}:{CLOCK} [+-][0-9]{{4}}\]?"
MICROSECONDS = 1_000_000
MAX_EXACT = 2.0**52
"""From this on, floats have no fraction, so that a half is not recognised; such amounts are uncertain."""

Values = dict[str, pl.Series]


class Conversion(Protocol):
    """Conversion of a field's texts to columns."""

    @property
    def inline(self) -> str:
        """Pattern of the texts that `convert` accepts; empty: any text."""

    def convert(self, texts: pl.Series) -> tuple[Values, pl.Series | None]:
        """Return the columns, and which rows are certain; `None`: all rows."""


def _where(series: pl.Series, pattern: str) -> pl.Series:
    """Return which texts match a pattern entirely."""
    return series.str.contains(f"^(?:{pattern})$").fill_null(False)


def each_distinct(
    texts: pl.Series, definition: Callable[[str], ImportedRow], columns: Mapping[str, pl.DataType]
) -> tuple[Values, pl.Series]:
    """Convert each distinct text with the defining function; return the columns, and which rows are certain.

    Null texts stay null and are certain.
    """
    coded = pc.dictionary_encode(texts.to_arrow())
    lists: dict[str, list[object]] = {name: [] for name in columns}
    is_certain: list[bool] = []
    for text in coded.dictionary.to_pylist():
        row, is_sure = _defined(text, definition, columns)
        is_certain.append(is_sure)
        for name, column in lists.items():
            column.append(row.get(name))
    codes = pl.Series(coded.indices)
    table = {name: pl.Series(name, lists[name], dtype=kind) for name, kind in columns.items()}
    rows = pl.DataFrame(table | {CERTAIN: pl.Series(is_certain, dtype=pl.Boolean)}).select(pl.all().gather(codes))
    return {name: rows[name] for name in columns}, rows[CERTAIN].fill_null(True)


def without_notes(frame: pl.DataFrame) -> pl.DataFrame:
    """Mark rows with assumed values as uncertain, and drop the reasons."""
    why_columns = [name for name in frame.columns if name.endswith(WHY)]
    is_plain = (pl.col(name).is_null() for name in why_columns)
    return frame.with_columns(pl.all_horizontal(CERTAIN, *is_plain).alias(CERTAIN)).drop(why_columns)


def _defined(
    text: str, definition: Callable[[str], ImportedRow], columns: Mapping[str, pl.DataType]
) -> tuple[ImportedRow, bool]:
    try:
        row: ImportedRow = {name: value for name, value in definition(text).items() if value is not None}
    except Unread:
        return {}, False
    notes = {name + WHY: value.why for name, value in row.items() if isinstance(value, Assumed)}
    if not row.keys() | notes.keys() <= columns.keys() or any(not _fits(row[name], columns[name]) for name in row):
        return {}, False
    return row | notes, True


def _fits(value: ImportedValue, kind: pl.DataType) -> bool:
    """Return whether a value can be stored in a column of this type as it is, without escapes."""
    if isinstance(value, Unknown):
        return False
    if kind == pl.String:
        return isinstance(value, str) and value.isascii() and value.isprintable()
    if isinstance(value, bool) or kind == pl.Boolean:
        return isinstance(value, bool) and kind == pl.Boolean
    if kind.is_integer():
        return isinstance(value, int) and 0 <= value < 2**63
    return isinstance(value, int | float) and 0 <= value < 2**63


def round_amounts(amounts: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Round numbers, and return which results are certain: Python rounds a half to the even neighbour."""
    is_certain = ((amounts - amounts.floor() != 0.5) & (amounts < MAX_EXACT)).fill_null(True)
    return amounts.round().cast(pl.Int64, strict=False), is_certain


@dataclass(frozen=True)
class Counts:
    """Integers, unknown for `-` or an empty text, as `values.count` parses them."""

    column: str
    inline: ClassVar[str] = f"{COUNT}|-|"

    def convert(self, texts: pl.Series) -> tuple[Values, pl.Series | None]:
        """Convert texts that match `inline`."""
        return {self.column: texts.cast(pl.Int64, strict=False)}, None


@dataclass(frozen=True)
class Ports:
    """Port numbers, unknown for `-` or an empty text."""

    column: str
    inline: ClassVar[str] = "[0-9]{1,5}|-|"

    def convert(self, texts: pl.Series) -> tuple[Values, pl.Series | None]:
        """Convert texts that match `inline`."""
        ports = texts.cast(pl.Int64, strict=False)
        return {self.column: ports}, (ports <= MAX_PORT).fill_null(True)


@dataclass(frozen=True)
class Amounts:
    """Numbers in another unit, as `values.count` parses them."""

    column: str
    unit: float
    inline: ClassVar[str] = f"{DECIMAL}|-|"

    def convert(self, texts: pl.Series) -> tuple[Values, pl.Series | None]:
        """Convert texts that match `inline`."""
        amounts, is_certain = rounded(texts, self.unit)
        return {self.column: amounts}, is_certain


@dataclass(frozen=True)
class OneText:
    """A constant text: a line is certain only if it matches; it fills no column."""

    inline: str

    def convert(self, texts: pl.Series) -> tuple[Values, pl.Series | None]:
        """Return no columns."""
        return {}, None


@dataclass(frozen=True)
class Texts:
    """Printable ASCII, unchanged."""

    column: str
    inline: ClassVar[str] = ""

    def convert(self, texts: pl.Series) -> tuple[Values, pl.Series | None]:
        """Convert any texts."""
        return {self.column: texts}, _where(texts, "[ -~]*") | texts.is_null()


@dataclass(frozen=True)
class Matching:
    """Converts texts that match a pattern at once, and others with `definition`."""

    column: str
    kind: pl.DataType
    pattern: str
    vectorized: Callable[[pl.Series], tuple[pl.Series, pl.Series | None]]
    definition: Callable[[str], ImportedRow]
    inline: ClassVar[str] = ""

    def convert(self, texts: pl.Series) -> tuple[Values, pl.Series | None]:
        """Convert any texts."""
        fits = _where(texts, self.pattern)
        if not fits.any():
            return each_distinct(texts, self.definition, {self.column: self.kind})
        converted, is_sure = self.vectorized(texts.set(~fits, None))
        if fits.all():
            return {self.column: converted}, is_sure
        others, is_certain = each_distinct(texts.set(fits, None), self.definition, {self.column: self.kind})
        is_certain = is_certain if is_sure is None else is_certain & (is_sure | ~fits)
        return {self.column: converted.zip_with(fits, others[self.column])}, is_certain


def counted(texts: pl.Series) -> tuple[pl.Series, pl.Series | None]:
    """Convert integers of at most 18 digits."""
    return texts.cast(pl.Int64, strict=False), None


def rounded(texts: pl.Series, unit: float) -> tuple[pl.Series, pl.Series | None]:
    """Convert decimal numbers to integers in another unit."""
    return round_amounts(texts.cast(pl.Float64, strict=False) * unit)


def scaled(texts: pl.Series, unit: float) -> tuple[pl.Series, pl.Series | None]:
    """Convert decimal numbers to another unit."""
    return texts.cast(pl.Float64, strict=False) * unit, None


def without_unknown(texts: pl.Series) -> tuple[pl.Series, pl.Series | None]:
    """Replace texts that mean unknown with null."""
    return texts.set(texts.is_in(sorted(values.NOTHING)).fill_null(False), None), None


@dataclass(frozen=True)
class Words:
    """Texts of a column; those in `values.NOTHING` are unknown."""

    column: str
    inline: ClassVar[str] = ""

    def convert(self, texts: pl.Series) -> tuple[Values, pl.Series | None]:
        """Convert any texts."""
        is_plain = _where(texts, PLAIN) | (texts == "") | texts.is_null()
        return {self.column: without_unknown(texts)[0]}, is_plain


@dataclass(frozen=True)
class Instants:
    """UNIX times and dates: common formats are parsed at once, and others by `definition`."""

    column: str
    definition: Callable[[str], ImportedValue] = times.instant
    unix: str = UNIX_S
    """Pattern of UNIX times that are parsed at once; empty: `definition` parses all times."""
    inline: ClassVar[str] = ""

    def convert(self, texts: pl.Series) -> tuple[Values, pl.Series | None]:
        """Convert any texts."""
        why = self.column + WHY
        kinds = {self.column: pl.Int64(), why: pl.String()}

        def defined(text: str) -> ImportedRow:
            return {self.column: self.definition(text)}

        if not self.unix:
            return each_distinct(texts, defined, kinds)
        at_us = pl.Series(self.column, [None], dtype=pl.Int64).new_from_index(0, len(texts))
        notes = pl.Series(why, [None], dtype=pl.String).new_from_index(0, len(texts))
        is_certain = pl.Series(CERTAIN, [True]).new_from_index(0, len(texts))
        rest = texts
        for pattern, read, assumed in (
            (self.unix, _unix, None), (ISO, _iso, None), (SLASHED, _slashed, None), (ISO_LOCAL, _iso, times.NO_ZONE)
        ):  # fmt: skip
            if rest.null_count() == len(rest):
                break
            fits = _where(rest, pattern)
            if not fits.any():
                continue
            instants = read(texts if fits.all() else texts.set(~fits, None))
            at_us, rest = at_us.zip_with(~fits, instants), rest.set(fits, None)
            is_certain &= ~fits | instants.is_not_null()
            if assumed is not None:
                notes = notes.set(fits, assumed)
        if rest.null_count() < len(rest):
            others, certain_others = each_distinct(rest, defined, kinds)
            at_us = at_us.zip_with(rest.is_null(), others[self.column])
            notes = notes.zip_with(rest.is_null(), others[why])
            is_certain &= certain_others
        return {self.column: at_us} | ({why: notes} if notes.null_count() < len(notes) else {}), is_certain


def _unix(texts: pl.Series) -> pl.Series:
    at_us, is_certain = round_amounts(texts.cast(pl.Float64, strict=False) * 1e6)
    return at_us.set(~is_certain, None)


def _iso(texts: pl.Series) -> pl.Series:
    """Parse dates in UTC, each distinct day once."""
    days = _midnights(texts.str.slice(0, 10), lambda day: f"{day}T00:00:00Z")
    fraction = texts.str.slice(20).str.extract("^([0-9]+)").str.pad_end(6, "0").cast(pl.Int64).fill_null(0)
    return days + _clock_us(texts, 11) + fraction


def _slashed(texts: pl.Series) -> pl.Series:
    """Parse dates of the common log format, each distinct day and time zone once."""
    bare = texts.str.strip_chars("[]")
    days = _midnights(bare.str.slice(0, 11) + bare.str.slice(20), lambda day: f"{day[:11]}:00:00:00{day[11:]}")
    return days + _clock_us(bare, 12)


def _midnights(days: pl.Series, form: Callable[[str], str]) -> pl.Series:
    """Return the UNIX time in microseconds at which days begin; null for other texts."""
    instants, is_certain = each_distinct(days, lambda day: {"at": times.instant(form(day))}, {"at": pl.Int64()})
    return instants["at"].set(~is_certain, None)


def _clock_us(texts: pl.Series, offset: int) -> pl.Series:
    """Return the time of day, `HH:MM:SS` at an offset in the texts, in microseconds."""
    hour, minute, second = (texts.str.slice(offset + 3 * part, 2).cast(pl.Int64) for part in range(3))
    return ((hour * 60 + minute) * 60 + second) * MICROSECONDS


@dataclass(frozen=True)
class Ends:
    """Addresses without a port, in the format of records, and their IP versions."""

    column: str
    addresses: Addresses
    definition: Callable[[str], ImportedRow]
    inline: ClassVar[str] = ""

    def convert(self, texts: pl.Series) -> tuple[Values, pl.Series | None]:
        """Convert any texts."""
        version = f"{self.column}_version"
        is_v4 = _where(texts, IPV4)
        is_v6 = is_v4 & False
        plain = texts
        if self.addresses.form == "truncated":
            plain = texts.str.replace(r"\.[0-9]+$", ".0/24")
            is_v6 = _where(texts.set(is_v4, None), IPV6_OF_48)
            if is_v6.any():
                plain = plain.zip_with(~is_v6, texts.str.replace("^([0-9a-f]+:[0-9a-f]+:[0-9a-f]+):.*$", "${1}::/48"))
        elif self.addresses.form == "hashed":
            is_v4 &= False
        is_plain = is_v4 | is_v6

        def defined(text: str) -> ImportedRow:
            row = self.definition(text)
            address = row.get(self.column)
            if isinstance(address, Address):
                row |= {self.column: self.addresses.text(address), version: address.version}
            return row

        rest = texts.set(is_plain, None)
        converted_columns, is_certain = each_distinct(rest, defined, {self.column: pl.String(), version: pl.Int64()})
        versions = pl.select(pl.when(is_v6).then(6).otherwise(4).cast(pl.Int64)).to_series()
        return {
            self.column: plain.zip_with(is_plain, converted_columns[self.column]),
            version: versions.zip_with(is_plain, converted_columns[version]),
        }, is_certain
