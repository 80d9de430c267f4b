"""Makes text from data safe to print: control characters are escaped, and no cell of CSV starts a formula.

Names of flows, reasons of engines, log lines and file names are untrusted data.
"""

import re

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""C0 except tab and newline, DEL, C1, line separators, characters that change the direction of text, lone surrogates.
"""

_FORMULA = re.compile(r"[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")
"""First characters of a cell that a spreadsheet interprets as a formula, or ignores before one."""

_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?|-inf")


def lines(text: str) -> str:
    """Escape the control characters of a multi-line text, except tabs and newlines.

    >>> lines("red: \\x1b[31m\\r\\nnext")
    'red: \\\\x1b[31m\\\\x0d\\nnext'
    """
    return _CONTROL.sub(_escaped, text)


def value(text: str) -> str:
    r"""Escape every control character of a single value, tabs and newlines included.

    >>> value("two\tcolumns\nand a line")
    'two\\x09columns\\x0aand a line'
    """
    return lines(text).replace("\t", r"\x09").replace("\n", r"\x0a")


def json_text(text: str) -> str:
    r"""Escape the control characters that `json.dumps` does not; they occur only within strings.

    >>> json_text('["\x9b2J"]')
    '["\\u009b2J"]'
    """
    return _CONTROL.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def csv_cell(text: str) -> str:
    r"""Return a text cell of CSV that spreadsheets do not evaluate; numbers are unchanged.

    >>> csv_cell("=1+1"), csv_cell("-5.5"), csv_cell("cubic"), csv_cell("\x1b[2J")
    ("'=1+1", '-5.5', 'cubic', '\\x1b[2J')
    """
    is_formula = _FORMULA.match(text) and not _NUMBER.fullmatch(text)
    return value(f"'{text}" if is_formula else text)


def plain(value: object) -> str:
    """Return a single value of a scenario as text, without quotes; a float has at most six significant digits.

    >>> [plain(value) for value in ("1bdp", 0.01, 2.0, True)]
    ['1bdp', '0.01', '2', 'true']
    """
    return str(value).lower() if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)


def _escaped(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
