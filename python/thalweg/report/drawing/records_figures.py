"""The figures of a page about records: distributions per algorithm, and how many there were over time."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

import polars as pl

from thalweg.records import MEASURES, SIZES, Algorithm, Spread, Summary
from thalweg.report.drawing.figure import AxisUnit, Figure, Scaled

MAX_LINES = 8
"""Algorithms that have a line of their own: those with the most rows."""
FEWEST = 5
"""Values below which a distribution says nothing."""
HOUR_US = 3_600_000_000

RTTS = {
    "rtt_min": "smallest of each connection",
    "rtt_p95": "95th percentile of each connection",
    "rtt_smoothed": "smoothed, at the end of each connection",
    "transfer_rtt_smoothed": "smoothed, at the end of each transfer",
}
"""Measures that share a figure, and their panels."""

SHARE_OF_ZEROS = " The curve begins at the share of those that are 0."
UNITS: Mapping[str, AxisUnit] = {"bit/s": "bit/s", "s": "s", "ratio": "ratio", "": ""}


def figures(summary: Summary) -> list[Figure]:
    """Draw what a summary has."""
    shown = list(summary.algorithms.values())[:MAX_LINES]
    distributions = (
        _distribution(shown, "goodput", "Goodput of transfers", "goodput"),
        _sizes(shown),
        _distribution(shown, "serving_time", "Time that the server took for a transfer", "time"),
        _distribution(shown, "busy_goodput", "Goodput of connections while sending", "goodput"),
        _panels(shown, "rtt", "Round-trip times", RTTS),
        _distribution(shown, "retransmit_ratio", "Retransmissions of connections", "retransmitted", SHARE_OF_ZEROS),
        _distribution(shown, "buffer", "Queue that connections saw", "queue (BDP)", SHARE_OF_ZEROS),
    )
    return [figure for figure in (*distributions, *_over_time(summary, shown)) if figure is not None]


def _distribution(shown: Sequence[Algorithm], measure: str, title: str, axis: str, remark: str = "") -> Figure | None:
    lines = [("", each.cc, spread) for each in shown if (spread := each.spreads.get(measure))]
    rows = _rows(lines)
    if rows.is_empty():
        return None
    return _cdf(measure, title, rows, axis, measure, MEASURES[measure].about + remark)


def _sizes(shown: Sequence[Algorithm]) -> Figure | None:
    """Compare completion times within classes of sizes alone: across them they say what was asked for, and no more."""
    lines = [
        (size.title, each.cc, spread)
        for number, size in enumerate(SIZES)
        for each in shown
        if (spread := each.by_size.get(number))
    ]
    rows = _rows(lines)
    if rows.is_empty():
        return None
    about = MEASURES["completion_time"].about + " A panel per class of sizes."
    return _cdf("completion_time", "Completion time of transfers, by size", rows, "time", "completion_time", about)


def _panels(shown: Sequence[Algorithm], name: str, title: str, panels: Mapping[str, str]) -> Figure | None:
    lines = [
        (panel, each.cc, spread)
        for measure, panel in panels.items()
        for each in shown
        if (spread := each.spreads.get(measure))
    ]
    rows = _rows(lines)
    if rows.is_empty():
        return None
    about = " ".join(MEASURES[each].about for each in ("rtt_min", "rtt_p95"))
    return _cdf(name, title, rows, "RTT", "rtt_min", about)


def _cdf(name: str, title: str, rows: pl.DataFrame, axis: str, measure: str, about: str) -> Figure:
    unit = UNITS[MEASURES[measure].unit]
    return Figure(name.replace("_", "-"), title, "cdf", rows, x=Scaled(axis, unit, is_log=True), about=about)


def _rows(lines: Sequence[tuple[str, str, Spread]]) -> pl.DataFrame:
    """Return the points of curves. Curves of few values, and curves with zeros only, have no points."""
    points = [
        (panel, cc, value, share)
        for panel, cc, spread in lines
        if spread.n >= FEWEST and spread.high > 0
        for value, share in spread.curve()
    ]
    return pl.DataFrame(points, schema=["panel", "series", "value", "share"], orient="row")


def _over_time(summary: Summary, shown: Sequence[Algorithm]) -> Iterator[Figure]:
    """Count what ended in each step of time; a step in which nothing did is 0."""
    table = summary.over_time.filter(pl.col("cc").is_in([each.cc for each in shown]))
    starts = table["start_us"]
    if starts.n_unique() < 2:
        return
    step_us = summary.bin_s * 1_000_000
    first, last = int(starts.min()), int(starts.max())  # type: ignore[arg-type]
    whole = pl.DataFrame({"start_us": pl.int_range(first, last + 1, step_us, dtype=pl.UInt64, eager=True)})
    every = whole.join(pl.DataFrame({"cc": [each.cc for each in shown]}), how="cross")
    table = every.join(table, on=["cc", "start_us"], how="left").sort("cc", "start_us")
    since = f"{datetime.fromtimestamp(first / 1e6, UTC):%Y-%m-%d %H:%M} UTC"
    none = pl.lit(None, pl.Float64)
    for what in ("connections", "transfers"):
        if table[what].sum():
            yield Figure(
                f"{what}-over-time",
                f"{what.capitalize()} over time",
                "lines",
                table.select(
                    ((pl.col("start_us") - first) / HOUR_US).alias("x"),
                    pl.col(what).fill_null(0).cast(pl.Float64).alias("y"),
                    none.alias("low"),
                    none.alias("high"),
                    pl.col("cc").alias("series"),
                ),
                x=Scaled(f"hours since {since}"),
                y=Scaled(f"ended per {_length(summary.bin_s)}"),
                about=f"How many ended in each {_length(summary.bin_s)}, whenever they began.",
            )


def _length(seconds: int) -> str:
    """Write the length of a step.

    >>> _length(3600), _length(900), _length(1)
    ('hour', '15 minutes', 'second')
    """
    for name, size in (("week", 7 * 86_400), ("day", 86_400), ("hour", 3600), ("minute", 60), ("second", 1)):
        if seconds % size == 0:
            return name if seconds == size else f"{seconds // size} {name}s"
    return f"{seconds} seconds"
