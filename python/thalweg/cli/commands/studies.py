"""`thalweg studies`: lists the studies."""

from typing import TYPE_CHECKING, Annotated

import typer

from thalweg.cli.printing import output
from thalweg.errors import ThalwegError, ThalwegErrors

if TYPE_CHECKING:
    from thalweg.studies import Study

EPILOG = "Example: thalweg studies"


def command(
    as_json: Annotated[bool, typer.Option("--json", help="Print the studies as JSON.")] = False,
) -> None:
    """List the studies of published results that thalweg can repeat.

    thalweg reproduce NAME runs one, and judges its claims.
    """
    from thalweg.studies import load, ready_made

    studies: list[Study] = []
    mistakes: list[ThalwegError] = []
    for folder in ready_made().values():
        try:
            studies.append(load(folder))
        except ThalwegError as error:
            mistakes += error.errors
    if as_json and not mistakes:
        output.data_json([_as_json(study) for study in studies])
        return
    if not as_json:
        rows = [[study.name, str(len(study.claims.claims)), study.claims.title] for study in studies]
        output.data(output.table(["study", "claims", "title"], rows, numbers=[1]))
    if mistakes:
        raise ThalwegErrors(mistakes)
    output.talk("to run one and judge its claims: thalweg reproduce NAME --quick")


def _as_json(study: "Study") -> dict[str, object]:
    return {
        "name": study.name,
        "title": study.claims.title,
        "about": study.claims.about.strip(),
        "paper": study.claims.paper.model_dump(),
        "folder": str(study.folder),
        "parts": list(study.claims.parts),
        "claims": [{"id": claim.id, "text": claim.text.strip()} for claim in study.claims.claims],
        "figures": [{"id": figure.id, "title": figure.title} for figure in study.claims.figures],
    }
