"""Lines of a log whose form is known: a pattern of literal texts and fields, applied without ever going back.

A field ends where the literal text behind it appears first. So a line of any content is read in one pass: a log is
written by whoever sends requests to a server, and none of them may make reading it slow.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from thalweg.errors import ThalwegError
from thalweg.records.imports.items import Unread


@dataclass(frozen=True)
class Field:
    """A field of a line."""

    name: str
    is_list: bool = False
    """Whether it may hold several values with `, ` or ` : ` between them."""
    last: str = ""
    """What its value ends with, if that is known: a time in brackets has a space in it."""


Part = str | Field


class LineForm:
    """The form of a line."""

    def __init__(self, parts: Sequence[Part], form: str) -> None:
        """Take literal texts and fields in their order; `form` is what the user wrote.

        Raises `ThalwegError` if two fields follow one another with nothing in between: nobody can tell where the first
        one ends.
        """
        for one, other in itertools.pairwise(parts):
            if isinstance(one, Field) and isinstance(other, Field):
                raise ThalwegError(
                    "bad-format",
                    f"in the format `{form}` nothing stands between `{one.name}` and `{other.name}`",
                    place="--format-string",
                    expected="a space, or another text, between two fields",
                    hint="change the log's format, and import what is logged from then on",
                )
        self.names = {part.name for part in parts if isinstance(part, Field)}
        """Names of the fields."""
        self._steps = list(_steps(parts))

    def read(self, line: str) -> dict[str, str]:
        """Give the fields of a line by their names; raises `Unread` if the line has another form."""
        found: dict[str, str] = {}
        place = 0
        for field, literal in self._steps:
            if field is None:
                if not line.startswith(literal, place):
                    raise Unread(f"`{literal}` should stand at column {place + 1}")
                place += len(literal)
                continue
            end = len(line) if not literal else _end(field, line, literal, place)
            if end < 0:
                raise Unread(f"no `{literal}` behind `{field.name}`")
            found[field.name] = line[place:end]
            place = end + len(literal)
        if place != len(line):
            raise Unread(f"more than the format says, from column {place + 1} on")
        return found


def _steps(parts: Sequence[Part]) -> Iterator[tuple[Field | None, str]]:
    """Give each field with the literal text behind it, and first the literal text at the very beginning."""
    if parts and isinstance(parts[0], str):
        yield None, parts[0]
    for number, part in enumerate(parts):
        if isinstance(part, Field):
            behind = parts[number + 1] if number + 1 < len(parts) else ""
            assert isinstance(behind, str)
            yield part, behind


def _end(field: Field, line: str, literal: str, place: int) -> int:
    """Find where a field ends."""
    if field.last:
        end = line.find(field.last + literal, place)
        return end if end < 0 else end + len(field.last)
    end = line.find(literal, place)
    while field.is_list and end >= 0 and literal.startswith(" "):
        # The space in `0.1, 0.2` or in `0.1 : 0.2` does not end the field.
        if line[end - 1] not in ",:" and not line.startswith(" : ", end):
            break
        end = line.find(literal, end + (3 if line.startswith(" : ", end) else 1))
    return end
