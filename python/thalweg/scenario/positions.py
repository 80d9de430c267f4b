"""In which line of a TOML file a key stands.

`tomllib` reads values without their places. This scanner knows just enough of TOML to find table headers and keys at
the start of lines, so that an error can point to a line; a key inside an inline table has the line of that table.
"""

import re

Place = tuple[str | int, ...]
"""Keys and list indices from the top of the file."""

_KEY = r"""(?:[A-Za-z0-9_-]+|"(?:[^"\\]|\\.)*"|'[^']*')"""
_DOTTED = rf"{_KEY}(?:\s*\.\s*{_KEY})*"
_HEADER = re.compile(rf"\s*(\[\[?)\s*({_DOTTED})\s*\]")
_ASSIGNMENT = re.compile(rf"\s*({_DOTTED})\s*=\s*(.*)")


def _keys(text: str) -> Place:
    return tuple(part[1:-1] if part[0] in "\"'" else part for part in re.findall(_KEY, text))


def dotted(place: Place) -> str:
    """Write a place as people do.

    >>> dotted(("claims", 0, "where", "path.buffer"))
    'claims.0.where."path.buffer"'
    """
    return ".".join(f'"{part}"' if "." in str(part) else str(part) for part in place)


def lines(text: str) -> dict[Place, int]:
    """Map the places of a TOML text to line numbers, from 1.

    >>> lines('[path]\\nrtt = "1ms"\\n[[flow]]\\nname = "a"')
    {('path',): 1, ('path', 'rtt'): 2, ('flow', 0): 3, ('flow', 0, 'name'): 4}
    """
    found: dict[Place, int] = {}
    counts: dict[Place, int] = {}
    table: Place = ()
    quotes = ""
    for number, line in enumerate(text.splitlines(), 1):
        if quotes:
            quotes = "" if quotes in line else quotes
            continue
        if header := _HEADER.match(line):
            table = _inside_arrays(_keys(header[2]), counts)
            if header[1] == "[[":
                counts[table] = counts.get(table, -1) + 1
                table = (*table, counts[table])
            found.setdefault(table, number)
        elif assignment := _ASSIGNMENT.match(line):
            found.setdefault((*table, *_keys(assignment[1])), number)
            opened = re.match(r'"""|' + "'''", assignment[2])
            if opened and opened[0] not in assignment[2][3:]:
                quotes = opened[0]
    return found


def _inside_arrays(keys: Place, counts: dict[Place, int]) -> Place:
    """Put in the indices of the arrays of tables on the way: `[flow.repeat]` belongs to the last flow."""
    place: Place = ()
    for key in keys[:-1]:
        place = (*place, key)
        if place in counts:
            place = (*place, counts[place])
    return (*place, *keys[-1:])


def line_of(place: Place, found: dict[Place, int]) -> int | None:
    """Look up the line of a place, or of the nearest table around it that has one."""
    for length in range(len(place), 0, -1):
        if place[:length] in found:
            return found[place[:length]]
        if (*place[:length], 0) in found:
            return found[(*place[:length], 0)]
    return None
