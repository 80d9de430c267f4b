"""`thalweg records`: summarises records of live servers."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from thalweg.cli.options import option
from thalweg.cli.printing import output, records_output
from thalweg.errors import ThalwegError

if TYPE_CHECKING:
    from thalweg.records import Summary

EPILOG = "Example: thalweg records /var/lib/thalweg/records --out week.html"


def command(
    places: Annotated[
        list[Path], typer.Argument(metavar="FILE|DIR", help="Files of records, or folders.", show_default=False)
    ],
    where: Annotated[
        list[str] | None,
        option("--where", "COLUMN=VALUE", "Only rows with this value, such as direction=in; can be repeated."),
    ] = None,
    out: Annotated[Path | None, option("--out", "PAGE", "Also write an HTML page with figures.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print all numbers as JSON.")] = False,
) -> None:
    """Summarise records of live servers.

    Reads the files of `thalweg-agent record` and `thalweg import` from any number of machines. Prints by algorithm the
    number of connections and transfers, quantiles of goodput, completion times, RTTs and queues, and the mean
    retransmit ratio; also how connections ended, and which columns are empty. docs/reference/records.md describes the
    columns.
    """
    from thalweg.records import summary_of
    from thalweg.records.where import conditions, text

    summary = summary_of(places, conditions(where or ()))
    if not summary.rows and summary.where:
        raise ThalwegError(
            "no-records",
            f"no row has {text(summary.where)}",
            place="--where",
            expected="a value of the records",
            hint="without --where, the output counts the values of some columns; --json counts more of them",
        )
    if not summary.rows:
        others = ", ".join(f"{rows} of the kind `{kind}`" for kind, rows in summary.unknown_kinds.items())
        raise ThalwegError(
            "no-records",
            f"the files contain only {others}, which this version of thalweg does not know"
            if others
            else "the files contain no rows",
            place=str(places[0]),
            expected="rows of connections that have closed, or have been open for a minute",
            hint="pip install --upgrade thalweg"
            if others
            else "thalweg-agent status shows the number of recorded rows",
        )
    if out is not None:
        from thalweg.report.pages import records as page

        page.write(summary, places, out)
    if as_json:
        output.data_json(records_output.as_json(summary, places, out))
        return
    records_output.show(summary)
    _talk_of(summary)
    if out is not None:
        output.data("")
        output.data(str(out))


def _talk_of(summary: "Summary") -> None:
    output.talk_of_left_out(summary.left_out)
    for kind, rows in summary.unknown_kinds.items():
        output.talk(f"left out: {rows} rows of the kind `{kind}`, which this version of thalweg does not know")
