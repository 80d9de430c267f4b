"""Dumps of `ss -tin`, and what `ss -E` prints of connections that close.

A connection that is open gives an interim row, and each dump replaces the one before it; one that `ss -E` saw closing
gives a row of a whole connection. A dump says nothing of its own time: a line with nothing but a time stands for all
that follow it, and without one it is the time at which the file was written.

ss leaves out what is zero. Which counters the kernel has shows from those that it prints; of an older kernel a counter
that is not there stays empty. The kernel counts SYN and FIN among the bytes acknowledged, which is undone here. It has
forgotten the algorithm of a connection that closes: it is known only of one that a dump of the same import saw open.
"""

import re
import sys
from collections.abc import Iterator
from hashlib import blake2b
from typing import Any

from thalweg.records.imports import values
from thalweg.records.imports.addresses import parsed
from thalweg.records.imports.items import Item, LeftOut, Source, Unread, item
from thalweg.records.schema import CLOSE, INTERIM

OPEN = {"ESTAB", "CLOSE-WAIT", "LAST-ACK", "FIN-WAIT-1", "FIN-WAIT-2", "CLOSING"}
CLOSED = "UNCONN"
NO_INFO = {
    "LISTEN": "listening sockets",
    "SYN-SENT": "connections that are not open yet",
    "SYN-RECV": "connections that are not open yet",
    "TIME-WAIT": "connections in TIME-WAIT: all is forgotten",
}
"""States of which there is nothing to read, and how a person says them."""
OTHERS = ("udp", "u_str", "u_dgr", "u_seq", "nl", "raw", "icmp6", "p_raw", "p_dgr", "v_str", "v_dgr", "tipc", "xdp")
"""What stands in the column Netid for sockets that are not TCP."""

FLAGS = {"ts", "sack", "ecn", "ecnseen", "fastopen", "<->", "-->", "<--", "---", "--"}
"""Words before the first number of a connection that are not its algorithm."""
PROCESSES = re.compile(r"users:\(\(.*?\)\)(?=\s|$)")
"""Names of processes may hold anything."""
BBR = re.compile(r"\bbbr:\(bw:([\d.]+[KMGT]?)bps,mrtt:([\d.]+)")
PREFIXES = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
RATE = re.compile(r"([\d.]+)([KMGT]?)(?:bps)?")
ENDPOINT = re.compile(r"(.+):(\d+|\*|[\w-]+)")
MOST_CCS = 2**18
"""Connections whose algorithm is remembered until they close: those that were seen last."""
LONGEST_SOCKET = 2**20
"""Characters of all that ss says of a socket."""
MOST_DIGITS = 16
"""Hexadecimal digits of a cookie."""
INITIAL_REORDERING = 3
"""Packets: what the kernel assumes until it knows better, and what ss leaves out (RFC 6675: DupThresh)."""


class Ss:
    """Dumps of ss."""

    source = "ss"
    fills = (
        "end_us", "connection", "kind", "source", "ip_version", "local_address", "local_port", "remote_address",
        "remote_port", "cgroup", "cc", "sent_bytes", "acked_bytes", "received_bytes", "retransmitted_bytes", "segments",
        "retransmits", "segments_out", "segments_in", "reordering", "reorderings", "ecn", "ce_packets", "mss_bytes",
        "rtt_min_us", "rtt_smoothed_us", "delivery_rate_bps", "delivery_rate_app_limited", "busy_us",
        "rwnd_limited_us", "sndbuf_limited_us", "busy_goodput_bps", "bbr_bw_bps", "bbr_min_rtt_us",
    )  # fmt: skip
    """Columns that it can fill."""
    expected = "what ss -tin prints, or ss -E -tin, with -n"
    hint = "ss -tine > dump.txt"

    def __init__(self, at_us: int | None = None) -> None:
        """Take the UNIX time of the dumps, where they do not say it themselves; None: when their file was written."""
        self._at_us = at_us
        self._ccs: dict[int, str] = {}

    def read(self, source: Source) -> Iterator[Item]:
        """Read dumps."""
        at_us = self._at_us
        for number, text in _sockets(source):
            if len(text) > LONGEST_SOCKET:
                yield Item(number, unread=f"it is longer than {LONGEST_SOCKET:,} characters")
                continue
            if (said := _time(text)) is not None:
                at_us = said
                continue
            if at_us is None:
                at_us = source.changed_us
            yield item(number, self._row, text, at_us)

    def _row(self, text: str, at_us: int) -> dict[str, Any]:
        words = PROCESSES.sub("", text).split()
        words = words[1:] if words[:1] in (["tcp"], ["mptcp"]) else words
        if not words:
            raise Unread("no state of a connection stands there")
        if words[0] in OTHERS:
            raise LeftOut("sockets that are not TCP")
        if words[0] in ("State", "Netid", "Recv-Q"):
            raise LeftOut("headings")
        if words[0] in NO_INFO:
            raise LeftOut(NO_INFO[words[0]])
        if words[0] not in OPEN and words[0] != CLOSED:
            raise Unread(f"`{words[0]}` is no state of a connection")
        if len(words) < 5 or not (words[1].isdecimal() and words[2].isdecimal()):
            raise Unread("two queues and two addresses should follow the state")
        local, local_port = _endpoint(words[3])
        remote, remote_port = _endpoint(words[4])
        if words[4].endswith(":*"):
            raise LeftOut(NO_INFO["LISTEN"])
        fields = _Fields(words[5:])
        if not fields.has_info:
            raise LeftOut("connections without TCP information: ss needs -i")
        connection = fields.cookie
        if connection is None:
            digest = blake2b(f"{words[3]} {words[4]}".encode(), digest_size=8)
            connection = int.from_bytes(digest.digest())
        is_closed = words[0] == CLOSED
        cc = fields.cc
        if cc is not None:
            self._remember(connection, cc)
        elif is_closed:
            cc = self._ccs.pop(connection, None)
        return {
            "end_us": at_us,
            "connection": connection,
            "kind": CLOSE if is_closed else INTERIM,
            "local_address": local,
            "local_port": local_port,
            "remote_address": remote,
            "remote_port": remote_port,
            "cc": cc,
            **fields.columns(" ".join(words)),
        }

    def _remember(self, connection: int, cc: str) -> None:
        """Keep an algorithm; of too many connections the one that was seen first is forgotten."""
        self._ccs.pop(connection, None)
        if len(self._ccs) >= MOST_CCS:
            self._ccs.pop(next(iter(self._ccs)))
        self._ccs[connection] = sys.intern(cc)


