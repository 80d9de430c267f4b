"""The page of a search: the best candidates of a parameter search, or the findings of a fuzzer."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from thalweg.report.drawing.draw import draw, packed
from thalweg.report.drawing.figure import Figure
from thalweg.report.offline import render


@dataclass(frozen=True)
class PageTable:
    """A table of texts."""

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    about: str = ""
    verdicts: bool = False
    """Whether the last column is a verdict."""


@dataclass(frozen=True)
class SearchPage:
    """Content of the page of a search."""

    name: str
    about: str
    headline: str
    facts: Sequence[tuple[str, str]]
    tables: Sequence[PageTable]
    figures: Sequence[Figure]
    command: str
    cautions: Sequence[str] = field(default=())
    method: str = ""
    kind: str = "search"
    """Kind for the heading: search or fuzz."""
    scenarios: Sequence[tuple[str, str]] = field(default=())


def html(page: SearchPage) -> str:
    """Return the page as HTML."""
    drawings = [draw(figure) for figure in page.figures]
    return render(
        "search.html.j2",
        ["common.js", "figures.js"],
        {"choices": [], "figures": [packed(drawing) for drawing in drawings]},
        page=page,
        figures=list(zip(page.figures, drawings, strict=True)),
    )
