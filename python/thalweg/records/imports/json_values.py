"""Parses consecutive JSON values, or those of a list, from a text of any length, which is read in pieces.

`bq --format=json` prints a list of all rows in one line.
"""

import json
from collections.abc import Iterator

from pydantic import JsonValue

from thalweg.records.imports.items import LONGEST, TOO_LONG, Item, Unread

JsonObject = dict[str, JsonValue]

NO_JSON = (ValueError, RecursionError)
"""Exceptions of the JSON parser: for invalid syntax, long numbers and deep nesting."""
NOT_JSON = "not JSON"
BETWEEN = " \t\r\n,[]"
"""Characters between two values; the brackets of a list count as such."""


def values_of_json(
    first: int, pieces: Iterator[str], decoder: json.JSONDecoder | None = None
) -> Iterator[tuple[int, JsonValue | Item]]:
    """Yield each value with the number of the line on which it begins; the first piece is line `first`.

    A malformed value becomes an `Item` with the reason and ends the iteration, because the start of the next value is
    unknown.
    """
    decoder = decoder or json.JSONDecoder()
    text, position, line, depth = "", 0, first, 0
    while True:
        begin = position
        while position < len(text) and text[position] in BETWEEN:
            depth += {"[": 1, "]": -1}.get(text[position], 0)
            position += 1
        line += text.count("\n", begin, position)
        why = ""
        if position < len(text):
            try:
                value, end = decoder.raw_decode(text, position)
            except NO_JSON as error:
                why = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
            else:
                yield line, value
                line += text.count("\n", position, end)
                position = end
                continue
        # The value is malformed or incomplete; retry with twice as much text.
        rest = text[position:]
        further = _more(pieces, len(rest))
        if not further or len(rest) > LONGEST:
            if depth > 0 and not why:
                why = "the list does not end: the file is truncated"
            elif further:
                why = TOO_LONG
            if why:
                yield line, Item(line, unread=Unread(why) if why == TOO_LONG else Unread(NOT_JSON, why))
            return
        text, position = rest + further, 0


def _more(pieces: Iterator[str], minimum: int) -> str:
    """Return further pieces, concatenated: more than `minimum` characters, or all that remain."""
    parts: list[str] = []
    size = 0
    while size <= minimum and (piece := next(pieces, "")):
        parts.append(piece)
        size += len(piece)
    return "".join(parts)
