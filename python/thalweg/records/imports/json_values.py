"""Values of JSON that follow each other, or stand in a list, from a text of any length: in memory is one at a time.

The list that `bq --format=json` prints is one line of all rows.
"""

import json
from collections.abc import Iterator

from pydantic import JsonValue

from thalweg.records.imports.items import LONGEST, TOO_LONG, Item, Unread

JsonObject = dict[str, JsonValue]

NO_JSON = (ValueError, RecursionError)
"""What reading JSON may end with: no JSON, numbers of thousands of digits, brackets in brackets without end."""
NOT_JSON = "not JSON"
"""Reason for which lines are counted."""
BETWEEN = " \t\r\n,[]"
"""What may stand between two values: a list is told by its brackets alone."""


def values_of_json(
    first: int, pieces: Iterator[str], decoder: json.JSONDecoder | None = None
) -> Iterator[tuple[int, JsonValue | Item]]:
    """Return each value with the number of the line on which it begins; the first piece is of line `first`.

    A malformed value becomes an `Item` with the reason and ends the iteration: the start of the next value is unknown.
    """
    decoder = decoder or json.JSONDecoder()
    text, place, line, depth = "", 0, first, 0
    while True:
        begin = place
        while place < len(text) and text[place] in BETWEEN:
            depth += {"[": 1, "]": -1}.get(text[place], 0)
            place += 1
        line += text.count("\n", begin, place)
        why = ""
        if place < len(text):
            try:
                value, end = decoder.raw_decode(text, place)
            except NO_JSON as error:
                why = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
            else:
                yield line, value
                line += text.count("\n", place, end)
                place = end
                continue
        # Either it is malformed, or incomplete: try again with twice as much text.
        rest = text[place:]
        more = _more(pieces, len(rest))
        if not more or len(rest) > LONGEST:
            if depth > 0 and not why:
                why = "the list does not end: something is cut off"
            elif more:
                why = TOO_LONG
            if why:
                yield line, Item(line, unread=Unread(why) if why == TOO_LONG else Unread(NOT_JSON, why))
            return
        text, place = rest + more, 0


def _more(pieces: Iterator[str], least: int) -> str:
    """Return further pieces joined: more than `least` characters, or all that are left."""
    found: list[str] = []
    size = 0
    while size <= least and (piece := next(pieces, "")):
        found.append(piece)
        size += len(piece)
    return "".join(found)
