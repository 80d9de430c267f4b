"""`thalweg advise`: finds where an algorithm helps users and where it hurts."""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from thalweg.cli.options import option
from thalweg.cli.printing import advise_output, output
from thalweg.errors import Exit, ThalwegError
from thalweg.scenario.text import quantities

if TYPE_CHECKING:
    from thalweg.advise import Answer, Design, QueryEngine

EPILOG = "Example: thalweg advise /var/lib/thalweg/records --by prefix --policy policy.toml"

HOUR = re.compile(r"([0-9]+)\s*h")


def command(
    places: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE|DIR",
            help="Files of `thalweg-agent record` or `thalweg import`, or their folders.",
            show_default=False,
        ),
    ],
    by: Annotated[
        list[str] | None,
        option(
            "--by",
            "NAME",
            "Split by prefix, rtt, retransmits, size, hour, as, country or other columns, separated by"
            " commas. [default: rtt,retransmits]",
        ),
    ] = None,
    where: Annotated[
        list[str] | None,
        option("--where", "COLUMN=VALUE", "Only rows with this value, such as direction=in; can be repeated."),
    ] = None,
    prefixes: Annotated[
        Path | None, option("--prefixes", "FILE", "Table of networks, for --by as and country: pfx2as, or CSV.")
    ] = None,
    out: Annotated[Path | None, option("--out", "PAGE", "Also write an HTML page with figures.")] = None,
    policy: Annotated[
        Path | None, option("--policy", "FILE", "Write the policy file for `thalweg-agent tune --policy`.")
    ] = None,
    treatment: Annotated[str, typer.Option("--treatment", metavar="CC", help="Algorithm to evaluate.")] = "bbr",
    control: Annotated[str, typer.Option("--control", metavar="CC", help="Algorithm to compare it with.")] = "cubic",
    design: Annotated[
        Literal["ab", "before-after", "switchback"],
        typer.Option(
            "--design",
            metavar="NAME",
            help="Assignment: ab (random), before-after or switchback.",
        ),
    ] = "ab",
    at: Annotated[
        str | None, option("--at", "TIME", "before-after: start of the treatment (UTC), as 2026-01-31T12:00.")
    ] = None,
    every: Annotated[str | None, option("--every", "TIME", "switchback: length of a period. [default: 1h]")] = None,
    turns_of: Annotated[
        str | None,
        option("--turns-of", "NAME", "switchback: column of independently alternating units, such as pop."),
    ] = None,
    size_limit: Annotated[
        str,
        typer.Option(
            "--size-limit",
            metavar="SIZE",
            help="Transfers of at least this size are judged by throughput, smaller ones by completion time.",
        ),
    ] = "3MB",
    least: Annotated[int, typer.Option("--least", metavar="N", min=2, help="Minimum samples per algorithm.")] = 500,
    margin: Annotated[
        str,
        typer.Option(
            "--margin",
            metavar="PERCENT",
            help="A difference that is not significant counts as zero if its whole 95 % interval is within this.",
        ),
    ] = "5%",
    false_share: Annotated[
        str,
        typer.Option(
            "--false",
            metavar="PERCENT",
            help="Maximum expected share of false verdicts among those that name an algorithm as better.",
        ),
    ] = "5%",
    cluster: Annotated[
        Literal["prefix-hour", "prefix", "hour", "pair"] | None,
        option(
            "--cluster",
            "NAME",
            "Resampled unit: prefix-hour, prefix, hour or pair (of periods). [default: by --design and --by]",
        ),
    ] = None,
    without_receiver_limited: Annotated[
        bool,
        typer.Option(
            "--without-receiver-limited",
            help="Exclude samples receiver-limited for at least half of busy time.",
        ),
    ] = False,
    seed: Annotated[int, typer.Option("--seed", metavar="N", min=0, help="Seed of the bootstrap.")] = 1,
    replicates: Annotated[
        int, typer.Option("--replicates", metavar="N", min=100, help="Number of bootstrap draws.")
    ] = 1000,
    spark: Annotated[
        str | None,
        option("--spark", "MASTER", "Run the queries on a Spark cluster: spark://host:7077."),
    ] = None,
    memory: Annotated[
        str | None,
        option("--memory", "SIZE", "Memory of queries, above which they use the disk. [default: 2.7GB]"),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Find where an algorithm helps and where it hurts.

    Prints differences and verdicts by part of the traffic; see docs/concepts/advice.md.
    """
    from thalweg.advise import Question, advise
    from thalweg.advise.question import DEFAULT_SEGMENTS
    from thalweg.records.where import conditions

    question = Question(
        treatment=treatment,
        control=control,
        design=_design(design, at, every, turns_of),
        cluster=cluster,
        size_limit_bytes=_quantity(size_limit, "--size-limit", "3MB", quantities.size),
        least_samples=least,
        false_share=_share(false_share, "--false"),
        margin=_share(margin, "--margin"),
        without_receiver_limited=without_receiver_limited,
        replicates=replicates,
        seed=seed,
        where=conditions(where or ()),
        segments=tuple(name.strip() for names in by for name in names.split(",")) if by else DEFAULT_SEGMENTS,
    )
    if spark and memory:
        raise ThalwegError(
            "bad-usage",
            "--memory limits queries on this machine, and --spark runs them on a cluster",
            place="--memory",
            found=memory,
            expected="one of the two",
        )
    answer = advise(places, question, table=prefixes, engine=lambda: _engine(spark, memory))
    written_policy = _write(answer, policy) if policy else None
    if out is not None:
        from thalweg.report.pages import advice as page

        page.write(answer, places, out)
    if as_json:
        output.data_json(advise_output.as_json(answer, places, written_policy, out))
    else:
        _show(answer, [file for file in (written_policy, out) if file is not None])
    if not answer.has_evidence:
        raise typer.Exit(Exit.NO_EVIDENCE)


def _show(answer: "Answer", written: list[Path]) -> None:
    advise_output.show(answer)
    output.talk_of_left_out(answer.left_out)
    if answer.untouched:
        output.talk(
            f"left out: {answer.untouched:,} rows of connections whose algorithm an application, a route or the"
            " administrator chose (assignment is untouched)"
        )
    if written:
        output.data("\n".join(["", *map(str, written)]))


def _engine(spark: str | None, memory: str | None) -> "QueryEngine":
    from thalweg.advise import DuckDb, Spark

    if spark:
        return Spark(spark)
    return DuckDb(memory) if memory else DuckDb()


def _write(answer: "Answer", file: Path) -> Path | None:
    """Write the policy and return its path; without evidence, an existing policy is kept."""
    from thalweg.advise.answers import policy_rules
    from thalweg.report.files import put

    if not answer.has_evidence:
        output.talk(f"{file} is not written or changed: the algorithms could not be compared in any part")
        return None
    put(file, policy_rules.text(answer), "the policy", "choose another path with `--policy FILE`", makes_folders=False)
    if not policy_rules.has_rules(answer):
        output.talk(f"{file} has no rules: it leaves all connections with {answer.question.control}")
    return file


def _design(
    name: Literal["ab", "before-after", "switchback"], at: str | None, every: str | None, unit: str | None
) -> "Design":
    from thalweg.advise import Design

    return Design(name, None if at is None else _time_us(at), None if every is None else _period_us(every), unit)


def _period_us(text: str) -> int:
    hours = HOUR.fullmatch(text.strip())
    return int(hours[1]) * 3_600_000_000 if hours else _quantity(text, "--every", "1h", quantities.time) // 1000


def _time_us(text: str) -> int:
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise ThalwegError(
            "bad-usage",
            f"`{text}` is not a time",
            place="--at",
            expected="a date and a time",
            hint="--at 2026-01-31T12:00",
        ) from None
    return round((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp() * 1e6)


def _quantity(text: str, flag: str, example: str, read: Callable[[str], int]) -> int:
    try:
        return read(text)
    except quantities.QuantityError as error:
        why = f": {error}" if str(error) else ""
        raise ThalwegError(
            "bad-usage",
            f"`{text}` does not fit{why}",
            place=flag,
            expected=f"a number with its unit, such as {example}",
        ) from None


def _share(text: str, flag: str) -> float:
    number, is_percent = text.removesuffix("%").strip(), text.endswith("%")
    try:
        value = float(number) / (100 if is_percent else 1)
    except ValueError:
        value = -1.0
    if not 0 < value < 1:
        raise ThalwegError(
            "bad-usage",
            f"`{text}` is not a percentage between 0 and 100",
            place=flag,
            expected="a percentage",
            hint=f"{flag} 5%",
        )
    return value
