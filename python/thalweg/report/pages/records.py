"""The page about records of live servers."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from thalweg.records import MEASURES, SIZES, Count, Missing, Summary
from thalweg.records.where import text
from thalweg.report.drawing.colours import line_colours
from thalweg.report.drawing.draw import draw, packed
from thalweg.report.drawing.records_figures import MAX_LINES, figures
from thalweg.report.files import put
from thalweg.report.offline import render
from thalweg.report.pages.records_table import MEANS, about_untouched, cells, period
from thalweg.report.text.labels import NOTHING
from thalweg.report.text.numbers import amount, per_cent

TITLES = {
    "kind": "Rows",
    "source": "Source",
    "machine": "Machine",
    "cc": "Congestion control",
    "close": "How connections closed",
    "direction": "Opened",
    "ip_version": "IP version",
    "joined": "Open before recording began",
}

WORDS = {
    "kind": {"close": "connections closed", "interim": "connections still open", "transfer": "transfers"},
    "joined": {"true": "yes", "false": "no"},
    "direction": {"in": "by the peer", "out": "by this machine"},
    "close": {
        "local_fin": "this side was first to finish",
        "remote_fin": "the peer was first to finish",
        "local_reset": "reset by this side",
        "remote_reset": "reset by the peer",
        "timeout": "timed out",
        "unseen": "close not observed",
    },
}

MAX_VALUES = 12
SURE = 30
"""Minimum number of rows of an algorithm for reliable quantiles."""
MAX_LEFT_OUT = 20


@dataclass(frozen=True)
class RecordsRow:
    """A row of a table: its heading and its cells."""

    title: str
    cells: Sequence[str]


@dataclass(frozen=True)
class RecordsTable:
    """A table."""

    headings: Sequence[str]
    rows: Sequence[RecordsRow]


def write(summary: Summary, paths: Sequence[Path], output: Path) -> None:
    """Write the page as one HTML file.

    Raises:
        ThalwegError: If `output` cannot be written.
    """
    put(output, html(summary, paths), "the page", "choose another file with `thalweg records DIR --out FILE`")


def html(summary: Summary, paths: Sequence[Path]) -> str:
    """Return the page as HTML."""
    drawings = [(figure, draw(figure)) for figure in figures(summary)]
    return render(
        "records.html.j2",
        ["common.js", "figures.js"],
        {"choices": [], "figures": [packed(drawing) for _, drawing in drawings]},
        title=_title(summary),
        period=period(summary.first_us, summary.last_us),
        places=[str(path) for path in paths],
        summary=summary,
        cautions=list(_cautions(summary)),
        counts=[(title, _shares(summary.counts[column], column)) for column, title in TITLES.items()],
        algorithms=_algorithms(summary),
        hues=line_colours(list(summary.algorithms)[:MAX_LINES]),
        times=_times(summary),
        never=[column for column in summary.missing if _min_share(column) == 1],
        missing=[column for column in summary.missing if _min_share(column) < 1],
        per_cent=per_cent,
        figures=drawings,
    )


def _title(summary: Summary) -> str:
    kinds = {count.value: count.connections + count.transfers for count in summary.counts["kind"]}
    connections, transfers = kinds.get("close", 0) + summary.open, kinds.get("transfer", 0)
    parts = [f"{connections:,} connection{'s' * (connections != 1)}"] if connections else []
    parts += [f"{transfers:,} transfer{'s' * (transfers != 1)}"] if transfers else []
    return " and ".join(parts)


def _cautions(summary: Summary) -> Iterator[str]:
    if summary.largest_weight > 1:
        yield (
            f"One in {summary.largest_weight} connections was recorded. Row counts are not weighted; shares, quantiles"
            " and figures weight each row by the number of connections that it represents."
        )
    if len([name for name in summary.algorithms if name != "unknown"]) > 1:
        yield (
            "Algorithms are compared as they were used. If they served different users, machines or hours, differences"
            " may have these causes: they justify an experiment, but are not verdicts."
        )
    if untouched := about_untouched(summary):
        yield untouched
    scarce = [
        algorithm.cc
        for algorithm in summary.algorithms.values()
        if algorithm.count.connections + algorithm.count.transfers < SURE
    ]
    if scarce:
        yield f"Fewer than {SURE} rows: {', '.join(scarce)}. Their quantiles are unreliable."
    if "unknown" in summary.algorithms:
        yield "The congestion control of some rows is not known: they are counted as unknown."
    hidden = list(summary.algorithms)[MAX_LINES:]
    if hidden:
        yield f"Figures show the {MAX_LINES} algorithms with the most rows, without {', '.join(hidden)}."
    if summary.where:
        yield f"Only rows with {text(summary.where)} count."
    for kind, rows in summary.unknown_kinds.items():
        yield f"{rows:,} rows of the kind {kind}, which this version of thalweg does not know, were left out."
    skipped = [f"{file.file.name} was left out: {file.why}." for file in summary.left_out]
    yield from skipped[:MAX_LEFT_OUT]
    if len(skipped) > MAX_LEFT_OUT:
        yield f"{len(skipped) - MAX_LEFT_OUT} more files were left out."


def _shares(counts: Sequence[Count], column: str) -> list[tuple[str, str, str]]:
    total = sum(count.connections_stand_for + count.transfers_stand_for for count in counts)
    words = WORDS.get(column, {})

    def line(title: str, group: Sequence[Count]) -> tuple[str, str, str]:
        rows = sum(count.connections + count.transfers for count in group)
        weight = sum(count.connections_stand_for + count.transfers_stand_for for count in group)
        return title, f"{rows:,}", per_cent(weight / total)

    lines = [line(words.get(count.value, count.value), [count]) for count in counts[:MAX_VALUES]]
    if len(counts) > MAX_VALUES:
        lines.append(line(f"{len(counts) - MAX_VALUES} others", counts[MAX_VALUES:]))
    return lines


def _algorithms(summary: Summary) -> RecordsTable:
    """Return the table of measures that have values, except completion times: a column per algorithm."""
    algorithms = list(summary.algorithms.values())
    rows = [
        RecordsRow("Connections", [f"{algorithm.count.connections:,}" for algorithm in algorithms]),
        RecordsRow("Transfers", [f"{algorithm.count.transfers:,}" for algorithm in algorithms]),
        RecordsRow(
            "Bytes acknowledged",
            [
                NOTHING if algorithm.acked_bytes is None else amount(algorithm.acked_bytes, "B")
                for algorithm in algorithms
            ],
        ),
    ]
    for name, measure in MEASURES.items():
        spreads = [algorithm.spreads.get(name) for algorithm in algorithms]
        if name != "completion_time" and any(spreads):
            unit, texts = cells(spreads, measure.unit, is_mean=name in MEANS)
            rows.append(RecordsRow(f"{measure.title} ({unit})", texts))
    if any(algorithm.cpu_judged for algorithm in algorithms):
        shares = [algorithm.cpu_limited_share for algorithm in algorithms]
        rows.append(
            RecordsRow("Connections short of CPU", ["-" if share is None else per_cent(share) for share in shares])
        )
    return RecordsTable([algorithm.cc for algorithm in algorithms], rows)


def _times(summary: Summary) -> RecordsTable | None:
    algorithms = [algorithm for algorithm in summary.algorithms.values() if algorithm.by_size]
    if not algorithms:
        return None
    rows = []
    for number, size in enumerate(SIZES):
        spreads = [algorithm.by_size.get(number) for algorithm in algorithms]
        if any(spreads):
            unit, texts = cells(spreads, "s")
            counts = " / ".join(f"{spread.n:,}" if spread else "0" for spread in spreads)
            rows.append(RecordsRow(f"{size.title} ({unit})", [counts, *texts]))
    return RecordsTable(["transfers", *(algorithm.cc for algorithm in algorithms)], rows)


def _min_share(missing: Missing) -> float:
    return min(share for share in (missing.connections, missing.transfers) if share is not None)
