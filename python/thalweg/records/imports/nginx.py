"""nginx's access logs: a line per request, which becomes a transfer, or of its stream module a line per connection.

nginx reads its clock when the last byte is in the socket's send buffer, and the time includes waiting for the upstream.
$request_time is therefore the row's duration, not a completion time. The RTT is sampled when the line is written.
"""

from collections.abc import Iterator, Sequence
from functools import partial

import polars as pl

from thalweg.records.imports import times, values
from thalweg.records.imports.addresses import Addresses, ends
from thalweg.records.imports.blocks import Block
from thalweg.records.imports.items import ImportedRow, Item, NotARecord, SourceFile, Unread
from thalweg.records.imports.log_columns import LineColumns, log_blocks
from thalweg.records.imports.mapped import OF_SERVERS, Mapped, mapped_row, of_fields
from thalweg.records.imports.mapped_columns import by_field, has_unread_constants, present, with_mapped
from thalweg.records.imports.nginx_config import COMBINED, line_form
from thalweg.records.imports.prefixes import LogLines, log_items
from thalweg.records.imports.vectorized import Amounts, Conversion, Counts, Ends, Instants, OneText, Ports, Words
from thalweg.records.schema import CLOSE, TRANSFER

STREAM = {"session_time", "protocol", "bytes_received"}
"""Variables that only the stream module has."""
TIMES = ("msec", "time_iso8601", "time_local")
"""Variables with the time at which the line was written, the most precise one first."""


class Nginx:
    """Importer of access logs with one format."""

    source = "nginx"
    shows_cuts = False
    fills = (
        "end_us", "connection", "kind", "transfer", "source", "machine", "start_us", "duration_us", "ip_version",
        "local_address", "local_port", "remote_address", "remote_port", "direction", "sent_bytes", "received_bytes",
        "rtt_smoothed_us",
    )  # fmt: skip
    """Columns that the importer can fill without a map."""
    hint = "set the format with --config /etc/nginx/nginx.conf, or with --format-string '...', as in log_format"

    def __init__(self, form: str = COMBINED, mapped: Sequence[Mapped] = ()) -> None:
        """Create an importer from the text of `log_format` in nginx.conf and a map of its variables to additional
        columns.

        Raises:
            ThalwegError: If the format is invalid or lacks a variable of the map.
        """
        self.expected = f"lines of the format {form}"
        self._form = line_form(form)
        self._time = next((name for name in TIMES if name in self._form.names), None)
        self._is_stream = bool(STREAM & self._form.names)
        self._mapped = of_fields(mapped, self._form.names, "$")

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
            (self._time, Instants("end_us")),
            ("connection", Counts("connection")),
            ("connection_requests", Counts("requests")),
            ("hostname", Words("machine")),
            ("session_time" if "session_time" in names else "request_time", Amounts("duration_us", 1e6)),
            ("server_addr", Ends("local_address", addresses, partial(ends, "local"))),
            ("server_port", Ports("local_port")),
            ("remote_addr", Ends("remote_address", addresses, partial(ends, "remote"))),
            ("remote_port", Ports("remote_port")),
            ("bytes_sent" if "bytes_sent" in names else "body_bytes_sent", Counts("sent_bytes")),
            ("request_length" if "request_length" in names else "bytes_received", Counts("received_bytes")),
            ("tcpinfo_rtt", Counts("rtt_smoothed_us")),
            ("protocol", OneText("TCP")),
        ]
        return LineColumns(self._form, by_field(own_columns, self._mapped, OF_SERVERS, addresses))

    def _columns(self, addresses: Addresses, lines: pl.Series, numbers: pl.Series) -> pl.DataFrame:
        frame = present(self._fields(addresses).read(lines), "connection", "requests", "rtt_smoothed_us")
        connection, requests = pl.col("connection"), pl.col("requests")
        transfer_number = pl.when(connection.is_null()).then(0).otherwise((requests - 1).clip(0))
        frame = frame.with_columns(
            pl.coalesce(connection.cast(pl.UInt64), numbers).alias("connection"),
            kind=pl.lit(CLOSE if self._is_stream else TRANSFER),
            transfer=pl.lit(None) if self._is_stream else transfer_number,
            direction=pl.lit("in"),
            rtt_smoothed_us=pl.when(pl.col("rtt_smoothed_us") > 0).then("rtt_smoothed_us"),
        )
        return with_mapped(frame, self._mapped, OF_SERVERS, addresses)

    def _row(self, number: int, line: str) -> ImportedRow:
        fields = self._form.read(line)
        if fields.get("protocol", "TCP") != "TCP":
            raise NotARecord("sessions that are not TCP")
        mapped = mapped_row(self._mapped, fields.__getitem__)
        if self._time is None and not {"end_us", "start_us"} & mapped.keys():
            raise Unread("the format has no time: none of $msec, $time_iso8601 and $time_local")
        connection = values.count(fields.get("connection", "-"))
        requests = values.count(fields.get("connection_requests", "-"))
        sent = fields.get("bytes_sent", fields.get("body_bytes_sent", "-"))
        return {
            "end_us": times.instant(fields[self._time]) if self._time else None,
            "connection": number if connection is None else connection,
            "kind": CLOSE if self._is_stream else TRANSFER,
            "transfer": None if self._is_stream else _place(connection, requests),
            "machine": _text(fields.get("hostname")),
            "duration_us": values.count(fields.get("session_time", fields.get("request_time", "-")), 1e6),
            **ends("local", fields.get("server_addr", "-"), fields.get("server_port", "-")),
            **ends("remote", fields.get("remote_addr", "-"), fields.get("remote_port", "-")),
            "direction": "in",
            "sent_bytes": values.count(sent),
            "received_bytes": values.count(fields.get("request_length", fields.get("bytes_received", "-"))),
            # The kernel's smoothed RTT is 0 until the first sample.
            "rtt_smoothed_us": values.count(fields.get("tcpinfo_rtt", "-")) or None,
            **mapped,
        }


def _place(connection: int | None, requests: int | None) -> int | None:
    """Return the index of a transfer within its connection: 0 without a connection number, None without a count."""
    return 0 if connection is None else None if requests is None else max(0, requests - 1)


def _text(value: str | None) -> str | None:
    return None if value is None or value in values.NOTHING else value
