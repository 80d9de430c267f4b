"""Dumps of `ss -tin`, and the output of `ss -E` about closing connections.

An open connection becomes an interim row, which replaces that of the previous dump; a close in `ss -E` becomes a row of
the complete connection. The time of a dump is taken from the last line with a time before it. Without such a line, it
is the importer's `at_us`, or else the file's modification time, which is reported.

The kernel counts SYN and FIN among the bytes acknowledged, which is corrected if the bytes sent are known. It does not
report the algorithm of a closing connection, which is therefore taken from an earlier sample in the same import.
"""

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b

import polars as pl

from thalweg.records.imports import ss_columns, ss_sockets, times, values
from thalweg.records.imports.addresses import Address, Addresses, endpoint
from thalweg.records.imports.blocks import Block, RowBlock
from thalweg.records.imports.items import (
    NOTE,
    Assumed,
    ImportedRow,
    Item,
    NotARecord,
    SourceFile,
    Unknown,
    Unread,
    item,
)
from thalweg.records.imports.ss_columns import SocketRow
from thalweg.records.imports.ss_fields import Fields
from thalweg.records.imports.ss_sockets import HEADINGS, OTHERS, STATES, Socket, TimeLine, pieces
from thalweg.records.schema import CLOSE, INTERIM

CLOSED = "UNCONN"
NO_INFO = {
    "LISTEN": "listening sockets",
    "SYN-SENT": "connections that are not open yet",
    "SYN-RECV": "connections that are not open yet",
    "TIME-WAIT": "connections in TIME-WAIT, which have no TCP information",
}
"""States without counters, and their descriptions."""
NO_STATE = "kind: the dump has no column State, and the connection counts as open"
OF_FILE = "when the file was last written, because no line before it has a time"

PROCESSES = re.compile(r"users:\(\((?:(?!users:\(\().)*?\)\)(?=\s|$)")
"""Matches lists of process names, which may contain any characters; a match does not extend into the next list."""
ENDPOINT = re.compile(r"(.+):(\d+|\*|[\w-]+)")
MAX_SEEN = 2**18
"""Maximum number of connections whose last sample is remembered."""
BLOCK_ROWS = 2**12
SAMPLES_US = 1_000_000
"""Samples of one connection within this time keep their order, because `date +%s` has a resolution of seconds."""


@dataclass(frozen=True)
class Seen:
    """The last sample of a connection."""

    cc: str | None = None
    at_us: int = -1


UNSEEN = Seen()


