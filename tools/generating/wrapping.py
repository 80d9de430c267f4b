"""Wraps the Markdown text of generated pages."""

import textwrap

WIDTH = 118
"""Maximum columns of a line of text."""


def wrapped(text: str) -> list[str]:
    """Return the lines of a paragraph or a list item; tables and texts with line breaks are unchanged."""
    if len(text) <= WIDTH or "\n" in text or text.startswith("|"):
        return [text]
    indent = " " * (len(text) - len(text.lstrip(" -")))
    return textwrap.wrap(text, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def item(name: str, kind: str, about: str) -> str:
    """Return an item of a list of columns or keys, with a line break at the end."""
    return "\n".join([*wrapped(f"- `{name}` ({kind}): {' '.join(about.split())}"), ""])
