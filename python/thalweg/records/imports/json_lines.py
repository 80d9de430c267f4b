"""Imports arbitrary JSON, one object per row: the user maps its keys to columns of records.

    thalweg import json flows.jsonl --map end_us=time --map acked_bytes=tcp.bytes --map fct_us=took:ms --out records/

Values may be nested. The objects are one per line or in a list.
"""

import json
from collections.abc import Iterator, Sequence

from pydantic import JsonValue

from thalweg.records.imports.items import ImportedRow, Item, SourceFile, Unknown, Unread, is_cut, item
from thalweg.records.imports.json_values import NO_JSON, NOT_JSON, JsonObject, values_of_json
from thalweg.records.imports.mapped import Mapped, Notation, mapped_row, with_time
from thalweg.records.imports.prefixes import log_items, unwrapped
from thalweg.records.imports.table import kind_of, whole_row


class JsonLines:
    """Importer of JSON objects."""

    source = "json"
    shows_cuts = True
    expected = "JSON objects, one per line or in a list"
    hint = "--map COLUMN=KEY[:UNIT], as in --map end_us=time:s; the columns are in docs/reference/records.md"

    def __init__(self, mapped: Sequence[Mapped], notation: Notation | None = None) -> None:
        """Create an importer from the map, and the notation of numbers and times in strings.

        Raises:
            ThalwegError: If the map has no end time.
        """
        self._mapped = with_time(mapped)
        self._notation = notation or Notation()
        self._kind = kind_of(mapped)

    def read(self, source: SourceFile) -> Iterator[Item]:
        """Parse a file."""
        head = source.text.peek()
        inner = unwrapped(head.strip())
        begin = inner.text if inner else head.strip()
        if begin.startswith("{") and begin.endswith("}") and not is_cut(head):
            yield from log_items(source, self._row_of_line)
            return
        for line, value in values_of_json(1, iter(source.text.piece, ""), decoder()):
            yield value if isinstance(value, Item) else item(line, self._row, source.number(line), value)

    def _row_of_line(self, number: int, line: str) -> ImportedRow:
        try:
            value = decoder().decode(line)
        except NO_JSON as error:
            raise Unread(NOT_JSON, str(error)) from None
        return self._row(number, value)

    def _row(self, number: int, value: JsonValue) -> ImportedRow:
        if not isinstance(value, dict):
            raise Unread("not a JSON object")
        return whole_row(number, self._kind, mapped_row(self._mapped, lambda key: _text(value, key), self._notation))


def decoder() -> json.JSONDecoder:
    """Return a decoder that keeps numbers as text, so that none is rounded or rejected for its length.

    A fraction gets trailing zeros to at least four decimals, because in a string the dot in `1.500` could separate
    thousands.
    """
    return json.JSONDecoder(parse_int=str, parse_float=lambda text: text if "e" in text.lower() else f"{text}000",
                            parse_constant=str)  # fmt: skip


def _text(value: JsonObject, key: str) -> str | Unknown:
    """Return the text of a key, or of a dotted path of keys; `Unknown` if it is missing, empty if it is null.

    Raises:
        Unread: If the value is a list or an object.
    """
    member: JsonValue = value
    if key in value:
        member = value[key]
    else:
        for name in key.split("."):
            if not isinstance(member, dict) or name not in member:
                return Unknown(f"there is no key `{key}`")
            member = member[name]
    if isinstance(member, dict | list):
        raise Unread(f"the value of `{key}` is a list or an object")
    return "" if member is None else str(member).lower() if isinstance(member, bool) else str(member)