class Ss:
    """Importer of ss dumps."""

    source = "ss"
    shows_cuts = False
    fills = (
        "end_us", "connection", "kind", "source", "ip_version", "local_address", "local_port", "remote_address",
        "remote_port", "cgroup", "cc", "sent_bytes", "acked_bytes", "received_bytes", "retransmitted_bytes", "segments",
        "retransmits", "segments_out", "segments_in", "reordering", "reorderings", "ecn", "ce_packets", "mss_bytes",
        "rtt_min_us", "rtt_smoothed_us", "delivery_rate_bps", "delivery_rate_app_limited", "busy_us",
        "rwnd_limited_us", "sndbuf_limited_us", "busy_goodput_bps", "bbr_bw_bps", "bbr_min_rtt_us",
    )  # fmt: skip
    expected = "the output of ss -tin or ss -E -tin"
    hint = "ss -tine > dump.txt, while connections are open"

    def __init__(self, at_us: int | None = None) -> None:
        """Create an importer; `at_us` is the UNIX time of dumps without a time; None: the modification time of the
        file.
        """
        self._at_us = at_us
        self._seen: dict[int, Seen] = {}

    def read(self, source: SourceFile) -> Iterator[Item]:
        """Parse dumps."""
        for socket_or_item in self._timed(source):
            yield (
                socket_or_item
                if isinstance(socket_or_item, Item)
                else item(socket_or_item[0].line, self._row, *socket_or_item)
            )

    def blocks(self, source: SourceFile) -> Iterator[Block]:
        """Parse dumps in blocks of sockets."""
        sockets = self._timed(source)
        while block := list(itertools.islice(sockets, BLOCK_ROWS)):
            yield RowBlock(list(self._rows(block)), _columns, self._again)

    def _timed(self, source: SourceFile) -> Iterator[tuple[Socket, int | None] | Item]:
        at_us = self._at_us
        is_lost = is_fresh = False
        for piece in pieces(source):
            if isinstance(piece, TimeLine):
                if piece.unread is not None:
                    yield Item(piece.line, unread=piece.unread)
                    if is_fresh:
                        # Another line with a time follows the parsed one, such as the output of uptime.
                        continue
                at_us = self._at_us if piece.at_us is None else piece.at_us
                is_lost, is_fresh = at_us is None, piece.at_us is not None
                continue
            is_fresh = False
            if at_us is None and not is_lost:
                at_us = Assumed(source.changed_us, OF_FILE)
            yield piece, at_us

    def _rows(self, block: Sequence[tuple[Socket, int | None] | Item]) -> Iterator[tuple[int, SocketRow] | Item]:
        """Yield regular sockets, with values derived from earlier samples, and all others as items."""
        texts = [None if isinstance(entry, Item) or not _may_be_usual(*entry) else entry[0].text for entry in block]
        keys = ss_columns.keys(pl.Series(texts, dtype=pl.String))
        for entry, text, (is_usual, connection, cc, is_closed) in zip(block, texts, keys.iter_rows(), strict=True):
            if isinstance(entry, Item):
                yield entry
                continue
            socket, at_us = entry
            if is_usual and text is not None and at_us is not None and _has_addresses(text):
                at_us, cc = self._follow(connection, at_us, cc, is_closed=is_closed)
                yield socket.line, SocketRow(text, at_us, connection, cc, is_closed)
            else:
                yield item(socket.line, self._row, socket, at_us)

    def _again(self, line: int, row: SocketRow) -> Item:
        """Parse a regular socket individually, with the values that were already derived from earlier samples."""
        return item(line, self._row, Socket(line, row.text), row.at_us, row)

    def _row(self, socket: Socket, at_us: int | None, followed: SocketRow | None = None) -> ImportedRow:
        if len(socket.text) > ss_sockets.LONGEST_SOCKET:
            raise Unread(f"it is longer than {ss_sockets.LONGEST_SOCKET:,} characters")
        words = PROCESSES.sub("", socket.text).split()
        words = words[1:] if words[:1] in (["tcp"], ["mptcp"]) else words
        state = _state(words)
        words = words if state is None else words[1:]
        if len(words) < 4 or not (words[0].isdecimal() and words[1].isdecimal()):
            raise Unread("two queues and two addresses should follow the state")
        local, local_port = _endpoint(words[2])
        remote, remote_port = _endpoint(words[3])
        if words[3].endswith(":*"):
            raise NotARecord(NO_INFO["LISTEN"])
        fields = Fields(words[4:], is_cut=socket.is_cut)
        if not fields.has_info:
            raise NotARecord("connections without TCP information: ss needs -i")
        if state is None and not fields.has_rtt:
            raise NotARecord(NO_INFO["SYN-SENT"])
        if socket.is_ambiguous:
            raise Unread("its text was wrapped ambiguously: ss needs a pipe or a wider terminal")
        if at_us is None:
            raise Unread("the time in the line before it cannot be read")
        connection = fields.cookie
        if connection is None:
            digest = blake2b(f"{words[2]} {words[3]}".encode(errors="replace"), digest_size=8)
            connection = int.from_bytes(digest.digest())
        is_closed = state == CLOSED
        if followed is None:
            at_us, cc = self._follow(connection, at_us, fields.cc, is_closed=is_closed)
        else:
            at_us, cc = followed.at_us, followed.cc
        return {
            "end_us": at_us,
            "connection": connection,
            "kind": CLOSE if is_closed else INTERIM,
            NOTE: Unknown(NO_STATE) if state is None else None,
            "local_address": local,
            "local_port": local_port,
            "remote_address": remote,
            "remote_port": remote_port,
            "cc": cc,
            **fields.columns(),
        }

    def _follow(self, connection: int, at_us: int, cc: str | None, *, is_closed: bool) -> tuple[int, str | None]:
        """Record a sample of a connection; return its time and algorithm, adjusted by the previous sample.

        A time that equals the previous sample's, or is earlier by less than `SAMPLES_US`, becomes 1 us later than it.
        """
        before = self._seen.pop(connection, UNSEEN)
        if 0 <= before.at_us - at_us < SAMPLES_US:
            at_us = times.later(at_us, before.at_us + 1 - at_us)
        if is_closed:
            return at_us, cc or before.cc
        self._remember(connection, Seen(cc or before.cc, int(at_us)))
        return at_us, cc

    def _remember(self, connection: int, sample: "Seen") -> None:
        if len(self._seen) >= MAX_SEEN:
            self._seen.pop(next(iter(self._seen)))
        self._seen[connection] = sample


def _may_be_usual(socket: Socket, at_us: int | None) -> bool:
    """Return whether a socket may be regular; its text is not checked."""
    is_whole = not (socket.is_cut or socket.is_ambiguous or len(socket.text) > ss_sockets.LONGEST_SOCKET)
    return is_whole and at_us is not None


def _has_addresses(text: str) -> bool:
    """Return whether the addresses in brackets of a regular socket are valid."""
    if "[" not in text:
        return True
    try:
        for end in text.split(None, 5)[3:5]:
            _endpoint(end)
    except Unread:
        return False
    return True


def _columns(addresses: Addresses, numbers: pl.Series, rows: Sequence[SocketRow]) -> pl.DataFrame:
    return ss_columns.columns(addresses, rows, _host)


def _host(text: str) -> ImportedRow:
    address, _ = _endpoint(f"{text}:0")
    return {"local_address": address, "remote_address": address}


def _state(words: list[str]) -> str | None:
    """Return the state of a socket, the first word; `None` if ss omits it because only one state was requested.

    Raises:
        NotARecord: For headings, sockets that are not TCP, and states without counters.
        Unread: For other lines.
    """
    if not words:
        raise Unread("not a line of ss output")
    if words[0] in OTHERS:
        raise NotARecord("sockets that are not TCP")
    if words[0] in HEADINGS:
        raise NotARecord("headings")
    if words[0] in NO_INFO:
        raise NotARecord(NO_INFO[words[0]])
    if words[0] in STATES:
        return words[0]
    if len(words) > 1 and words[0].isdecimal() and words[1].isdecimal():
        return None
    raise Unread("not a line of ss output", f"`{words[0]}`")


def _endpoint(text: str) -> tuple[Address | None, int | Unknown | None]:
    match = ENDPOINT.fullmatch(text)
    if match is None:
        raise Unread("not an address with a port", f"`{text}`")
    host, port = match.groups()
    if host.partition("%")[0] == "*":
        return None, None
    try:
        address, _ = endpoint(host)
    except Unread:
        raise Unread("a name instead of an address: ss needs -n", f"`{host}`") from None
    if not (port.isdecimal() and port.isascii()):
        return address, None if port == "*" else Unknown("a service name instead of a number: ss needs -n")
    return address, values.count(port)
