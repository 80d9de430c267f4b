"""Splits an ss dump into sockets and times.

A socket's lines after the first begin with a space or a tab. A line that was wrapped at the width of a terminal does
not; it is joined to the previous line, and the socket is marked if that is ambiguous. A line between sockets may
contain the time.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from thalweg.records.imports import times
from thalweg.records.imports.items import SourceFile, Unread
from thalweg.records.imports.prefixes import unwrapped
from thalweg.records.imports.ss_fields import ORDER, WORDS

LONGEST_SOCKET = 2**20
"""Maximum number of characters of a socket."""
MAX_WORD = 2**12
"""Maximum number of characters of a joined word."""
MAX_TIME = 200
"""Maximum number of characters of a line with a time."""
STATES = frozenset(
    ("ESTAB", "CLOSE-WAIT", "LAST-ACK", "FIN-WAIT-1", "FIN-WAIT-2", "CLOSING", "UNCONN", "LISTEN", "SYN-SENT",
     "SYN-RECV", "TIME-WAIT")
)  # fmt: skip
OTHERS = frozenset(
    ("udp", "udplite", "sctp", "dccp", "icmp", "icmp6", "raw", "u_str", "u_dgr", "u_seq", "nl", "p_raw", "p_dgr",
     "v_str", "v_dgr", "tipc", "xdp")
)  # fmt: skip
"""Values of the column Netid for sockets that are not TCP."""
HEADINGS = frozenset(("State", "Netid", "Recv-Q"))
WITHOUT_STATE = re.compile(r"(?:(?:mp)?tcp +)?\d+ +\d+ +\S+:\S+ +\S+:\S+", re.ASCII)
"""Beginning of a socket without the column of the state, if ss was called for one state."""

KEYS = "|".join(name for name in ORDER if name not in WORDS)
CCS = "bbr2|bbr3|bbr|bic|cdg|cubic|dctcp|highspeed|htcp|hybla|illinois|lp|nv|reno|scalable|vegas|veno|westwood|yeah"
WORD = re.compile(
    rf"(?:{KEYS}):[\d.]+(?:[,/][\d.]+)?(?:ms)?(?:\([\d.]+%\))?"
    rf"|bbr:\([^()]*\)|dctcp:\([^()]*\)|send|pacing_rate|delivery_rate|app_limited|{CCS}|ts|sack|ecn|ecnseen|fastopen"
    r"|[\d.]+[KMGT]?bps|users:\(\(.*\)\)|(?:timer|skmem):\([^()]*\)|(?:uid|ino):\d+|sk:[\da-f]+|cgroup:[^\s<>:]+"
    r"|<->|-->|<--|\[?[\da-fA-F:.*]+(?:%[\w.-]+)?\]?:(?:\d+|\*)",
    re.ASCII,
)
"""A complete word in ss's output for a socket."""

EPOCH = re.compile(
    r"(?<![\w.:])(?:([1-3]\d{9})(?:[.,](\d{1,9}))?|([1-3]\d{12})|([1-3]\d{15})|([1-3]\d{18}))(?![\w.:])", re.ASCII
)
"""UNIX time after 2001, in s, ms, us or ns."""
ISO = re.compile(
    r"(?<![\w.:])\d{4}-\d\d-\d\d[T _]\d\d:\d\d:\d\d(?:[.,]\d+)?(?: ?(?:Z|UTC|GMT|[+-]\d\d:?\d\d))?(?![\w:])", re.ASCII
)
WEEKDAY = re.compile(r"\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*\b")
LABEL = re.compile(r"[A-Za-z_ ]{1,30}[:=]\s*")
CLOCK = re.compile(r"\b\d{1,2}:\d{2}:\d{2}\b|\b\d{4}-\d\d-\d\d\b", re.ASCII)
OF_SOCKET = re.compile(r"\b(?:ESTAB|LISTEN|UNCONN|TIME-WAIT|rto:|rtt:|cwnd:|segs_out:)")
"""Text that no line with a time contains: it belongs to a socket."""
HAS_INFO = re.compile(r"\s(?:rto|rtt):")
COMPACT = re.compile(r"(?<!\d)(20\d\d[01]\d[0-3]\d)[T_-]?([0-2]\d[0-5]\d[0-6]\d)(Z?)(?!\d)", re.ASCII)
"""A date and a time without separators, from `date +%Y%m%d%H%M%S`."""
ORNAMENTS = " \t=#*-_<>[]()|:"


