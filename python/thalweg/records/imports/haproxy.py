"""HAProxy's logs: a line per request, which becomes a transfer, or in mode tcp a line per connection.

The connection is the one to the client. HAProxy reads its clock when the last byte is in the socket's send buffer, so
the logged time is a duration, not a completion time.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from thalweg.records.imports import times, values
from thalweg.records.imports.addresses import ends
from thalweg.records.imports.haproxy_format import HTTP, TCP, HaproxyFormat
from thalweg.records.imports.items import ImportedRow, Item, NotARecord, SourceFile, Unread
from thalweg.records.imports.mapped import Mapped, mapped_row, of_fields
from thalweg.records.imports.prefixes import log_items
from thalweg.records.schema import CLOSE, TRANSFER

OF_HTTP = {"ST", "TR", "Ta", "tr", "trg", "trl", "r", "HM", "HU", "HV", "HP", "HPO", "HQ"}
"""Fields of requests, which a connection lacks."""
SPANS = (("Ta", ("trl", "trg", "tr")), ("Tt", ("Tl", "T", "t", "Ts")))
"""Duration fields, and the start times that they refer to, those with a time zone first."""
TIMERS = ("TR", "Th", "Ti", "Tq", "Tw", "Tc", "Tr", "Td", "Ta", "Tt", "Tu")
RTTS = {"fc_rtt(us)": 1.0, "fc_rtt": 1e3, "fc_rtt(ms)": 1e3}
"""Fields with the RTT of the client's connection, and the sizes of their units in microseconds."""


class Haproxy:
    """Importer of logs in a given format, or in those of `option httplog` and `option tcplog`."""

    source = "haproxy"
    shows_cuts = False
    fills = (
        "end_us", "connection", "kind", "transfer", "source", "machine", "start_us", "duration_us", "ip_version",
        "local_address", "local_port", "remote_address", "remote_port", "direction", "sent_bytes", "received_bytes",
        "reordering", "rtt_smoothed_us",
    )  # fmt: skip
    """Columns that the importer can fill without a map."""
    hint = "set the format with --format-string '...', as in log-format in haproxy.cfg"

    def __init__(self, form: str = "", mapped: Sequence[Mapped] = ()) -> None:
        """Create an importer from the text of `log-format` and a map of its fields to additional columns.

        Without a format, the formats of `option httplog` and `option tcplog` apply.

        Raises:
            ThalwegError: If the format is invalid or lacks a field of the map.
        """
        self._formats = [HaproxyFormat(form)] if form else [HaproxyFormat(HTTP), HaproxyFormat(TCP)]
        self.expected = " or ".join(f"lines of the format {format_.text}" for format_ in self._formats)
        names = set[str]().union(*(format_.names for format_ in self._formats))
        plain = [replace(column, source=re.sub(r"^%\[(.*)\]$", r"%\1", column.source)) for column in mapped]
        self._mapped = of_fields(plain, names, "%")

    def read(self, source: SourceFile) -> Iterator[Item]:
        """Read a log."""
        return log_items(source, self._row)

    def _row(self, number: int, line: str) -> ImportedRow:
        first: Unread | None = None
        for form in self._formats:
            try:
                return self._of_fields(number, form.read(line))
            except Unread as why:
                first = first or why
        raise first or Unread("does not match the format")

    def _of_fields(self, number: int, fields: Mapping[str, str]) -> ImportedRow:
        timers = {name: _timer(fields[name]) for name in TIMERS if name in fields}
        is_http = bool(OF_HTTP & fields.keys())
        start, duration = _span(fields, timers)
        rtt = next(((fields[name], unit) for name, unit in RTTS.items() if name in fields), ("-", 1.0))
        return {
            "start_us": start,
            "end_us": None if start is None or duration is None else times.later(start, duration),
            "duration_us": duration,
            "connection": number,
            "kind": TRANSFER if is_http else CLOSE,
            "transfer": 0 if is_http else None,
            "machine": None if fields.get("H", "-") in values.NOTHING else fields["H"],
            **_end("local", fields, "fi", "fp"),
            **_end("remote", fields, "ci", "cp"),
            "direction": "in",
            "sent_bytes": values.count(_complete(fields.get("B", "-"))),
            "received_bytes": values.count(_complete(fields.get("U", "-"))),
            "reordering": values.count(fields.get("fc_reordering", "-")) or None,
            # The kernel's smoothed RTT is 0 until the first sample.
            "rtt_smoothed_us": values.count(*rtt) or None,
            **mapped_row(self._mapped, lambda name: fields.get(name, "-")),
        }


def _complete(text: str) -> str:
    if text.startswith("+"):
        raise NotARecord("lines that were logged before the end (option logasap)")
    return text


def _timer(text: str) -> int | None:
    """Parse a time in milliseconds as microseconds; None for -1, which means that the phase was not completed."""
    return None if text == "-1" else values.count(_complete(text), 1e3)


def _span(fields: Mapping[str, str], timers: Mapping[str, int | None]) -> tuple[int | None, int | None]:
    """Return the start and the duration of a request or a connection; None if unknown.

    Raises:
        Unread: If the format lacks one of them.
    """
    for timer, clocks in SPANS:
        clock = next((name for name in clocks if name in fields), None)
        if timer in timers and clock is not None:
            return _instant(fields, clock), timers[timer]
    if not {name for _, clocks in SPANS for name in clocks} & fields.keys():
        raise Unread("the format has no time: neither %tr with %Ta, nor %t with %Tt")
    raise Unread("the format has no duration that counts from its time: %tr needs %Ta, and %t needs %Tt")


def _instant(fields: Mapping[str, str], name: str) -> int | None:
    """Parse a date and time; milliseconds may be in a separate field."""
    at = times.instant(fields[name])
    if name in ("t", "tr") or at is None:
        return at
    return times.later(at, (values.count(fields.get("ms", "-"), 1e3) or 0))


def _end(side: str, fields: Mapping[str, str], address: str, port: str) -> ImportedRow:
    host = fields.get(address, "-")
    return ends(side, "-" if host == "unix" else host, "-" if host == "unix" else fields.get(port, "-"))
