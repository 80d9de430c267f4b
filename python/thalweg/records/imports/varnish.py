"""Varnish's access logs, as varnishncsa writes them: a line per request, which becomes a transfer.

Values of TCP are those that `tcp.dump_info()` of vmod_tcp logs, which usually runs before the response is sent. As with
nginx, the clock stops when the last byte is in the socket's send buffer, so the time taken is a duration, not a
completion time.
"""

import re
from collections.abc import Iterator, Sequence
from functools import partial

import polars as pl

from thalweg.errors import ThalwegError
from thalweg.records.imports import times, values
from thalweg.records.imports.addresses import Addresses, ends
from thalweg.records.imports.blocks import Block
from thalweg.records.imports.items import Assumed, ImportedRow, Item, SourceFile, Unread
from thalweg.records.imports.log_columns import LineColumns, log_blocks
from thalweg.records.imports.log_lines import FormField, FormPart, LineForm
from thalweg.records.imports.mapped import OF_SERVERS, Mapped, mapped_row, of_fields
from thalweg.records.imports.mapped_columns import by_field, has_unread_constants, with_mapped
from thalweg.records.imports.prefixes import LogLines, log_items
from thalweg.records.imports.vectorized import (
    CERTAIN,
    Amounts,
    Conversion,
    Counts,
    Ends,
    Instants,
    Ports,
    Texts,
    without_notes,
)
from thalweg.records.schema import TRANSFER

DEFAULT = '%h %l %u %t "%r" %s %b "%{Referer}i" "%{User-agent}i"'
"""varnishncsa's default format."""

FIELD = re.compile(r"%[<>]?(?:\{([^}]*)\})?([a-zA-Z%])")
ESCAPES = {r"\n": "\n", r"\t": "\t"}

TAKEN = {"D": 1.0, "{us}T": 1.0, "{ms}T": 1e3, "T": 1e6, "{s}T": 1e6}
"""Fields with the duration of a request, the most precise one first, and the sizes of their units in microseconds."""
BEGAN = ("{%s}t", "{%FT%T%z}t", "{%Y-%m-%dT%H:%M:%S%z}t", "{%Y-%m-%dT%H:%M:%SZ}t", "t")
"""Fields with the time at which a request was received, in a format that can be parsed."""
EXACT = {"{VSL:Timestamp:Start[1]}x": "start_us", "{VSL:Timestamp:Resp[1]}x": "end_us"}
"""Fields with the times at which a request was received and its response was in the send buffer, to the microsecond."""


