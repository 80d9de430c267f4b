"""Converts log lines to columns, one block of lines at a time, if the log's format and the lines permit it."""

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import polars as pl
import pyarrow as pa

from thalweg.records.imports import items
from thalweg.records.imports.addresses import Addresses
from thalweg.records.imports.blocks import Block, LastItems
from thalweg.records.imports.items import Item, SourceFile
from thalweg.records.imports.log_lines import FormField, LineForm
from thalweg.records.imports.prefixes import MAY_BE_WRAPPED, LogLines
from thalweg.records.imports.vectorized import CERTAIN, LINE, Conversion, Values

LINE_FEED = ord("\n")
CHARACTERS_OF_NUMBERS = frozenset("0123456789.-")

Columns = Callable[[Addresses, pl.Series, pl.Series], pl.DataFrame]
"""Returns the columns of lines, from the conversion of addresses, the lines, and their global numbers."""


class LineColumns:
    """A line format as a regular expression, which matches only lines with a unique interpretation.

    A field without a known last character ends at the first character of the literal text that follows it.
    """

    def __init__(self, form: LineForm, conversions: Mapping[str, Sequence[Conversion]]) -> None:
        self._conversions: list[tuple[int, Conversion, bool]] = []
        self._has_lists = False
        self.is_possible = True
        """Whether the format can be expressed as such a regular expression."""
        self._groups = 0
        pattern = ""
        last = {name: number for number, (field, _) in enumerate(form.steps) if field is not None
                for name in (field.name, field.port) if name}  # fmt: skip
        for number, (field, literal) in enumerate(form.steps):
            if field is None:
                pattern += pl.escape_regex(literal)
                continue
            kept = {name: conversions.get(name, ()) for name in (field.name, field.port) if last.get(name) == number}
            pattern += self._field(field, literal, kept) + pl.escape_regex(literal)
        self._pattern = f"^{pattern}\n?$"

    def _field(self, field: FormField, literal: str, kept: Mapping[str, Sequence[Conversion]]) -> str:
        end = literal[:1]
        others = f"[^{pl.escape_regex(end)}\n]*" if end else "[^\n]*"
        if field.is_list:
            self._has_lists = True
            others = f"[^{pl.escape_regex(end)},:\n]*"
        if field.last:
            return self._group(
                field.name, rf"[^{pl.escape_regex(field.last)}\n]*{pl.escape_regex(field.last)}", kept, end
            )
        if field.port:
            self.is_possible &= bool(end) and end != ":"
            part = f"[^{pl.escape_regex(end)}:\n]*"
            return f"{self._group(field.name, part, kept, end)}:{self._group(field.port, part, kept, end)}"
        return self._group(field.name, others, kept, end)

    def _group(self, name: str, pattern: str, kept: Mapping[str, Sequence[Conversion]], end: str) -> str:
        conversions = kept.get(name, ())
        if not conversions:
            return pattern
        is_inline = len(conversions) == 1 and bool(conversions[0].inline) and end not in CHARACTERS_OF_NUMBERS
        self._conversions += [(self._groups, conversion, is_inline) for conversion in conversions]
        self._groups += 1
        return f"({conversions[0].inline if is_inline else pattern})"

    def read(self, lines: pl.Series) -> pl.DataFrame:
        """Return the columns of lines, and which lines are certain."""
        is_certain = ~lines.str.contains(MAY_BE_WRAPPED)
        if self._has_lists:
            is_certain &= ~lines.str.contains(" : ", literal=True)
        if self._groups:
            groups = lines.str.extract_groups(self._pattern).struct.unnest().get_columns()
            is_certain &= groups[0].is_not_null()
        else:
            groups = []
            is_certain &= lines.str.contains(self._pattern)
        values: Values = {}
        for group, conversion, is_inline in self._conversions:
            columns, is_sure = conversion.convert(groups[group])
            values |= columns
            if is_sure is not None:
                is_certain &= is_sure
            if conversion.inline and not is_inline:
                is_certain &= groups[group].str.contains(f"^(?:{conversion.inline})$").fill_null(False)
        return pl.DataFrame(values | {CERTAIN: is_certain})


def _lines(text: str) -> pl.Series:
    """Split a text into lines with their line ends, without copying each line."""
    encoded = text.encode(errors="replace")
    ends = np.flatnonzero(np.frombuffer(encoded, np.uint8) == LINE_FEED) + 1
    # The text after the last line end is a line only if it is not empty.
    last = [] if encoded.endswith(b"\n") or not encoded else [len(encoded)]
    offsets = np.concatenate(([0], ends, last)).astype(np.int64)
    return pl.Series(pa.LargeStringArray.from_buffers(len(offsets) - 1, pa.py_buffer(offsets), pa.py_buffer(encoded)))


class LogBlock:
    """A block of log lines."""

    def __init__(self, text: str, first: int, log: LogLines, base: int, columns: Columns) -> None:
        """Create a block from the text, the number of its first line, and the global number of line 0
        (`SourceFile.number`).
        """
        self._text = text
        self._first = first
        self._log = log
        self._base = base
        self._columns = columns
        self._lines = pl.Series([], dtype=pl.String)

    def columns(self, addresses: Addresses) -> pl.DataFrame:
        """Return the columns of the lines; call it once, because it releases the text."""
        text, self._text = self._text, ""
        lines = _lines(text)
        self._lines = lines
        numbers = pl.int_range(self._first, self._first + len(lines), dtype=pl.UInt64, eager=True)
        frame = self._columns(addresses, lines, numbers + pl.Series([self._base], dtype=pl.UInt64)).with_columns(
            numbers.alias(LINE)
        )
        if len(text) >= items.LONGEST:
            frame = frame.with_columns(pl.col(CERTAIN) & (lines.str.strip_suffix("\n").str.len_chars() < items.LONGEST))
        return frame

    def items(self, rows: Sequence[int]) -> Iterator[Item]:
        """Parse lines one by one."""
        for row, text in zip(rows, self._lines.gather(list(rows)), strict=True):
            line = text.removesuffix("\n")
            is_cut = len(line) >= items.LONGEST
            item = self._log.item(self._first + row, line[: items.LONGEST], is_cut=is_cut)
            if item is not None:
                yield item


def log_blocks(source: SourceFile, log: LogLines, columns: Columns) -> Iterator[Block]:
    """Read a log in blocks of lines."""
    first, base = 1, source.number(0)
    while text := source.text.block():
        if "\r" in text:
            text = text.replace("\r\n", "\n").replace("\r", "\n")
        yield LogBlock(text, first, log, base, columns)
        first += text.count("\n") + (not text.endswith("\n"))
    yield LastItems(lambda: log.rest(first - 1))
