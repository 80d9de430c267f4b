"""Converts sockets to columns, many at a time, if ss printed them in the format since Linux 4.19.

`ss` and `ss_fields` define the meaning of the fields. A regular socket has one line of addresses and one line of TCP
fields, which extends to the receive buffer and shows that the kernel has all counters. An absent counter therefore has
its initial value, usually zero.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import polars as pl

from thalweg.records.imports.addresses import Addresses
from thalweg.records.imports.items import Assumed, ImportedRow
from thalweg.records.imports.ss_fields import FLAGS, INITIAL_REORDERING, PREFIXES, SINCE_4_19
from thalweg.records.imports.values import UNSAMPLED_US
from thalweg.records.imports.vectorized import CERTAIN, IPV4, WHY, Ends, round_amounts
from thalweg.records.schema import CLOSE, INTERIM

NUMBER = r"[0-9]{1,12}(?:\.[0-9]{1,6})?"
RATE = f"{NUMBER}[KMGT]?bps"
COUNTERS = (
    "backoff|mss|pmtu|rcvmss|advmss|cwnd|ssthresh|bytes_sent|bytes_retrans|bytes_acked|bytes_received|segs_out|segs_in|"
    "data_segs_out|data_segs_in|lastsnd|lastrcv|lastack|delivered|delivered_ce|unacked|lost|sacked|dsack_dups|fackets|"
    "reordering|reord_seen|rcv_space|rcv_ssthresh|notsent|rcv_ooopack|snd_wnd|rcv_wnd|rehash"
)
STATE = "(ESTAB|CLOSE-WAIT|LAST-ACK|FIN-WAIT-1|FIN-WAIT-2|CLOSING|UNCONN)"
HOST = rf"(?:{IPV4}|\[[0-9a-f:.]+\])"
PROCESS = r'\("[A-Za-z0-9_.-]+",pid=[0-9]+,fd=[0-9]+\)'
OF_SOCKET = (
    rf"users:\({PROCESS}(?:,{PROCESS})*\)|timer:\([^() \t]*\)|(?:uid|ino):[0-9]+|sk:[0-9a-f]{{1,15}}|"
    "cgroup:[!-9;=?-~]+|<->|-->|<--"
)
FLAG = f"(?:{'|'.join(FLAGS)})"
NAME = "[a-z][a-z0-9_]*"
OF_TCP = (
    rf"(?:{COUNTERS}):[0-9]{{1,15}}|rtt:{NUMBER}/{NUMBER}|(?:ato|rcv_rtt|minrtt):{NUMBER}|"
    rf"(?:busy|rwnd_limited|sndbuf_limited):{NUMBER}ms(?:\({NUMBER}%\))?|retrans:[0-9]+/[0-9]{{1,15}}|"
    rf"(?:send|pacing_rate|delivery_rate) {RATE}|app_limited|"
    rf"bbr:\(bw:{RATE},mrtt:{NUMBER}(?:,[a-z_]+:{NUMBER})*\)"
)
USUAL = (
    rf"^{STATE} +[0-9]+ +[0-9]+ +{HOST}:[0-9]{{1,5}} +{HOST}:[0-9]{{1,5}}(?: +(?:{OF_SOCKET}))* *\t"
    rf"(?: {FLAG})*(?: {NAME})?(?: wscale:[0-9]+,[0-9]+)? rto:{NUMBER}(?: (?:{OF_TCP}))* *$"
)
IS_RECENT = f" (?:{'|'.join(sorted(SINCE_4_19))}):"
COOKIE = " sk:([0-9a-f]+)"
CC = rf"\t(?: {FLAG})*(?: ({NAME}))?(?: wscale:[^ ]*)? rto:"
ENDS = r"^[A-Z0-9-]+ +[0-9]+ +[0-9]+ +\[?([^ \]]+)\]?:([0-9]+) +\[?([^ \]]+)\]?:([0-9]+)"
ONCE = (" delivery_rate ", "\t")


@dataclass(frozen=True)
class SocketRow:
    """A regular socket, with values derived from earlier samples."""

    text: str
    at_us: int
    connection: int
    cc: str | None
    is_closed: bool


def keys(texts: pl.Series) -> pl.DataFrame:
    """Return for each socket whether it is regular, and its cookie, its algorithm and whether it is closed."""
    is_usual = (
        texts.str.contains(USUAL) & texts.str.contains(IS_RECENT) & texts.str.contains(" rcv_space:", literal=True)
    )
    for text in ONCE:
        is_usual &= texts.str.count_matches(text, literal=True) < 2
    cookie = texts.str.extract(COOKIE)
    is_usual &= cookie.is_not_null()
    return pl.DataFrame(
        {
            CERTAIN: is_usual.fill_null(False),
            "connection": cookie.str.to_integer(base=16, dtype=pl.Int64, strict=False),
            "cc": texts.str.extract(CC),
            "is_closed": texts.str.starts_with("UNCONN"),
        }
    )


def _address_part(address: Callable[[str], ImportedRow], name: str, text: str) -> ImportedRow:
    return {name: address(text)[name]}


class _Fields:
    """Extracts fields of sockets, and records the sockets whose amounts are uncertain."""

    def __init__(self, texts: pl.Series) -> None:
        self.texts = texts
        self.is_certain = pl.Series(CERTAIN, [True]).new_from_index(0, len(texts))

    def counter(self, name: str, absent: int | None = 0) -> pl.Series:
        values = self.texts.str.extract(f" {name}:([0-9]+)").cast(pl.Int64)
        return values if absent is None else values.fill_null(absent)

    def amount(self, pattern: str, absent: int | None = None, unit: float = 1e3) -> pl.Series:
        groups = self.texts.str.extract_groups(f" {pattern}").struct.unnest().get_columns()
        factor: pl.Series | float = unit
        if len(groups) > 1:
            factor = groups[1].replace_strict(list(PREFIXES), list(PREFIXES.values()), return_dtype=pl.Float64)
        values, is_sure = round_amounts(groups[0].cast(pl.Float64) * factor)
        self.is_certain &= is_sure
        return values if absent is None else values.fill_null(absent)

    def positive(self, pattern: str) -> pl.Series:
        values = self.amount(pattern)
        return values.set((values == 0).fill_null(False), None)


def sampled(rtt_us: pl.Series) -> pl.Series:
    """Replace RTTs of BBR without a sample with null."""
    return rtt_us.set((rtt_us >= UNSAMPLED_US).fill_null(False), None)


def columns(addresses: Addresses, rows: Sequence[SocketRow], address: Callable[[str], ImportedRow]) -> pl.DataFrame:
    """Return the columns of regular sockets; `address` defines the meaning of an address's text."""
    fields = _Fields(pl.Series([row.text for row in rows], dtype=pl.String))
    hosts = fields.texts.str.extract_groups(ENDS).struct.unnest().get_columns()
    values: dict[str, pl.Series] = {}
    for side, host, port in (("local", hosts[0], hosts[1]), ("remote", hosts[2], hosts[3])):
        name = f"{side}_address"
        converted, is_sure = Ends(name, addresses, partial(_address_part, address, name)).convert(host)
        values |= converted | {f"{side}_port": port.cast(pl.Int64)}
        fields.is_certain &= True if is_sure is None else is_sure
    why = [row.at_us.why if isinstance(row.at_us, Assumed) else None for row in rows]
    values |= {
        "end_us": pl.Series([int(row.at_us) for row in rows], dtype=pl.Int64),
        f"end_us{WHY}": pl.Series(why, dtype=pl.String),
        "connection": pl.Series([row.connection for row in rows], dtype=pl.UInt64),
        "kind": pl.Series([CLOSE if row.is_closed else INTERIM for row in rows], dtype=pl.String),
        "cc": pl.Series([row.cc for row in rows], dtype=pl.String),
    }
    return pl.DataFrame(values | _of_tcp(fields) | {CERTAIN: fields.is_certain})


