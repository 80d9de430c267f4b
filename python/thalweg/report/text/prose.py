"""Converts a study's Markdown to HTML; raw HTML is escaped, and only safe links are kept."""

from collections.abc import Sequence

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup

SAFE = ("https://", "http://", "mailto:")
"""Schemes of links that are kept; other links are replaced by their text."""
DEEPER = 1
"""Number of levels by which headings are lowered to be below the headings of the page."""


def prose(markdown: str) -> Markup:
    """Convert Markdown to HTML; a title at the beginning is omitted.

    >>> prose("# Title\\n\\nSee [here](javascript:alert(1)) & <b>there</b>.")
    Markup('<p>See here &amp; &lt;b&gt;there&lt;/b&gt;.</p>\\n')
    """
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    parser.validateLink = lambda url: True  # type: ignore[method-assign]  # judged below: what is unsafe stays text
    tokens = parser.parse(markdown)
    if tokens and tokens[0].type == "heading_open" and tokens[0].tag == "h1":
        tokens = tokens[3:]
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(6, int(token.tag[1]) + DEEPER)}"
        if token.children:
            token.children = _safe(token.children)
    return Markup(parser.renderer.render(tokens, parser.options, {}))


def _safe(tokens: Sequence[Token]) -> list[Token]:
    kept: list[Token] = []
    is_open: list[bool] = []
    for token in tokens:
        if token.type == "image":
            kept.append(Token("text", "", 0, content=token.content))
            continue
        if token.type == "link_open":
            is_open.append(is_safe(token.attrGet("href")))
            token.attrSet("rel", "noopener noreferrer")
        if token.type not in ("link_open", "link_close") or is_open[-1]:
            kept.append(token)
        if token.type == "link_close":
            is_open.pop()
    return kept


def is_safe(url: str | float | None) -> bool:
    """Return whether a link is permitted on a page."""
    return isinstance(url, str) and url.lower().startswith(SAFE)
