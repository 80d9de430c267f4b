"""Rows of M-Lab's NDT: downloads of ndt7, in which a server of M-Lab sends for ten seconds at the maximum rate.

Input are rows of BigQuery (`ndt.ndt7`, `ndt.unified_downloads`) exported as JSON lines or as CSV, and the files that
ndt-server itself writes. A connection ends after a fixed time, so it becomes a record of a connection with its goodput
while sending, not a transfer with a completion time. ndt7 uploads are excluded: the sender is the client, whose TCP
state the server lacks.
"""

import csv
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b

from pydantic import JsonValue

from thalweg.records.imports import ndt_columns, times, values
from thalweg.records.imports.addresses import ends
from thalweg.records.imports.blocks import Block, RowBlock
from thalweg.records.imports.items import (
    BLOCK,
    TOO_LONG,
    Assumed,
    ImportedRow,
    Item,
    Lines,
    NotARecord,
    SourceFile,
    Unread,
    is_cut,
    item,
    rows_of_csv,
)
from thalweg.records.imports.json_values import NO_JSON, NOT_JSON, JsonObject, values_of_json
from thalweg.records.schema import CLOSE

MARKS_S = (1, 3, 10, 30)
"""Seconds after the opening for which records have a column of acknowledged bytes."""
ECN = 8
"""TCPI_OPT_ECN in the options of TCP_INFO (include/uapi/linux/tcp.h)."""
LARGEST_FIELD = 2**24
"""Maximum characters of a CSV field, which may hold an entire time series as JSON."""
TOO_MANY = "\0"
"""Key of CSV fields beyond those of the heading."""


class Ndt:
    """Importer of ndt7 downloads."""

    source = "ndt"
    shows_cuts = True
    fills = (
        "end_us", "connection", "kind", "source", "machine", "start_us", "duration_us", "ip_version", "local_address",
        "local_port", "remote_address", "remote_port", "direction", "cc", "sent_bytes", "acked_bytes",
        "received_bytes", "retransmitted_bytes", "segments", "retransmits", "segments_out", "segments_in",
        "reordering", "reorderings", "ecn", "ce_packets", "mss_bytes", "rtt_min_us", "rtt_smoothed_us",
        "delivery_rate_bps", "delivery_rate_app_limited", "busy_us", "rwnd_limited_us", "sndbuf_limited_us",
        "busy_goodput_bps", "acked_1s_bytes", "acked_3s_bytes", "acked_10s_bytes", "acked_30s_bytes", "bbr_bw_bps",
        "bbr_min_rtt_us",
    )  # fmt: skip
    expected = "rows of ndt7 as JSON, one per line or in a list, or as CSV with a heading"
    hint = "bq query --format=json 'SELECT * FROM `measurement-lab.ndt.unified_downloads` WHERE date = ... LIMIT 1000'"

    def read(self, source: SourceFile) -> Iterator[Item]:
        """Parse rows."""
        number, head = _first(source.text)
        begin = head.strip()
        is_whole = not is_cut(head)
        if is_whole and begin.startswith("{") and begin.endswith("}"):
            yield from self._of_json_lines(number, head, source.text)
        elif begin.startswith(("{", "[")):
            for line, value in values_of_json(number, itertools.chain([head], iter(source.text.piece, ""))):
                yield value if isinstance(value, Item) else item(line, self._row, value)
        elif is_whole and begin:
            yield from self._of_csv(head, source.text)
        elif begin:
            yield Item(number, unread=Unread(TOO_LONG))

    def blocks(self, source: SourceFile) -> Iterator[Block] | None:
        """Read rows in blocks; `None` unless the first line is a JSON object."""
        head = source.text.peek()
        begin = head.strip()
        if is_cut(head) or not (begin.startswith("{") and begin.endswith("}")):
            return None
        return self._blocks(source.text)

    def _blocks(self, text: Lines) -> Iterator[Block]:
        block: list[tuple[int, str] | Item] = []
        size = 0
        for number, line in enumerate(text, 1):
            if text.was_cut():
                block.append(Item(number, unread=Unread(TOO_LONG)))
            elif line.strip():
                block.append((number, line))
                size += len(line)
            if size >= BLOCK:
                yield RowBlock(block, ndt_columns.columns, self._item)
                block, size = [], 0
        yield RowBlock(block, ndt_columns.columns, self._item)

    def _item(self, number: int, line: str) -> Item:
        return item(number, lambda text: self._row(_decoded(text)), line)

    def _of_json_lines(self, first: int, head: str, text: Lines) -> Iterator[Item]:
        for number, line in enumerate(itertools.chain([head], text), first):
            if text.was_cut():
                yield Item(number, unread=Unread(TOO_LONG))
            elif line.strip():
                yield self._item(number, line)

    def _of_csv(self, head: str, text: Lines) -> Iterator[Item]:
        csv.field_size_limit(LARGEST_FIELD)
        reader = csv.DictReader(itertools.chain([head], text), restkey=TOO_MANY)
        try:
            _ = reader.fieldnames
        except csv.Error as error:
            yield Item(1, unread=Unread(f"not CSV: {error}"))
            return
        for row_or_item in rows_of_csv(reader, text, lambda row: TOO_MANY not in row and None not in row.values()):
            yield (
                row_or_item
                if isinstance(row_or_item, Item)
                else item(row_or_item[0], lambda flat: self._row(_nested(flat)), row_or_item[1])
            )

    def _row(self, row: JsonValue) -> ImportedRow:
        if not isinstance(row, dict):
            raise Unread("not a JSON object")
        fields = _Row(row)
        download = fields.first("raw.Download", "Download")
        upload = fields.first("raw.Upload", "Upload")
        if upload and not download:
            raise NotARecord("uploads: their sender is the client")
        series = _series(download)
        ends = {name: value for name, value in _ends(fields).items() if value is not None}
        row_values = {**_summary(fields), **_counters(series), **_marks(series), **ends}
        if row_values.get("busy_goodput_bps") is None and not row_values.get("busy_us"):
            # An ndt7 server is not application-limited, so the mean throughput is that while sending.
            row_values["busy_goodput_bps"] = fields.number(1e6, "a.MeanThroughputMbps", "MeanThroughputMbps")
        if row_values.get("acked_bytes") is None and row_values.get("busy_goodput_bps") is None:
            raise Unread("it has neither a throughput nor a time series of TCP_INFO")
        uuid = fields.first("a.UUID", "raw.Download.UUID", "Download.UUID", "id", "UUID")
        if not uuid:
            raise Unread("it has no UUID")
        digest = blake2b(str(uuid).encode(errors="replace"), digest_size=8)
        return {"connection": int.from_bytes(digest.digest()), "kind": CLOSE, "direction": "in", **row_values}


