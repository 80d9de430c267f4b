"""`thalweg studies`: which studies there are."""

from typing import Annotated

import typer

from thalweg.cli import output

EPILOG = "Example: thalweg studies"


def command(
    as_json: Annotated[bool, typer.Option("--json", help="Print them as JSON.")] = False,
) -> None:
    """List the papers whose experiments can be repeated here.

    thalweg reproduce NAME runs one, and judges its claims.
    """
    from thalweg.studies import load, ready_made

    studies = [load(folder) for folder in ready_made().values()]
    if as_json:
        output.data_json(
            [
                {
                    "name": study.name,
                    "title": study.claims.title,
                    "about": study.claims.about.strip(),
                    "paper": study.claims.paper.model_dump(),
                    "folder": str(study.folder),
                    "parts": list(study.claims.parts),
                    "claims": [{"id": claim.id, "text": claim.text} for claim in study.claims.claims],
                }
                for study in studies
            ]
        )
        return
    rows = [[study.name, str(len(study.claims.claims)), study.claims.title] for study in studies]
    output.data(output.table(["study", "claims", "title"], rows, numbers=[1]))
    output.talk("to run one and judge its claims: thalweg reproduce NAME --quick")