def _of_tcp(fields: _Fields) -> dict[str, pl.Series]:
    texts, counter, amount, positive = fields.texts, fields.counter, fields.amount, fields.positive
    flags = texts.str.extract(rf"\t((?: {FLAG})*)(?: |$)")
    has_flags, has_ecn = flags != "", (flags + " ").str.contains(" ecn ", literal=True)
    is_limited = (texts + " ").str.contains(" app_limited ", literal=True)
    rate = amount(f"delivery_rate ({NUMBER})([KMGT]?)bps")
    sent, retransmitted = counter("bytes_sent"), counter("bytes_retrans")
    acked = pl.select(pl.min_horizontal(counter("bytes_acked"), sent - retransmitted)).to_series()
    return {
        "cgroup": texts.str.extract(r" cgroup:([!-9;=?-~]+)"),
        "sent_bytes": sent,
        "acked_bytes": acked,
        "received_bytes": counter("bytes_received"),
        "retransmitted_bytes": retransmitted,
        "segments": counter("data_segs_out"),
        "retransmits": texts.str.extract(" retrans:[0-9]+/([0-9]+)").cast(pl.Int64).fill_null(0),
        "segments_out": counter("segs_out", None),
        "segments_in": counter("segs_in"),
        "reordering": counter("reordering", INITIAL_REORDERING),
        "reorderings": counter("reord_seen"),
        "ecn": has_ecn.set(~has_flags, None),
        "ce_packets": counter("delivered_ce"),
        "mss_bytes": counter("mss", None),
        "rtt_min_us": positive(f"minrtt:({NUMBER})"),
        "rtt_smoothed_us": positive(f"rtt:({NUMBER})"),
        "delivery_rate_bps": rate,
        "delivery_rate_app_limited": is_limited.set(rate.is_null(), None),
        "busy_us": amount(f"busy:({NUMBER})", 0),
        "rwnd_limited_us": amount(f"rwnd_limited:({NUMBER})", 0),
        "sndbuf_limited_us": amount(f"sndbuf_limited:({NUMBER})", 0),
        "bbr_bw_bps": positive(rf"bbr:\(bw:({NUMBER})([KMGT]?)bps"),
        "bbr_min_rtt_us": sampled(amount(rf"bbr:\(bw:[^,]*,mrtt:({NUMBER})")),
    }