def _decoded(text: str) -> JsonValue:
    try:
        value: JsonValue = json.loads(text)
    except NO_JSON as error:
        raise Unread(NOT_JSON, str(error)) from None
    return value


def _first(text: Lines) -> tuple[int, str]:
    """Return the first non-empty line, or a piece of it, with its number; the line is empty if all lines are."""
    for number in itertools.count(1):
        piece = text.piece()
        if not piece or piece.strip():
            return number, piece
    raise AssertionError("numbers have no end")


class _Row:
    """A row whose fields may be nested or have flat names."""

    def __init__(self, row: JsonObject) -> None:
        self._row = row

    def first(self, *paths: str) -> JsonValue:
        """Return the first of these fields that exists and is neither null nor empty; None without such a field."""
        for path in paths:
            value: JsonValue = self._row
            for name in path.split("."):
                value = value.get(name) if isinstance(value, dict) else None
            if value not in (None, ""):
                return value
        return None

    def number(self, unit: float, *paths: str) -> float | None:
        """Return the number in the first of these fields that exists, multiplied by the factor `unit`.

        Returns:
            None if no field exists or the value is unknown.

        Raises:
            Unread: It is not a number.
        """
        value = self.first(*paths)
        return None if value is None else values.number(str(value), unit)

    def time(self, *paths: str) -> int | None:
        """Return the time in the first of these fields that exists, as UNIX time in microseconds.

        Returns:
            None if no field exists or the value is unknown.

        Raises:
            Unread: It is not a time, or the date is ambiguous.
        """
        value = self.first(*paths)
        return None if value is None else times.instant(str(value))


def _ends(row: _Row) -> ImportedRow:
    site, machine = row.first("server.Site"), row.first("server.Machine")
    name = f"{machine}-{site}" if site and machine else machine or site
    start = row.time("raw.Download.StartTime", "Download.StartTime", "a.TestTime", "TestTime")
    end = row.time("raw.Download.EndTime", "Download.EndTime")
    if end is None and start is not None:
        end = Assumed(start, ndt_columns.START_IS_END)
        start = None
    return {
        "start_us": start,
        "end_us": end,
        "duration_us": None if start is None or end is None else max(0, end - start),
        "machine": None if name is None else str(name),
        **_end("local", row, "Server"),
        **_end("remote", row, "Client"),
    }


def _end(side: str, row: _Row, name: str) -> ImportedRow:
    of_view = name.lower()
    address = row.first(f"raw.{name}IP", f"{name}IP", f"{of_view}.IP")
    port = row.first(f"raw.{name}Port", f"{name}Port", f"{of_view}.Port")
    return ends(side, "-" if address is None else str(address), "-" if port is None else str(port))


def _summary(row: _Row) -> ImportedRow:
    cc = row.first("a.CongestionControl", "CongestionControl")
    return {
        "cc": None if cc is None else str(cc),
        "rtt_min_us": _rounded(row.number(1e3, "a.MinRTT", "MinRTT")),
    }


