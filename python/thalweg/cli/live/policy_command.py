"""`thalweg policy`: compares policies that choose an algorithm for each destination."""

from collections.abc import Sequence
from typing import Annotated

import typer

from thalweg.cli import helped
from thalweg.cli.printing import output
from thalweg.engine_output import PolicySpread, PolicySummary

EPILOG = "Example: thalweg policy simulate --policy bayes --policy ucb"

commands = typer.Typer(
    help="Compare policies that choose an algorithm for each destination.",
    epilog=EPILOG,
    no_args_is_help=True,
    rich_markup_mode=None,
)

HEADINGS = (
    "policy",
    "regret",
    "worst tenth",
    "with hold-out",
    "good",
    "settled",
    "after a change",
    "short of CPU",
    "harm",
)
"""Columns of the table. Numbers are medians over the simulated populations, except `worst tenth`, their 90th
percentile, and `settled` and `after a change`: medians over destinations, with the 90th percentile in brackets.
"""


@commands.callback()
def _group() -> None:
    pass


@commands.command("simulate", cls=helped.Command, epilog=EPILOG)
def simulate(
    seeds: Annotated[
        int, typer.Option("--seeds", metavar="N", help="Number of simulated populations.", min=1, max=10_000)
    ] = 100,
    policies: Annotated[
        list[str] | None,
        typer.Option(
            "--policy",
            metavar="NAME",
            help="Simulate only this policy, such as ucb, or with quotes 'ucb, guarded'; can be repeated.",
        ),
    ] = None,
    retransmit_price: Annotated[
        float,
        typer.Option(
            "--retransmit-price",
            metavar="PRICE",
            help="Cost of retransmissions: with 1, retransmitting a tenth of all segments is as bad as"
            " a tenth more completion time.",
            min=0,
            max=1000,
        ),
    ] = 1.0,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print the table as Markdown.")] = False,
    kinds: Annotated[bool, typer.Option("--kinds", help="Print the regret for each kind of path instead.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Simulate policies on a population of paths.

    All policies are simulated on the same populations: a sending host, which in a quarter of them is short of CPU for a
    while, and destinations with paths of several kinds, some of which change. The result of a connection with each
    algorithm was simulated packet by packet. Regret is what a connection loses against the best algorithm of its path
    at that time, in per cent of time or rate. All columns are explained in docs/concepts/policies.md.
    """
    from thalweg import engine

    results = engine.play_policies(seeds, policies or [], retransmit_price)
    if as_json:
        output.data_json(results)
        return
    headings, rows = (
        _kinds(results["policies"]) if kinds else (HEADINGS, [_row(policy) for policy in results["policies"]])
    )
    if markdown:
        output.data(_markdown(headings, rows))
        return
    output.data(output.table(headings, rows, numbers=range(1, len(headings))))


def _row(summary: PolicySummary) -> list[str]:
    return [
        str(summary["policy"]),
        f"{summary['regret_percent']['median']:.2f} %",
        f"{summary['regret_percent']['worst_decile']:.2f} %",
        f"{summary['regret_with_holdout_percent']['median']:.2f} %",
        f"{summary['good_percent']['median']:.1f} %",
        _median(summary["settled"], ""),
        _median(summary["settled_after_change"], ""),
        _median(summary["regret_while_busy_percent"], " %"),
        f"{summary['harm_percent']['median']:.1f} %",
    ]


def _median(spread: PolicySpread | None, unit: str) -> str:
    if spread is None:
        return "-"
    return f"{spread['median']:.1f}{unit}" if unit else f"{spread['median']:.0f} ({spread['worst_decile']:.0f})"


def _kinds(summaries: Sequence[PolicySummary]) -> tuple[Sequence[str], list[list[str]]]:
    headings = ["path", *(str(summary["policy"]) for summary in summaries)]
    names = list(summaries[0]["by_kind_percent"])
    return headings, [[name, *(f"{policy['by_kind_percent'][name]:.2f} %" for policy in summaries)] for name in names]


def _markdown(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines: list[Sequence[str]] = [headings, ["---", *("---:" for _ in headings[1:])], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