class Varnish:
    """Importer of access logs with one format."""

    source = "varnish"
    shows_cuts = False
    fills = (
        "end_us", "connection", "kind", "transfer", "source", "machine", "start_us", "duration_us",
        "ip_version", "remote_address", "remote_port", "direction", "sent_bytes", "received_bytes", "reordering",
        "mss_bytes", "rtt_smoothed_us",
    )  # fmt: skip
    """Columns that the importer can fill without a map."""
    hint = "set the format with --format-string '...', as for varnishncsa -F"

    def __init__(self, form: str = DEFAULT, mapped: Sequence[Mapped] = ()) -> None:
        """Create an importer from the format of varnishncsa -F and a map of its fields to additional columns.

        Raises:
            ThalwegError: If the format is invalid or lacks a field of the map.
        """
        self.expected = f"lines of the format {form}"
        self._form = _line_form(form)
        names = self._form.names
        self._taken = next((name for name in TAKEN if name in names), None)
        self._began = next((name for name in BEGAN if name in names), None)
        self._mapped = of_fields(mapped, names, "%")
        self._info = [name for name in names if name.startswith("{VCL_Log:")]

    def read(self, source: SourceFile) -> Iterator[Item]:
        """Parse a log."""
        return log_items(source, self._row)

    def blocks(self, source: SourceFile) -> Iterator[Block] | None:
        """Read a log in blocks of lines; `None` if the format, or a constant of the map, does not permit it."""
        if not self._fields(Addresses()).is_possible or has_unread_constants(self._mapped):
            return None
        return log_blocks(source, LogLines(source, self._row), self._columns)

    def _fields(self, addresses: Addresses) -> LineColumns:
        names = self._form.names
        own_columns: list[tuple[str | None, Conversion]] = [
            (self._taken, Amounts("duration_us", TAKEN[self._taken] if self._taken else 1.0)),
            (self._began, Instants("began_us")),
            ("h", Ends("remote_address", addresses, partial(ends, "remote"))),
            ("{VSL:ReqStart[2]}x", Ports("remote_port")),
            ("O" if "O" in names else "b", Counts("sent_bytes")),
            ("b", Texts("body")),
            ("I", Counts("received_bytes")),
            *((name, Instants(f"exact:{column}")) for name, column in EXACT.items()),
            *((name, Texts(f"info:{name}")) for name in self._info),
        ]
        return LineColumns(self._form, by_field(own_columns, self._mapped, OF_SERVERS, addresses))

    def _columns(self, addresses: Addresses, lines: pl.Series, numbers: pl.Series) -> pl.DataFrame:
        frame = without_notes(self._fields(addresses).read(lines))
        sent = pl.col("sent_bytes") if "sent_bytes" in frame.columns else pl.lit(None, pl.Int64)
        is_empty = pl.col("body") == "-" if "body" in frame.columns else pl.lit(False)
        start = next((name for name in ("exact:start_us", "began_us") if name in frame.columns), None)
        info = pl.concat_str(pl.lit(""), *(f"info:{name}" for name in self._info), pl.lit(""), separator=" ")
        frame = frame.with_columns(
            pl.lit(numbers).alias("connection"),
            info.alias("info"),
            kind=pl.lit(TRANSFER),
            transfer=pl.lit(0),
            direction=pl.lit("in"),
            sent_bytes=pl.when(sent.is_null() & is_empty).then(0).otherwise(sent),
            start_us=pl.col(start) if start else pl.lit(None),
            end_us=pl.col("exact:end_us") if "exact:end_us" in frame.columns else pl.lit(None),
        )
        names = {"reordering": "reordering", "mss_bytes": "snd_mss", "rtt_smoothed_us": "rtt"}
        digits = {name: pl.col("info").str.extract(f" {name}=([0-9]+) ") for name in names.values()}
        is_plain = [
            (pl.col("info").str.count_matches(f" {name}=", literal=True) < 2)
            & (text.str.len_bytes() < values.MAX_DIGITS - 1).fill_null(True)
            for name, text in digits.items()
        ]
        frame = frame.with_columns(
            *(digits[name].cast(pl.Int64, strict=False).alias(column) for column, name in names.items()),
            pl.all_horizontal(CERTAIN, *is_plain).alias(CERTAIN),
        )
        frame = frame.with_columns(rtt_smoothed_us=pl.when(pl.col("rtt_smoothed_us") > 0).then("rtt_smoothed_us"))
        return with_mapped(frame, self._mapped, OF_SERVERS, addresses)

    def _row(self, number: int, line: str) -> ImportedRow:
        fields = self._form.read(line)
        mapped = mapped_row(self._mapped, fields.__getitem__)
        info = _info(" ".join(fields[name] for name in self._info))
        row: ImportedRow = {
            "connection": number,
            "kind": TRANSFER,
            "transfer": 0,
            "duration_us": values.count(fields[self._taken], TAKEN[self._taken]) if self._taken else None,
            "start_us": times.instant(fields[self._began]) if self._began else None,
            **ends("remote", fields.get("h", "-"), fields.get("{VSL:ReqStart[2]}x", "-")),
            "direction": "in",
            "sent_bytes": values.count(fields.get("O", fields.get("b", "-"))),
            "received_bytes": values.count(fields.get("I", "-")),
            "reordering": info.get("reordering"),
            "mss_bytes": info.get("snd_mss"),
            "rtt_smoothed_us": info.get("rtt") or None,
        }
        if row["sent_bytes"] is None and fields.get("b") == "-":
            row["sent_bytes"] = 0
        row |= {column: times.instant(fields[name]) for name, column in EXACT.items() if name in fields}
        row |= mapped
        start_us, end_us = row.get("start_us"), row.get("end_us")
        if start_us is None and end_us is None:
            raise Unread("no time: neither %t nor %{VSL:Timestamp:Resp[1]}x")
        if isinstance(start_us, int) and end_us is None and row["duration_us"] is None:
            row["end_us"] = Assumed(start_us, "when the request was received: its duration is unknown")
            row["start_us"] = None
        return row


def _line_form(text: str) -> LineForm:
    for escape, character in ESCAPES.items():
        text = text.replace(escape, character)
    parts: list[FormPart] = []
    literal = ""
    end = 0
    for match in FIELD.finditer(text):
        literal += text[end : match.start()]
        end = match.end()
        if match[2] == "%":
            literal += "%"
            continue
        if literal:
            parts.append(literal)
            literal = ""
        name = match[2] if match[1] is None else f"{{{match[1]}}}{match[2]}"
        parts.append(FormField(name, last="]" if name == "t" else "", is_address=name == "h"))
    if literal + text[end:]:
        parts.append(literal + text[end:])
    if not any(isinstance(part, FormField) for part in parts):
        raise ThalwegError(
            "bad-format",
            f"the format `{text}` has no field",
            place="--format-string",
            expected="the format of varnishncsa -F, in single quotes for the shell",
            hint="--format-string '%h %t %D %s %O %{VCL_Log:tcpi2}x'",
        )
    return LineForm(parts, text)


def _info(text: str) -> dict[str, int]:
    """Parse the text that `tcp.dump_info()` logs.

    >>> _info("pmtu=1500 rtt=152000 rttvar=76000 snd_cwnd=10")["rtt"]
    152000
    """
    pairs = (word.partition("=") for word in text.split())
    return {name: int(value) for name, _, value in pairs if value.isdecimal() and len(value) <= values.MAX_DIGITS}