def _series(download: JsonValue) -> list[JsonObject]:
    """Return the server's measurements, which a row lists in order of time."""
    measured = download.get("ServerMeasurements") if isinstance(download, dict) else None
    if isinstance(measured, str):
        try:
            measured = json.loads(measured)
        except NO_JSON:
            raise Unread("ServerMeasurements are not JSON") from None
    return (
        [measurement for measurement in measured if isinstance(measurement, dict)]
        if isinstance(measured, Sequence)
        else []
    )


def _counters(series: Sequence[JsonObject]) -> ImportedRow:
    """Return the counters of the last TCP_INFO, and the last BBR state; rates are converted from bytes to bits."""
    info = _last(series, "TCPInfo")
    if info is None:
        return {}
    bbr = _last(series, "BBRInfo") or {}
    options = _of(info, "Options")
    counters = {
        "duration_us": _of(info, "ElapsedTime"),
        "sent_bytes": _of(info, "BytesSent"),
        "acked_bytes": _of(info, "BytesAcked"),
        "received_bytes": _of(info, "BytesReceived"),
        "retransmitted_bytes": _of(info, "BytesRetrans"),
        "segments": _of(info, "DataSegsOut"),
        "retransmits": _of(info, "TotalRetrans"),
        "segments_out": _of(info, "SegsOut"),
        "segments_in": _of(info, "SegsIn"),
        "reordering": _of(info, "Reordering"),
        "reorderings": _of(info, "ReordSeen"),
        "ecn": None if options is None else bool(options & ECN),
        "ce_packets": _of(info, "DeliveredCE"),
        "mss_bytes": _of(info, "SndMSS"),
        "rtt_min_us": _of(info, "MinRTT") or None,
        "rtt_smoothed_us": _of(info, "RTT") or None,
        "delivery_rate_bps": _bits(_of(info, "DeliveryRate")),
        "delivery_rate_app_limited": None if info.get("AppLimited") is None else bool(_of(info, "AppLimited")),
        "busy_us": _of(info, "BusyTime"),
        "rwnd_limited_us": _of(info, "RWndLimited"),
        "sndbuf_limited_us": _of(info, "SndBufLimited"),
        "bbr_bw_bps": _bits(_of(bbr, "BW")),
        "bbr_min_rtt_us": values.sampled_us(_of(bbr, "MinRTT")),
    }
    return {name: value for name, value in counters.items() if value is not None}


def _last(series: Sequence[JsonObject], name: str) -> JsonObject | None:
    return next((member for measurement in reversed(series) if isinstance(member := measurement.get(name), dict)), None)


def _marks(series: Sequence[JsonObject]) -> ImportedRow:
    """Return the bytes acknowledged at fixed times after the opening, interpolated linearly between measurements."""
    points = [(0, 0)]
    for measurement in series:
        info = measurement.get("TCPInfo")
        if isinstance(info, dict):
            at, acked = _of(info, "ElapsedTime"), _of(info, "BytesAcked")
            if at is not None and acked is not None and at > points[-1][0]:
                points.append((at, acked))
    marks: ImportedRow = {}
    for mark in MARKS_S:
        for (before, low), (after, high) in itertools.pairwise(points):
            if before < mark * 1_000_000 <= after:
                marks[f"acked_{mark}s_bytes"] = round(
                    low + (high - low) * (mark * 1_000_000 - before) / (after - before)
                )
    return marks


def _of(info: JsonObject, name: str) -> int | None:
    value = info.get(name)
    return None if value is None else values.count(str(value))


def _bits(per_second: int | None) -> int | None:
    return None if per_second is None else 8 * per_second


def _rounded(value: float | None) -> int | None:
    return None if value is None else values.count(str(round(value)))


def _nested(row: Mapping[str, str]) -> dict[str, JsonValue]:
    """Nest the columns of a CSV: `a.MinRTT`, or `a_MinRTT` as BigQuery names it in flattened results.

    Raises:
        Unread: If the row has more fields than the heading.

    >>> _nested({"a.MinRTT": "3", "client_Network_ASNumber": "64500", "UUID": "x"})
    {'a': {'MinRTT': '3'}, 'client': {'Network': {'ASNumber': '64500'}}, 'UUID': 'x'}
    """
    nested: dict[str, JsonValue] = {}
    for heading, value in row.items():
        if heading == TOO_MANY:
            raise Unread("number of fields differs from that of the heading")
        if value in (None, ""):
            continue
        *folders, name = heading.strip().replace(".", "_").split("_")
        table = nested
        for folder in folders:
            inner = table.setdefault(folder, {})
            table = inner if isinstance(inner, dict) else {}
        table[name] = value
    return nested
