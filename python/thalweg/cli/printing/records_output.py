"""Output of a summary of records: text or JSON."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from thalweg.cli.printing import output

if TYPE_CHECKING:
    from thalweg.records import Count, Missing, Spread, Summary

SHOWN = {
    "goodput": "goodput of transfers",
    "serving_time": "server's time",
    "busy_goodput": "goodput while sending",
    "rtt_min": "RTT min",
    "rtt_p95": "RTT p95",
    "rtt_smoothed": "RTT smoothed",
    "transfer_rtt_smoothed": "RTT smoothed",
    "retransmit_ratio": "retransmitted",
    "buffer": "largest queue",
}
"""Measures in the table of algorithms, with their headings."""

INSTEAD = {"serving_time": "goodput", "rtt_smoothed": "rtt_p95", "transfer_rtt_smoothed": "rtt_min"}
"""Measures that are shown only if a more informative one is missing in every row."""

QUANTILES = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)

SENTENCES = {
    "machine": "machines",
    "source": "sources",
    "direction": "opened",
    "close": "closed",
    "ip_version": "IP version",
    "assignment": "assignment",
}
MAX_VALUES = 6
MAX_NEVER = 12
MOSTLY = 0.05

METHOD = "median [10 %, 90 %] of the rows that have the value; retransmitted: the mean"


def show(summary: "Summary") -> None:
    """Print a summary."""
    output.data("\n".join(sentences(summary)))
    output.data("")
    output.data(_algorithms(summary))
    if times := _times(summary):
        output.data("")
        output.data(times)
    if empty := _missing(summary):
        output.data("")
        output.data(empty)
    output.talk(METHOD)


def as_json(summary: "Summary", places: Sequence[Path], html: Path | None) -> dict[str, object]:
    """Return the complete summary."""
    from thalweg.records import SIZES

    return {
        "places": [str(place) for place in places],
        **({"page": str(html)} if html else {}),
        "files": summary.files,
        "left_out": [{"file": str(file.file), "why": file.why} for file in summary.left_out],
        "where": dict(summary.where),
        "rows": summary.rows,
        "left_out_rows": summary.unknown_kinds,
        "superseded": summary.superseded,
        "open": summary.open,
        "first_us": summary.first_us,
        "last_us": summary.last_us,
        "largest_sampled_one_in": summary.largest_weight,
        "counts": {column: [asdict(count) for count in counts] for column, counts in summary.counts.items()},
        "algorithms": [
            {
                "cc": algorithm.cc,
                "connections": algorithm.count.connections,
                "transfers": algorithm.count.transfers,
                "acked_bytes": algorithm.acked_bytes,
                "cpu_limited_share": algorithm.cpu_limited_share,
                "measures": {name: _spread(spread) for name, spread in algorithm.spreads.items()},
                "completion_time_by_size": {
                    SIZES[number].title: _spread(spread) for number, spread in algorithm.by_size.items()
                },
            }
            for algorithm in summary.algorithms.values()
        ],
        "missing": [asdict(column) for column in summary.missing],
    }


def sentences(summary: "Summary") -> Iterator[str]:
    """Summarise the records in a few lines."""
    kinds = {count.value: count.connections + count.transfers for count in summary.counts["kind"]}
    parts = [_number(kinds["close"], "connection", " closed")] if "close" in kinds else []
    parts += [_number(summary.open, "connection", " still open")] if summary.open else []
    parts += [_number(kinds["transfer"], "transfer")] if "transfer" in kinds else []
    yield f"{', '.join(parts)}, in {_number(summary.files, 'file')}"
    from thalweg.records.where import text
    from thalweg.report.pages.records_table import about_untouched, period

    yield f"{period(summary.first_us, summary.last_us)} UTC"
    if summary.where:
        yield f"only rows with {text(summary.where)}"
    if summary.largest_weight > 1:
        yield f"sampled: one in {summary.largest_weight} connections; counts below are of recorded connections"
    for column, title in SENTENCES.items():
        counts = summary.counts[column]
        if len(counts) > 1:
            yield f"{title}: {_shares(counts)}"
    if untouched := about_untouched(summary):
        yield untouched


def _number(count: int, noun: str, behind: str = "") -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}{behind}"


def _shares(counts: "Sequence[Count]") -> str:
    rows = [count.connections + count.transfers for count in counts]
    total = sum(rows)
    parts = [f"{count.value} {_share(n / total)}" for count, n in zip(counts[:MAX_VALUES], rows, strict=False)]
    if len(counts) > MAX_VALUES:
        parts.append(f"{len(counts) - MAX_VALUES} others {_share(sum(rows[MAX_VALUES:]) / total)}")
    return ", ".join(parts)


def _algorithms(summary: "Summary") -> str:
    from thalweg.records import MEASURES
    from thalweg.report.pages.records_table import MEANS, cells

    algorithms = list(summary.algorithms.values())
    columns: list[tuple[str, list[str]]] = [
        ("cc", [algorithm.cc for algorithm in algorithms]),
        ("connections", [f"{algorithm.count.connections:,}" for algorithm in algorithms]),
        ("transfers", [f"{algorithm.count.transfers:,}" for algorithm in algorithms]),
    ]
    measured = {name for algorithm in algorithms for name in algorithm.spreads}
    for name, title in SHOWN.items():
        spreads = [algorithm.spreads.get(name) for algorithm in algorithms]
        if name in measured and INSTEAD.get(name) not in measured:
            unit, texts = cells(spreads, MEASURES[name].unit, is_mean=name in MEANS)
            columns.append((f"{title} ({unit})", texts))
    if any(algorithm.cpu_judged for algorithm in algorithms):
        columns.append(("short of CPU (%)", [_per_cent(algorithm.cpu_limited_share) for algorithm in algorithms]))
    rows = list(zip(*(texts for _, texts in columns), strict=True))
    return output.table([title for title, _ in columns], rows, numbers=range(1, len(columns)))


def _times(summary: "Summary") -> str:
    from thalweg.records import SIZES
    from thalweg.report.pages.records_table import cells

    algorithms = [algorithm for algorithm in summary.algorithms.values() if algorithm.by_size]
    if not algorithms:
        return ""
    rows = []
    for number, size in enumerate(SIZES):
        spreads = [algorithm.by_size.get(number) for algorithm in algorithms]
        if any(spreads):
            unit, texts = cells(spreads, "s")
            counts = "/".join(f"{spread.n:,}" if spread else "0" for spread in spreads)
            rows.append([size.title, counts, unit, *texts])
    headings = ["completion time", "transfers", "unit", *(algorithm.cc for algorithm in algorithms)]
    return output.table(headings, rows, numbers=[1, *range(3, len(headings))])


def _per_cent(share: float | None) -> str:
    return "-" if share is None else f"{share * 100:.3g}"


def _missing(summary: "Summary") -> str:
    absent = [column.column for column in summary.missing if _min_share(column) == 1]
    names = ", ".join(absent) if len(absent) <= MAX_NEVER else f"{len(absent)} columns (--json and --out list them)"
    lines = [f"empty in every row: {names}"] if absent else []
    sparse = [
        column for column in summary.missing if column.means and _max_share(column) >= MOSTLY and _min_share(column) < 1
    ]
    if sparse:
        rows = [
            [column.column, _share(column.connections), _share(column.transfers), column.means] for column in sparse
        ]
        lines += ["", output.table(["empty", "connections", "transfers", "such a row"], rows, numbers=[1, 2])]
    return "\n".join(lines).strip("\n")


def _min_share(missing: "Missing") -> float:
    return min(share for share in (missing.connections, missing.transfers) if share is not None)


def _max_share(missing: "Missing") -> float:
    return max(share for share in (missing.connections, missing.transfers) if share is not None)


def _share(share: float | None) -> str:
    return "" if share is None else f"{share * 100:.3g} %"


def _spread(spread: "Spread") -> dict[str, object]:
    """Return a measure of one algorithm; values are in bit/s, seconds, ratios and BDP."""
    return {
        "rows": spread.n,
        "stands_for": spread.stands_for,
        "mean": spread.mean,
        "min": spread.low,
        "max": spread.high,
        "quantiles": {f"{share:g}": spread.quantile(share) for share in QUANTILES},
        "cdf": [list(point) for point in spread.curve()],
    }
