"""How `thalweg reproduce` prints what became of the claims."""

import sys
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from thalweg.cli import output
from thalweg.studies import Judged, Reproduced, Study, Verdict, texts
from thalweg.studies.models import Claim

STYLES: dict[Verdict, str] = {
    "holds": "green",
    "does not hold": "red",
    "not settled": "yellow",
    "cannot run here": "dim",
}

NARROWEST = 100
"""Columns of the table where standard output is no terminal, which has a width of its own."""


def show(study: Study, reproduced: Sequence[Reproduced]) -> None:
    """Print the claims as a table, with a column per engine, and the count of verdicts."""
    terminal = Console(file=sys.stdout)
    if not terminal.is_terminal:
        terminal = Console(file=sys.stdout, width=max(NARROWEST, terminal.width))
    table = Table(title=study.claims.title, title_justify="left", show_lines=True)
    table.add_column("Claim", ratio=3)
    table.add_column("Paper", ratio=1)
    for each in reproduced:
        table.add_column(each.engine.name, ratio=2)
    for claim in study.claims.claims:
        cells = [_cell(claim, each.judged.get(claim.id)) for each in reproduced]
        table.add_row(_claim(claim), Text(texts.paper(claim)), *cells)
    terminal.print(table)
    for each in reproduced:
        output.data(_count(each))


def _claim(claim: Claim) -> Text:
    text = Text(claim.id, style="bold")
    text.append(f"\n{claim.text.strip()}", style="not bold")
    text.append(f"\nasked: {texts.asked(claim)}", style="not bold dim")
    if claim.source:
        text.append(f"; {claim.source}", style="not bold dim")
    if claim.trust:
        text.append(f"\ntrust: {claim.trust.strip()}", style="not bold dim")
    return text


def _cell(claim: Claim, judged: Judged | None) -> Text:
    if judged is None:
        return Text("not judged yet", style="dim")
    text = Text(judged.verdict, style=STYLES[judged.verdict])
    for line in (texts.ours(judged, texts.unit(claim)), judged.note):
        if line:
            text.append(f"\n{line}", style="default")
    if claim.reason and judged.verdict in ("does not hold", "not settled"):
        text.append(f"\nwhy: {claim.reason.strip()}", style="default")
    return text


def _count(reproduced: Reproduced) -> str:
    verdicts = [judged.verdict for judged in reproduced.judged.values()]
    counts = [f"{verdicts.count(verdict)} {verdict}" for verdict in STYLES if verdicts.count(verdict)]
    return f"{reproduced.engine.name}: {', '.join(counts)} ({len(verdicts)} claims, {reproduced.seconds:.0f} s)"
