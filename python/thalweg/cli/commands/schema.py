"""`thalweg schema`: prints the schemas of scenarios, plans and tables, for editors and programs."""

import json
from dataclasses import asdict
from importlib.resources import files
from typing import Annotated

import typer

from thalweg.cli.printing import output
from thalweg.errors import ThalwegError

EPILOG = "Example: thalweg schema > scenario.schema.json"


def command(
    columns: Annotated[
        bool, typer.Option("--columns", help="Print the columns of run directories and records instead.")
    ] = False,
    plan: Annotated[bool, typer.Option("--plan", help="Print the schema of plans instead.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON; the output is always JSON.", hidden=True)
    ] = False,
) -> None:
    """Print the JSON Schema of scenarios."""
    if columns and plan:
        raise ThalwegError("bad-usage", "--columns and --plan cannot be combined", expected="one of them")
    if columns:
        from thalweg.results.columns import RECORDS, TABLES

        tables, records = ([asdict(table) for table in group.values()] for group in (TABLES, RECORDS))
        output.data_json({"format": 1, "tables": tables, "records": records})
        return
    layer = "plan" if plan else "scenario"
    text = files(f"thalweg.{layer}").joinpath(f"{layer}.schema.json").read_text(encoding="utf-8")
    if plan:
        output.data(text.rstrip())
        return
    from thalweg.search.schema import with_searches

    output.data_json(with_searches(json.loads(text)))
