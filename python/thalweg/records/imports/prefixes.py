"""Removes the prefixes that other programs (containerd, Docker, syslog, journald) add to log lines.

A line is parsed without its apparent prefix. If the rest does not match the log's format, the complete line is parsed,
because a format may begin like a prefix. Long lines that containerd and Docker split are joined again.
"""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from thalweg.records.imports.items import LONGEST, TOO_LONG, ImportedRow, Item, SourceFile, Unread, item
from thalweg.records.imports.json_values import NO_JSON

CONTAINERD = re.compile(r"\d{4}-\d\d-\d\dT\S+ (stdout|stderr) ([FP])(?::\S*)? ", re.ASCII)
"""Kubernetes log files: time, stream, and whether the line is full or partial."""
RFC_3164 = re.compile(
    r"(?:<\d{1,3}>)?(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d|\d{4}-\d\d-\d\dT\S+) "
    r"(?:(\S*[^\s:]) )?[^\s:\[\]]+(?:\[\d*\])?: ",
    re.ASCII,
)
"""Prefix of syslog: time, optional host, and program; also the output of journalctl, and rsyslog's with ISO times."""
RFC_5424 = re.compile(
    r'<\d{1,3}>1 \S+ (\S+) \S+ \S+ \S+ (?:-|(?:\[(?:[^\]\\"]|"(?:[^"\\]|\\.)*")*\])+) \ufeff?', re.ASCII
)
"""Prefix of syslog with structured data."""
STAMPED = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z ", re.ASCII)
"""Prefix of Docker and kubectl with `--timestamps`."""
COMPOSED = re.compile(r"[\w.-]+ +\| ", re.ASCII)
"""Prefix of Docker Compose: the name of the container."""

MAY_BE_WRAPPED = r"^(?:[{<]|[0-9]{4}-[0-9]{2}-[0-9]{2}T|[A-Z][a-z]{2} [ 0-9][0-9] |[0-9A-Za-z_.-]+ +\| )"
"""Beginnings of lines that may have a prefix."""
BEGINNING = re.compile(MAY_BE_WRAPPED, re.ASCII)

OF_DOCKER = {"log", "stream", "time", "attrs"}
"""Keys of the objects that Docker's json-file driver writes."""


@dataclass(frozen=True)
class Wrapped:
    """A line without its prefix."""

    text: str
    host: str | None = None
    stream: str = ""
    """Stream of the line; parts of a line are joined within a stream."""
    is_partial: bool = False
    """Whether the line continues in the next one of its stream."""


class LogLines:
    """The lines of a log, parsed one by one."""

    def __init__(self, source: SourceFile, row: Callable[[int, str], ImportedRow]) -> None:
        """Create a parser from the file and a row parser, which receives the global line number and the line."""
        self._source = source
        self._row = row
        self._parts: dict[str, str] = {}

    def item(self, number: int, line: str, *, is_cut: bool) -> Item | None:
        """Return the next item; `None` if the line is empty or incomplete."""
        if is_cut:
            return Item(number, unread=Unread(TOO_LONG))
        wrapped = unwrapped(line)
        if wrapped is None:
            return item(number, self._row, self._source.number(number), line) if line else None
        text = self._parts.pop(wrapped.stream, "") + wrapped.text
        if len(text) > LONGEST:
            return Item(number, unread=Unread(TOO_LONG))
        if wrapped.is_partial:
            self._parts[wrapped.stream] = text
        elif text:
            return _either(number, self._source.number(number), self._row, replace(wrapped, text=text), line)
        return None

    def rest(self, number: int) -> Iterator[Item]:
        """Yield an item for each incomplete line; `number` is the number of the last line."""
        for _ in self._parts:
            yield Item(number, unread=Unread("a part of a line whose end is missing"))


def log_items(source: SourceFile, row: Callable[[int, str], ImportedRow]) -> Iterator[Item]:
    """Yield an item for each non-empty line: `row` receives its global line number and the line."""
    lines = LogLines(source, row)
    number = 0
    for number, line in source.lines():
        log_item = lines.item(number, line, is_cut=source.text.was_cut())
        if log_item is not None:
            yield log_item
    yield from lines.rest(number)


def _either(line_number: int, number: int, row: Callable[[int, str], ImportedRow], wrapped: Wrapped, line: str) -> Item:
    inner = item(line_number, row, number, wrapped.text)
    if inner.values is None and not inner.left_out:
        outer = item(line_number, row, number, line)
        return inner if outer.values is None else outer
    if inner.values is not None and wrapped.host is not None and inner.values.get("machine") is None:
        inner.values["machine"] = wrapped.host
    return inner


def unwrapped(line: str) -> Wrapped | None:
    """Return a line without its prefix; `None` if it has none.

    >>> unwrapped("Nov 14 22:13:20 web1 nginx[7]: GET /")
    Wrapped(text='GET /', host='web1', stream='', is_partial=False)
    >>> unwrapped("2023-11-14T22:13:20.1Z stdout P GET /")
    Wrapped(text='GET /', host=None, stream='stdout', is_partial=True)
    """
    if not BEGINNING.match(line):
        return None
    if line.startswith("{"):
        return _of_json(line)
    if match := CONTAINERD.match(line):
        return Wrapped(line[match.end() :], stream=match[1], is_partial=match[2] == "P")
    if match := RFC_5424.match(line) or RFC_3164.match(line):
        return Wrapped(line[match.end() :], host=None if match[1] == "-" else match[1])
    if match := STAMPED.match(line) or COMPOSED.match(line):
        return Wrapped(line[match.end() :])
    return None


def _of_json(line: str) -> Wrapped | None:
    """Return the line in an object of Docker's json-file driver or of `journalctl -o json`; `None` for other lines."""
    if '"log"' not in line and '"MESSAGE"' not in line:
        return None
    try:
        found = json.loads(line)
    except NO_JSON:
        return None
    if not isinstance(found, dict):
        return None
    if isinstance(log := found.get("log"), str) and "stream" in found and found.keys() <= OF_DOCKER:
        return Wrapped(log.rstrip("\r\n"), stream=str(found["stream"]), is_partial=not log.endswith("\n"))
    if isinstance(message := found.get("MESSAGE"), str):
        host = found.get("_HOSTNAME")
        return Wrapped(message, host=host if isinstance(host, str) else None)
    return None
