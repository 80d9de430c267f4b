"""Line numbers of keys in a TOML file.

`tomllib` reads values without their lines. This scanner finds table headers and keys at the start of lines; a key
inside an inline table has the line of that table.
"""

import re

KeyPath = tuple[str | int, ...]
"""Keys and list indices from the top of the file."""

_KEY = r"""(?:[A-Za-z0-9_-]+|"(?:[^"\\]|\\.)*"|'[^']*')"""
_DOTTED = rf"{_KEY}(?:\s*\.\s*{_KEY})*"
_HEADER = re.compile(rf"\s*(\[\[?)\s*({_DOTTED})\s*\]")
_ASSIGNMENT = re.compile(rf"\s*({_DOTTED})\s*=\s*(.*)")


def _keys(text: str) -> KeyPath:
    return tuple(part[1:-1] if part[0] in "\"'" else part for part in re.findall(_KEY, text))


def dotted(key_path: KeyPath) -> str:
    """Return a key path with dots; parts that contain a dot are quoted.

    >>> dotted(("claims", 0, "where", "path.buffer"))
    'claims.0.where."path.buffer"'
    """
    return ".".join(f'"{part}"' if "." in str(part) else str(part) for part in key_path)


def lines(text: str) -> dict[KeyPath, int]:
    """Map the key paths of a TOML text to line numbers, from 1.

    >>> lines('[path]\\nrtt = "1ms"\\n[[flow]]\\nname = "a"')
    {('path',): 1, ('path', 'rtt'): 2, ('flow', 0): 3, ('flow', 0, 'name'): 4}
    """
    numbers: dict[KeyPath, int] = {}
    counts: dict[KeyPath, int] = {}
    table: KeyPath = ()
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
            numbers.setdefault(table, number)
        elif assignment := _ASSIGNMENT.match(line):
            numbers.setdefault((*table, *_keys(assignment[1])), number)
            opened = re.match(r'"""|' + "'''", assignment[2])
            if opened and opened[0] not in assignment[2][3:]:
                quotes = opened[0]
    return numbers


def _inside_arrays(keys: KeyPath, counts: dict[KeyPath, int]) -> KeyPath:
    """Insert the indices of arrays of tables: `[flow.repeat]` belongs to the last flow."""
    key_path: KeyPath = ()
    for key in keys[:-1]:
        key_path = (*key_path, key)
        if key_path in counts:
            key_path = (*key_path, counts[key_path])
    return (*key_path, *keys[-1:])


def line_of(key_path: KeyPath, numbers: dict[KeyPath, int]) -> int | None:
    """Return the line of a key path, or of the nearest enclosing table with a line."""
    for length in range(len(key_path), 0, -1):
        if key_path[:length] in numbers:
            return numbers[key_path[:length]]
        if (*key_path[:length], 0) in numbers:
            return numbers[(*key_path[:length], 0)]
    return None