class _Fields:
    """What ss prints of a connection behind its addresses."""

    def __init__(self, words: list[str]) -> None:
        self._words = words
        self._values: dict[str, str] = {}
        for number, word in enumerate(words):
            name, colon, value = word.partition(":")
            if colon:
                self._values.setdefault(name, value)
            elif word == "delivery_rate" and number + 1 < len(words):
                self._values[word] = words[number + 1]
        self.has_info = "rto" in self._values or "rtt" in self._values or "segs_out" in self._values

    @property
    def cookie(self) -> int | None:
        """The kernel's number of the socket, which -e prints."""
        digits = self._values.get("sk", "")
        if len(digits) > MOST_DIGITS:
            raise Unread("its cookie is longer than any")
        try:
            return int(digits, 16)
        except ValueError:
            return None

    @property
    def cc(self) -> str | None:
        """The congestion control: the last plain word before the first number of TCP."""
        last = None
        for word in self._words:
            if word.startswith(("wscale:", "rto:")):
                return last
            if ":" not in word and word not in FLAGS:
                last = word
        return None

    def columns(self, text: str) -> dict[str, Any]:
        """Give values of columns."""
        known = self._values
        has_counters = "segs_out" in known
        segments = self._count("data_segs_out", 0 if has_counters else None)
        # bytes_sent came with Linux 4.19, and with it all that is asked for here.
        is_recent = "bytes_sent" in known or (has_counters and segments == 0)
        zero = 0 if is_recent else None
        sent, again = self._count("bytes_sent", zero), self._count("bytes_retrans", zero)
        acked = self._count("bytes_acked", 0 if has_counters else None)
        if acked is not None and sent is not None and again is not None:
            acked = min(acked, sent - again)
        bbr = BBR.search(text)
        return {
            "cgroup": known.get("cgroup"),
            "sent_bytes": sent,
            "acked_bytes": acked,
            "received_bytes": self._count("bytes_received", 0 if has_counters else None),
            "retransmitted_bytes": again,
            "segments": segments,
            "retransmits": values.count(known["retrans"].partition("/")[2]) if "retrans" in known else 0,
            "segments_out": self._count("segs_out", None),
            "segments_in": self._count("segs_in", 0 if has_counters else None),
            "reordering": self._count("reordering", INITIAL_REORDERING),
            "reorderings": self._count("reord_seen", zero),
            "ecn": "ecn" in self._words,
            "ce_packets": self._count("delivered_ce", zero),
            "mss_bytes": self._count("mss", None),
            "rtt_min_us": self._ms("minrtt", None),
            "rtt_smoothed_us": self._ms("rtt", None),
            "delivery_rate_bps": _rate(known["delivery_rate"]) if "delivery_rate" in known else None,
            "delivery_rate_app_limited": "app_limited" in self._words if "delivery_rate" in known else None,
            "busy_us": self._ms("busy", zero),
            "rwnd_limited_us": self._ms("rwnd_limited", zero),
            "sndbuf_limited_us": self._ms("sndbuf_limited", zero),
            "bbr_bw_bps": _rate(bbr[1]) if bbr else None,
            "bbr_min_rtt_us": values.count(bbr[2], 1e3) if bbr else None,
        }

    def _count(self, name: str, absent: int | None) -> int | None:
        return values.count(self._values[name]) if name in self._values else absent

    def _ms(self, name: str, absent: int | None) -> int | None:
        """Read milliseconds: of `29.4/3.1` the first, of `44ms(12.3%)` those before the unit."""
        if name not in self._values:
            return absent
        match = re.match(r"[\d.]+", self._values[name])
        return values.count(match[0] if match else self._values[name], 1e3)


def _sockets(source: Source) -> Iterator[tuple[int, str]]:
    """Join the lines of each socket: those behind the first begin with a space."""
    at, text = 0, ""
    for number, line in source.lines():
        if line[:1] in (" ", "\t") and text:
            # One character more than the longest is enough to know that it is longer.
            text += line[: LONGEST_SOCKET + 1 - len(text)] if len(text) <= LONGEST_SOCKET else ""
        elif line.strip():
            if text:
                yield at, text
            at, text = number, line
    if text:
        yield at, text


def _time(text: str) -> int | None:
    """Read a line that holds nothing but a time, as `date +%s` and `date --iso-8601=seconds` write it."""
    text = text.strip()
    if not text[:1].isdigit():
        return None
    try:
        return values.instant(text)
    except Unread:
        return None


def _endpoint(text: str) -> tuple[Any, int | None]:
    match = ENDPOINT.fullmatch(text)
    if match is None:
        raise Unread(f"`{text}` is no address with a port")
    host, port = match.groups()
    address = parsed(host)
    if address is None and host != "*":
        raise Unread(f"`{host}` is no address: ss prints names without -n")
    return address, values.count(port) if port.isdecimal() else None


def _rate(text: str) -> int | None:
    match = RATE.fullmatch(text)
    return values.count(match[1], PREFIXES[match[2]]) if match else None
