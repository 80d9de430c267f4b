"""Output of `thalweg reproduce`: the claims and their verdicts."""

import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from thalweg import printable
from thalweg.cli.printing import evidence, output
from thalweg.run import duration
from thalweg.studies import UNJUDGED, ClaimVerdict, Judged, Reproduced, Study
from thalweg.studies.claims.models import Claim
from thalweg.studies.pages import lessons, texts

STYLES: dict[ClaimVerdict, str] = {
    "holds": "green",
    "does not hold": "red",
    "not settled": "yellow",
    "cannot run here": "dim",
    "not in the quick set": "dim",
}

NARROWEST = 100
"""Minimum width of the table in columns if standard output is not a terminal."""


def show(study: Study, reproduced: Sequence[Reproduced], page: Path | None, figures: Sequence[Path] | None) -> None:
    """Print the claims as a table with a column per engine, a summary line per engine, and the paths of the results."""
    terminal = Console(file=sys.stdout)
    if not terminal.is_terminal:
        terminal = Console(file=sys.stdout, width=max(NARROWEST, terminal.width))
    table = Table(title=study.claims.title, title_justify="left", show_lines=True)
    table.add_column("Claim", ratio=3, overflow="fold")
    table.add_column("Paper", ratio=1, overflow="fold")
    for result in reproduced:
        table.add_column(result.engine.name, ratio=2, overflow="fold")
    for claim in study.claims.claims:
        cells = [_cell(claim, result.judged[claim.id]) for result in reproduced]
        for cell in (row := [_claim(claim), Text(texts.paper(claim)), *cells]):
            cell.plain = printable.lines(cell.plain)
        table.add_row(*row)
    try:
        terminal.print(table)
    except BrokenPipeError:
        raise output.NobodyReads from None
    for result in reproduced:
        for part, planned_part in result.planned_parts.items():
            if planned_part.plan and planned_part.scaled:
                output.data(f"{result.engine.name}, {part}: {planned_part.scaled}")
    for result in reproduced:
        output.data(_count(result))
    if page:
        output.data(f"page  {page}")
    for file in figures or ():
        output.data(f"figure  {file}")


def as_json(
    study: Study, reproduced: Sequence[Reproduced], page: Path | None, figures: Sequence[Path] | None, *, quick: bool
) -> dict[str, object]:
    """Return all results."""
    return {
        "study": study.name,
        "quick": quick,
        "page": str(page) if page else None,
        **({} if figures is None else {"figures": [str(file) for file in figures]}),
        "engines": [_engine(study, result) for result in reproduced],
    }


def _engine(study: Study, reproduced: Reproduced) -> dict[str, object]:
    return {
        "engine": reproduced.engine.name,
        "available": reproduced.engine.available,
        "result_version": reproduced.engine.version,
        "seconds": round(reproduced.seconds, 1),
        "experiments": reproduced.experiments,
        "failed": reproduced.failed,
        "evidence": evidence.min_extent(reproduced.evidence),
        "cautions": reproduced.cautions,
        "runs": {part: str(directory) for part, directory in reproduced.directories.items()},
        "scaled": {
            part: planned_part.scaled
            for part, planned_part in reproduced.planned_parts.items()
            if planned_part.plan and planned_part.scaled
        },
        "claims": [_judged(claim, reproduced.judged[claim.id]) for claim in study.claims.claims],
        "trees": lessons.trees(study, reproduced),
    }


def _judged(claim: Claim, judged: Judged) -> dict[str, object]:
    return {
        "id": claim.id,
        "text": claim.text.strip(),
        "source": claim.source,
        "paper": claim.paper,
        "asked": texts.asked(claim),
        "verdict": judged.verdict,
        "value": judged.value,
        "low": judged.low,
        "high": judged.high,
        "n": judged.n,
        "points": judged.points,
        "where": judged.where,
        "note": judged.note,
    }


def _claim(claim: Claim) -> Text:
    text = Text(claim.id, style="bold")
    text.append(f"\n{claim.text.strip()}", style="not bold")
    text.append(f"\ncriterion: {texts.asked(claim)}", style="not bold dim")
    if claim.source:
        text.append(f"; {claim.source}", style="not bold dim")
    if claim.trust:
        text.append(f"\ntrust: {claim.trust.strip()}", style="not bold dim")
    return text


def _cell(claim: Claim, judged: Judged) -> Text:
    text = Text(judged.verdict, style=STYLES[judged.verdict])
    for line in (texts.ours(judged, texts.unit(claim)), judged.note):
        if line:
            text.append(f"\n{line}", style="default")
    if claim.reason and judged.verdict in ("does not hold", "not settled"):
        text.append(f"\nwhy: {claim.reason.strip()}", style="default")
    return text


def _count(reproduced: Reproduced) -> str:
    verdicts = [judged.verdict for judged in reproduced.judged.values()]
    judged = sum(verdict not in UNJUDGED for verdict in verdicts)
    counts = {title: verdicts.count(title) for title in STYLES if title != "holds"}
    others = [f"{count} {_plural(title) if count > 1 else title}" for title, count in counts.items() if count]
    rest = f": {', '.join(others)}" if others else ""
    failed = f"; {reproduced.failed} experiments failed" if reproduced.failed else ""
    time_taken = f"; it took {duration(reproduced.seconds)}" if reproduced.directories else ""
    return f"{reproduced.engine.name}: {verdicts.count('holds')} of {judged} claims hold{rest}{failed}{time_taken}"


def _plural(verdict: ClaimVerdict) -> str:
    return "do not hold" if verdict == "does not hold" else verdict
