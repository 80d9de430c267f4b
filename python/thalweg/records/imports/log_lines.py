"""Lines of a log with a known format: a pattern of literal texts and fields, applied without backtracking.

The end of a field is found by searching forward for the literal text after it. Clients of a server control the content
of log lines and must not be able to slow down the import.
"""

import dataclasses
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from thalweg.errors import ThalwegError
from thalweg.records.imports.items import Unread


@dataclass(frozen=True)
class FormField:
    """A field of a line."""

    name: str
    is_list: bool = False
    """Whether the field may contain several values separated by `, ` or ` : `."""
    last: str = ""
    """Last character of the value, if known: a time in brackets contains a space, which does not end the field."""
    is_address: bool = False
    """Whether the field is an address, which may contain colons."""
    port: str = ""
    """Name of the port that follows the last colon of this field."""


FormPart = str | FormField


class LineForm:
    """The format of a line."""

    def __init__(self, parts: Sequence[FormPart], form: str) -> None:
        """Create a format from its literal texts and fields in order; `form` is the user's text.

        Raises:
            ThalwegError: If two fields are adjacent, because the end of the first one would be ambiguous.
        """
        parts = list(_with_ports(parts))
        for part, following in itertools.pairwise(parts):
            if isinstance(part, FormField) and isinstance(following, FormField):
                raise ThalwegError(
                    "bad-format",
                    f"in the format `{form}` there is no text between `{part.name}` and `{following.name}`",
                    place="--format-string",
                    expected="a space, or another text, between two fields",
                    hint="change the log's format, and import lines written from then on",
                )
        fields = [part for part in parts if isinstance(part, FormField)]
        self.names = {name for part in fields for name in (part.name, part.port) if name}
        self.steps = list(_steps(parts))
        """The literal text at the beginning, then each field with the literal text that follows it."""

    def read(self, line: str) -> dict[str, str]:
        """Return the fields of a line by name.

        Raises:
            Unread: If the line does not match.
        """
        fields: dict[str, str] = {}
        position = 0
        for field, literal in self.steps:
            if field is None:
                if not line.startswith(literal, position):
                    raise Unread("does not match the format", f"`{literal}` is missing at column {position + 1}")
                position += len(literal)
                continue
            end = len(line) if not literal else _end(field, line, literal, position)
            if end < 0:
                raise Unread("does not match the format", f"`{literal}` is missing after `{field.name}`")
            fields[field.name] = line[position:end]
            if field.port:
                fields[field.name], _, fields[field.port] = line[position:end].rpartition(":")
            position = end + len(literal)
        if position != len(line):
            raise Unread("does not match the format", f"text after its end, from column {position + 1}")
        return fields


def _with_ports(parts: Sequence[FormPart]) -> Iterator[FormPart]:
    """Join an address, a colon and a port to one field, because an IPv6 address contains colons: the last one separates
    the port.
    """
    index = 0
    while index < len(parts):
        match parts[index : index + 3]:
            case [FormField(is_address=True) as address, ":", FormField() as port]:
                yield dataclasses.replace(address, port=port.name)
                index += 3
            case [part, *_]:
                yield part
                index += 1


def _steps(parts: Sequence[FormPart]) -> Iterator[tuple[FormField | None, str]]:
    if parts and isinstance(parts[0], str):
        yield None, parts[0]
    for number, part in enumerate(parts):
        if isinstance(part, FormField):
            behind = parts[number + 1] if number + 1 < len(parts) else ""
            assert isinstance(behind, str)
            yield part, behind


def _end(field: FormField, line: str, literal: str, position: int) -> int:
    """Return the end of a field; negative if the text that should follow it is missing."""
    if field.last:
        end = line.find(field.last + literal, position)
        return end if end < 0 else end + len(field.last)
    end = line.find(literal, position)
    while field.is_list and end >= 0 and literal.startswith(" "):
        # The space in `0.1, 0.2` or in `0.1 : 0.2` does not end the field.
        if line[end - 1] not in ",:" and not line.startswith(" : ", end):
            break
        end = line.find(literal, end + (3 if line.startswith(" : ", end) else 1))
    return end