class Socket:
    """All lines of a socket, or one other line."""

    def __init__(self, line: int, text: str) -> None:
        self.line = line
        self.is_cut = False
        """Whether its end may be missing, because the input ends without a line end."""
        self.is_ambiguous = False
        self.has_info = False
        """Whether a line after the first one had TCP fields."""
        self.end = text[-MAX_WORD:]
        self._parts = [text]
        self._size = len(text)

    @property
    def text(self) -> str:
        """The text, truncated to one character more than the maximum."""
        return "".join(self._parts)

    def add(self, line: str) -> None:
        """Add a line."""
        self.has_info = self.has_info or HAS_INFO.search(line) is not None
        self.end = (self.end + line[-MAX_WORD:])[-MAX_WORD:]
        if self._size <= LONGEST_SOCKET:
            self._parts.append(line[: LONGEST_SOCKET + 1 - self._size])
            self._size += len(self._parts[-1])


@dataclass(frozen=True)
class TimeLine:
    """A line with the time of the following sockets."""

    line: int
    at_us: int | None
    unread: Unread | None = None


def pieces(source: SourceFile) -> Iterator[Socket | TimeLine]:
    """Yield the sockets and times of a dump; lines that are neither are yielded as sockets."""
    current: Socket | None = None
    has_end = True
    for number, raw in enumerate(source.text, 1):
        line = raw.rstrip("\r\n")
        has_end = line != raw or not raw
        if not line.strip():
            continue
        if line[0] not in " \t":
            # The prefix of another program does not begin with a space.
            wrapped = unwrapped(line)
            if wrapped is not None and wrapped.text.strip():
                line = wrapped.text
        is_more = line[0] in " \t"
        is_socket = not (is_more and current is not None) and _begins_socket(line)
        if current is not None and is_more:
            # A socket has one line of TCP fields unless that was wrapped; a further line may begin within a word.
            current.is_ambiguous |= current.has_info and not WORD.fullmatch(line.split()[0])
            current.add(line)
        elif current is not None and not is_socket and (time := _time(number, line)) is None and _joins(current, line):
            continue
        else:
            if current is not None:
                yield current
            current = None
            time = None if is_socket else _time(number, line)
            if time is None:
                current = Socket(number, line)
            else:
                yield time
    if current is not None:
        current.is_cut = not has_end
        yield current


def _begins_socket(line: str) -> bool:
    words = line.split(None, 2)
    first = words[1] if words[0] in ("tcp", "mptcp") and len(words) > 1 else words[0]
    return first in STATES or first in HEADINGS or words[0] in OTHERS or WITHOUT_STATE.match(line) is not None


def _joins(socket: Socket, line: str) -> bool:
    """Join a wrapped line to the socket that it belongs to; return whether there is one."""
    first, _, rest = line.partition(" ")
    words = socket.end.rsplit(None, 1)
    if len(words) < 2:
        return False
    last = words[-1]
    is_one = not socket.end[-1].isspace() and WORD.fullmatch(last + first) is not None
    is_two = WORD.fullmatch(last) is not None and WORD.fullmatch(first) is not None
    if not is_one and not is_two:
        return False
    socket.is_ambiguous |= is_one and is_two
    socket.add(f"{'' if is_one else ' '}{first} {rest}")
    return True


def _time(number: int, line: str) -> TimeLine | None:
    """Parse a line with a time, possibly with a label or decoration; `None` if it has none."""
    try:
        at_us = _instant(line)
    except Unread as why:
        return TimeLine(number, None, why)
    return None if at_us is None else TimeLine(number, at_us)


def _instant(line: str) -> int | None:
    if len(line) > MAX_TIME or OF_SOCKET.search(line):
        return None
    text = COMPACT.sub(r"\1T\2\3", line).strip(ORNAMENTS)
    label = LABEL.match(text)
    candidates = [text, *([text[label.end() :]] if label else []), *_tails(text)]
    for candidate in candidates:
        if any(form.search(candidate) for form in (WEEKDAY, CLOCK, COMPACT)):
            try:
                return times.instant(candidate)
            except Unread as why:
                if why.reason != times.NOT_A_TIME:
                    raise
    instants = [times.instant(match[0].replace("_", "T")) for match in ISO.finditer(text)] or [
        _of_epoch(match) for match in EPOCH.finditer(text)
    ]
    if len(set(instants)) == 1:
        return instants[0]
    if instants or CLOCK.search(text) or COMPACT.search(text):
        raise Unread("a line with several times" if instants else times.NOT_A_TIME, f"`{text}`")
    return None


def _tails(text: str) -> Iterator[str]:
    """Yield the text from each day of the week on, because `watch` prints a command and a host before the time."""
    for match in WEEKDAY.finditer(text):
        yield text[match.start() :].rstrip(ORNAMENTS)


def _of_epoch(match: re.Match[str]) -> int:
    seconds, fraction, milli, micro, nano = match.groups()
    if seconds:
        return int(seconds) * 1_000_000 + int((fraction or "0")[:6].ljust(6, "0"))
    return int(milli) * 1000 if milli else int(micro) if micro else int(nano) // 1000
