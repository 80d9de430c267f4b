"""The fields that ss prints for a socket, in order, and the meaning of an absent field.

ss omits counters that are zero, and those that it or the kernel lacks. An absent counter counts as zero if another
field shows that the kernel has it (`ERAS`), and if a later field is present: otherwise the line may be truncated before
it. The counters `OF_SENDING` also count as zero until a data segment has been sent.
"""

import re

from thalweg.records.imports import values
from thalweg.records.imports.items import ImportedRow, Unknown, Unread

FLAGS = ("ts", "sack", "ecn", "ecnseen", "fastopen")
ORDER = (
    *FLAGS, "wscale", "rto", "backoff", "rtt", "ato", "qack", "bidir", "mss", "pmtu", "rcvmss", "advmss", "cwnd",
    "ssthresh", "bytes_sent", "bytes_retrans", "bytes_acked", "bytes_received", "segs_out", "segs_in", "data_segs_out",
    "data_segs_in", "dctcp", "bbr", "send", "lastsnd", "lastrcv", "lastack", "pacing_rate", "delivery_rate",
    "delivered", "delivered_ce", "app_limited", "busy", "rwnd_limited", "sndbuf_limited", "unacked", "retrans", "lost",
    "sacked", "dsack_dups", "fackets", "reordering", "reord_seen", "rcv_rtt", "rcv_space", "rcv_ssthresh", "notsent",
    "minrtt", "rcv_ooopack", "snd_wnd", "rcv_wnd", "rehash",
)  # fmt: skip
"""TCP fields in the order of iproute2's `tcp_stats_print`."""
POSITION = {name: number for number, name in enumerate(ORDER)}
LAST = POSITION["rcv_space"]
"""Position that every complete line reaches: the kernel always reports the receive buffer."""

SINCE_4_19 = frozenset(
    ("bytes_sent", "bytes_retrans", "dsack_dups", "reord_seen", "rcv_ooopack", "snd_wnd", "rcv_wnd", "rehash")
)
SINCE_4_18 = SINCE_4_19 | {"delivered", "delivered_ce"}
SINCE_4_10 = SINCE_4_18 | {"busy", "rwnd_limited", "sndbuf_limited"}
SINCE_4_6 = SINCE_4_10 | {"data_segs_out", "data_segs_in", "minrtt", "notsent", "delivery_rate", "app_limited"}
SINCE_4_2 = SINCE_4_6 | {"segs_out", "segs_in"}
ERAS = {
    "bytes_acked": SINCE_4_2, "bytes_received": SINCE_4_2, "segs_in": SINCE_4_2, "data_segs_out": SINCE_4_6,
    "busy": SINCE_4_10, "rwnd_limited": SINCE_4_10, "sndbuf_limited": SINCE_4_10, "delivered_ce": SINCE_4_18,
    "bytes_sent": SINCE_4_19, "bytes_retrans": SINCE_4_19, "reord_seen": SINCE_4_19,
}  # fmt: skip
"""For each counter, the fields that prove that the kernel supports it: they were introduced with it or later."""
OF_SENDING = ("bytes_sent", "bytes_retrans", "busy", "rwnd_limited", "sndbuf_limited", "delivered_ce", "reord_seen")
"""Counters that are zero on any kernel until a data segment has been sent."""

COLUMNS = {
    "bytes_sent": "sent_bytes", "bytes_retrans": "retransmitted_bytes", "bytes_acked": "acked_bytes",
    "bytes_received": "received_bytes", "segs_out": "segments_out", "segs_in": "segments_in",
    "data_segs_out": "segments", "retrans": "retransmits", "reordering": "reordering", "reord_seen": "reorderings",
    "delivered_ce": "ce_packets", "mss": "mss_bytes", "minrtt": "rtt_min_us", "rtt": "rtt_smoothed_us",
    "busy": "busy_us", "rwnd_limited": "rwnd_limited_us", "sndbuf_limited": "sndbuf_limited_us",
}  # fmt: skip
"""Columns of fields; any of these may be truncated."""
CUT = "its value is at the end of a line that seems to be cut off"

WORDS = frozenset((*FLAGS, "<->", "-->", "<--", "---", "--"))
"""Words before `wscale:` or `rto:` that are not the name of the algorithm."""
BBR = re.compile(r"\bbbr:\(bw:([\d.]+[KMGT]?)bps,mrtt:([\d.]+(?:e[+-]?\d+)?)", re.ASCII)
MS = re.compile(r"(\d+(?:\.\d+)?)(?:/\d+(?:\.\d+)?|ms(?:\(\d+(?:\.\d+)?%\))?)?", re.ASCII)
PREFIXES = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
RATE = re.compile(r"([\d.]+)([KMGT]?)(?:bps)?", re.ASCII)
MAX_DIGITS = 16
"""Maximum number of hexadecimal digits of a cookie."""
INITIAL_REORDERING = 3
"""Initial reordering of the kernel in packets, which ss omits (RFC 6675: DupThresh)."""


