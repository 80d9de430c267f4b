"""The page of a study: claims with their verdicts, figures, a description, and the provenance."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from thalweg.report.drawing.draw import draw, packed
from thalweg.report.drawing.figure import Figure
from thalweg.report.files import put
from thalweg.report.offline import render
from thalweg.report.text.claim_verdicts import UNJUDGED, ClaimVerdict
from thalweg.report.text.prose import is_safe, prose

SYMBOLS: dict[ClaimVerdict, str] = {
    "holds": "\N{CHECK MARK}",
    "does not hold": "\N{BALLOT X}",
    "not settled": "~",
    "cannot run here": "\N{EN DASH}",
    "not in the quick set": "\N{MIDDLE DOT}",
}

PLURALS: dict[ClaimVerdict, str] = {"holds": "hold", "does not hold": "do not hold"}


@dataclass(frozen=True)
class PageVerdict:
    """Result of one engine for a claim."""

    engine: str
    verdict: ClaimVerdict
    value: str = ""
    """The measured value with its 95 % interval and unit, as text; empty if nothing was run."""
    n: int | None = None
    """Number of repetitions behind the value."""
    note: str = ""
    """Reason why it was not run or not settled, or the numbers of points that met the bounds or have no value."""


@dataclass(frozen=True)
class PageClaim:
    """A claim of the paper, and its results."""

    id: str
    text: str
    source: str
    """Location in the paper, such as `fig. 3, sec. V-A`."""
    paper: str
    judged: Sequence[PageVerdict]
    """Verdicts, one per engine, in the order of `StudyPage.engines`."""
    asked: str = ""
    """Required value, such as `at most 0.9 at every point`."""
    trust: str = ""
    """Evidence on whether the claim replicates."""
    reason: str = ""


@dataclass(frozen=True)
class Provenance:
    """How one engine ran the study."""

    engine: str
    version: str
    command: str
    seconds: float | None = None
    """Total wall-clock time of all parts."""
    machine: str = ""
    experiments: int | None = None
    scaled: Sequence[str] = ()
    """Differences from the paper's set-up, one sentence each."""
    directories: Sequence[str] = ()


@dataclass(frozen=True)
class Section:
    """An additional section of the page, in Markdown."""

    title: str
    text: str


@dataclass(frozen=True)
class StudyPage:
    """Content of the page of a study."""

    name: str
    title: str
    about: str
    cite: str
    url: str
    story: str
    """The study's README.md; its first heading is omitted, because the page has a title."""
    engines: Sequence[str]
    claims: Sequence[PageClaim]
    figures: Sequence[Figure] = ()
    provenance: Sequence[Provenance] = ()
    sections: Sequence[Section] = ()
    is_quick: bool = False
    """Whether this is the quick set, with fewer points and repetitions."""
    cautions: Sequence[str] = field(default=())
    left_out: Sequence[str] = ()


def write(page: StudyPage, output: Path) -> None:
    """Write the page as one HTML file.

    Raises:
        ThalwegError: If `output` cannot be written.
    """
    put(output, html(page), "the study's page", "choose another path with `thalweg reproduce NAME --out DIR`")


def html(page: StudyPage) -> str:
    """Return the page as HTML."""
    drawings = [draw(figure) for figure in page.figures]
    engines = [{"title": "engine", "column": "engine", "values": list(page.engines), "has_all": True}]
    choices = engines if len(page.engines) > 1 else []
    return render(
        "study.html.j2",
        ["common.js", "figures.js"],
        {"choices": choices, "figures": [packed(drawing) for drawing in drawings]},
        page=page,
        headlines=headlines(page),
        symbols=SYMBOLS,
        plurals=PLURALS,
        link=page.url if is_safe(page.url) else "",
        figures=list(zip(page.figures, drawings, strict=True)),
        story=prose(page.story),
        sections=[(section.title, prose(section.text)) for section in page.sections],
    )


@dataclass(frozen=True)
class Headline:
    """Summary of one engine's results."""

    engine: str
    holds: int
    judged: int
    """Number of claims that were run."""
    counts: list[tuple[ClaimVerdict, int]]


def headlines(page: StudyPage) -> list[Headline]:
    """Count the verdicts of each engine; claims that were not run are counted, but not as judged."""
    listed = []
    for engine in page.engines:
        verdicts = [judged_.verdict for claim in page.claims for judged_ in claim.judged if judged_.engine == engine]
        counts = [(verdict, verdicts.count(verdict)) for verdict in SYMBOLS if verdict in verdicts]
        judged = sum(verdict not in UNJUDGED for verdict in verdicts)
        listed.append(Headline(engine, verdicts.count("holds"), judged, counts))
    return listed