class Fields:
    """The fields that ss prints of a connection after its addresses."""

    def __init__(self, words: list[str], *, is_cut: bool = False) -> None:
        """Parse the words; `is_cut`: the last one may be incomplete."""
        present = {word.partition(":")[0] for word in words} & POSITION.keys()
        self._furthest = max((POSITION[name] for name in present), default=-1)
        self._cut, self._is_name_cut = "", False
        if words and (is_cut or self._furthest < LAST):
            self._cut, colon, _ = words[-1].partition(":")
            self._is_name_cut = not colon
            words = words[:-1]
        self._words = words
        self._values: dict[str, str] = {}
        for number, word in enumerate(words):
            name, colon, value = word.partition(":")
            if colon:
                self._values.setdefault(name, value)
            elif word == "delivery_rate" and number + 1 < len(words):
                self._values[word] = words[number + 1]
        self._present = present
        self.has_info = bool({"rto", "rtt", "segs_out"} & present)
        self.has_rtt = "rtt" in present

    @property
    def cookie(self) -> int | None:
        """The kernel's socket cookie, which -e prints; None without one."""
        digits = self._values.get("sk", "")
        if len(digits) > MAX_DIGITS:
            raise Unread("a cookie with too many digits", f"`{digits}`")
        try:
            return int(digits, 16)
        except ValueError:
            return None

    @property
    def cc(self) -> str | None:
        """The congestion control: the last word without a colon before `wscale:` or `rto:` that is not in `WORDS`."""
        last = None
        for word in self._words:
            if word.startswith(("wscale:", "rto:")):
                return last
            if ":" not in word and word not in WORDS:
                last = word
        return None

    def columns(self) -> ImportedRow:
        """Return the values of columns."""
        fields = self._values
        segments = self._count("data_segs_out")
        self._has_sent_nothing = segments == 0 and not {"notsent", "unacked"} & self._present
        sent, retransmitted, acked = self._count("bytes_sent"), self._count("bytes_retrans"), self._count("bytes_acked")
        if acked is not None and sent is not None and retransmitted is not None:
            acked = min(acked, sent - retransmitted)
        bbr = BBR.search(" ".join(self._words))
        has_rate = "delivery_rate" in fields
        row: ImportedRow = {
            "cgroup": fields.get("cgroup"),
            "sent_bytes": sent,
            "acked_bytes": acked,
            "received_bytes": self._count("bytes_received"),
            "retransmitted_bytes": retransmitted,
            "segments": segments,
            "retransmits": self._retransmits(),
            "segments_out": self._count("segs_out"),
            "segments_in": self._count("segs_in"),
            "reordering": self._count("reordering", INITIAL_REORDERING if self._is_passed("reordering") else None),
            "reorderings": self._count("reord_seen"),
            # Only -e and -o print the TCP options of a connection.
            "ecn": "ecn" in self._words if self._present & set(FLAGS) else None,
            "ce_packets": self._count("delivered_ce"),
            "mss_bytes": self._count("mss"),
            "rtt_min_us": self._ms("minrtt") or None,
            "rtt_smoothed_us": self._ms("rtt") or None,
            "delivery_rate_bps": _rate(fields["delivery_rate"]) if has_rate else None,
            "delivery_rate_app_limited": self._is_app_limited() if has_rate else None,
            "busy_us": self._ms("busy"),
            "rwnd_limited_us": self._ms("rwnd_limited"),
            "sndbuf_limited_us": self._ms("sndbuf_limited"),
            # BBR's bandwidth estimate is 0 until the first sample.
            "bbr_bw_bps": (_rate(bbr[1]) or None) if bbr else None,
            "bbr_min_rtt_us": values.sampled_us(values.count(bbr[2], 1e3)) if bbr else None,
        }
        for name in self._cut_fields():
            row[COLUMNS[name]] = Unknown(CUT)
        return row

    def _cut_fields(self) -> list[str]:
        """Return the fields that the last word may belong to, if it may be truncated."""
        if self._cut in COLUMNS:
            return [self._cut]
        # `delivered` is a field, and may also be the beginning of `delivered_ce`.
        return [
            name for name in COLUMNS if self._is_name_cut and name.startswith(self._cut) and name not in self._present
        ]

    def _is_passed(self, name: str) -> bool:
        """Return whether ss printed a field that comes after the given one."""
        return self._furthest > POSITION[name]

    def _absent(self, name: str) -> int | None:
        """Return the value of an absent field: zero, or None for unknown."""
        is_zero = name in ERAS and self._is_passed(name) and bool(ERAS[name] & self._present)
        is_unused = name in OF_SENDING and self._has_sent_nothing
        return 0 if is_zero or is_unused else None

    def _count(self, name: str, absent: int | None = None) -> int | None:
        if name in self._values:
            return values.count(self._values[name])
        return self._absent(name) if absent is None else absent

    def _ms(self, name: str) -> int | None:
        """Parse milliseconds: the first number of `29.4/3.1`, and the one before the unit in `44ms(12.3%)`."""
        if name not in self._values:
            return self._absent(name)
        match = MS.fullmatch(self._values[name])
        if match is None:
            raise Unread("not a time in milliseconds", f"`{name}:{self._values[name]}`")
        return values.count(match[1], 1e3)

    def _retransmits(self) -> int | None:
        """Return the total number of retransmissions, which follows those in flight and a slash; None if unknown."""
        if "retrans" in self._values:
            return values.count(self._values["retrans"].partition("/")[2])
        return 0 if self._is_passed("retrans") else None

    def _is_app_limited(self) -> bool | None:
        return "app_limited" in self._words or (False if self._is_passed("app_limited") else None)


def _rate(text: str) -> int | None:
    match = RATE.fullmatch(text)
    return values.count(match[1], PREFIXES[match[2]]) if match else None
