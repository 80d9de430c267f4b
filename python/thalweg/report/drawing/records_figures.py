"""Figures of a page about records."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

import polars as pl

from thalweg.records import MEASURES, SIZES, Algorithm, Spread, Summary
from thalweg.report.drawing.figure import AxisUnit, Figure, Scaled

MAX_LINES = 8
FEWEST = 5
HOUR_US = 3_600_000_000

RTTS = {
    "rtt_min": "smallest of each connection",
    "rtt_p95": "95th percentile of each connection",
    "rtt_smoothed": "smoothed, at the end of each connection",
    "transfer_rtt_smoothed": "smoothed, at the end of each transfer",
}

LIMITS = {
    "app_limited": "application",
    "rwnd_limited": "receive window of the peer",
    "sndbuf_limited": "send buffer",
}

UNITS: Mapping[str, AxisUnit] = {"bit/s": "bit/s", "s": "s", "ratio": "ratio", "": ""}
MAY_BE_ZERO = ("ratio", "")
"""Units of measures that are zero for many connections; the logarithmic axis cannot show zeros."""


def figures(summary: Summary) -> list[Figure]:
    """Return the figures of a summary."""
    algorithms = list(summary.algorithms.values())[:MAX_LINES]
    distributions = (
        _distribution(algorithms, "goodput", "Goodput of transfers", "goodput"),
        _sizes(algorithms),
        _distribution(algorithms, "serving_time", "Time that the server took for a transfer", "time"),
        _distribution(algorithms, "busy_goodput", "Goodput of connections while sending", "goodput"),
        _panels(algorithms, "rtt", "Round-trip times", "RTT", RTTS, ("rtt_min", "rtt_p95")),
        _distribution(algorithms, "retransmit_ratio", "Retransmissions of connections", "retransmitted"),
        _distribution(algorithms, "buffer", "Largest queue of connections", "queue (BDP)"),
        _panels(algorithms, "limits", "What limited connections, besides the path", "share", LIMITS, tuple(LIMITS)),
    )
    return [figure for figure in (*distributions, *_over_time(summary, algorithms)) if figure is not None]


def _distribution(algorithms: Sequence[Algorithm], measure: str, title: str, axis: str) -> Figure | None:
    lines = [("", algorithm.cc, spread) for algorithm in algorithms if (spread := algorithm.spreads.get(measure))]
    rows = _rows(lines)
    if rows.is_empty():
        return None
    return _cdf(measure, title, rows, axis, measure, MEASURES[measure].about)


def _sizes(algorithms: Sequence[Algorithm]) -> Figure | None:
    """Return the completion times within size classes; across classes they would only reflect the sizes."""
    lines = [
        (size.title, algorithm.cc, spread)
        for number, size in enumerate(SIZES)
        for algorithm in algorithms
        if (spread := algorithm.by_size.get(number))
    ]
    rows = _rows(lines)
    if rows.is_empty():
        return None
    caption = MEASURES["completion_time"].about + " One panel per size class."
    return _cdf("completion_time", "Completion time of transfers, by size", rows, "time", "completion_time", caption)


def _panels(
    algorithms: Sequence[Algorithm],
    name: str,
    title: str,
    axis: str,
    panels: Mapping[str, str],
    explained: Sequence[str],
) -> Figure | None:
    """Return a figure with one panel per measure; the caption describes the `explained` ones."""
    lines = [
        (panel, algorithm.cc, spread)
        for measure, panel in panels.items()
        for algorithm in algorithms
        if (spread := algorithm.spreads.get(measure))
    ]
    rows = _rows(lines)
    if rows.is_empty():
        return None
    caption = " ".join(MEASURES[measure].about for measure in explained)
    return _cdf(name, title, rows, axis, explained[0], caption)


def _cdf(name: str, title: str, rows: pl.DataFrame, axis: str, measure: str, caption: str) -> Figure:
    unit = UNITS[MEASURES[measure].unit]
    if unit in MAY_BE_ZERO:
        caption += " The curve begins at the share of zeros."
    return Figure(name.replace("_", "-"), title, "cdf", rows, x=Scaled(axis, unit, is_log=True), about=caption)


def _rows(lines: Sequence[tuple[str, str, Spread]]) -> pl.DataFrame:
    """Return the points of curves. Curves with few values, or with zeros only, have no points."""
    points = [
        (panel, cc, value, share)
        for panel, cc, spread in lines
        if spread.n >= FEWEST and spread.high > 0
        for value, share in spread.curve()
    ]
    return pl.DataFrame(points, schema=["panel", "series", "value", "share"], orient="row")


def _over_time(summary: Summary, algorithms: Sequence[Algorithm]) -> Iterator[Figure]:
    """Yield figures of the connections and of the transfers that ended per time step; a step without any is 0."""
    table = summary.over_time.filter(pl.col("cc").is_in([algorithm.cc for algorithm in algorithms]))
    starts = table["start_us"]
    if starts.n_unique() < 2:
        return
    step_us = summary.bin_s * 1_000_000
    first, last = int(starts.min()), int(starts.max())  # type: ignore[arg-type]
    steps = pl.DataFrame({"start_us": pl.int_range(first, last + 1, step_us, dtype=pl.UInt64, eager=True)})
    every = steps.join(pl.DataFrame({"cc": [algorithm.cc for algorithm in algorithms]}), how="cross")
    table = every.join(table, on=["cc", "start_us"], how="left").sort("cc", "start_us")
    since = f"{datetime.fromtimestamp(first / 1e6, UTC):%Y-%m-%d %H:%M} UTC"
    empty = pl.lit(None, pl.Float64)
    for kind in ("connections", "transfers"):
        if table[kind].sum():
            yield Figure(
                f"{kind}-over-time",
                f"{kind.capitalize()} over time",
                "lines",
                table.select(
                    ((pl.col("start_us") - first) / HOUR_US).alias("x"),
                    pl.col(kind).fill_null(0).cast(pl.Float64).alias("y"),
                    empty.alias("low"),
                    empty.alias("high"),
                    pl.col("cc").alias("series"),
                ),
                x=Scaled(f"hours since {since}"),
                y=Scaled(f"ended per {_length(summary.bin_s)}"),
                about=f"Number that ended in each {_length(summary.bin_s)}, regardless of their start.",
            )


def _length(seconds: int) -> str:
    """Return the length of a step as text.

    >>> _length(3600), _length(900), _length(1)
    ('hour', '15 minutes', 'second')
    """
    for name, size in (("week", 7 * 86_400), ("day", 86_400), ("hour", 3600), ("minute", 60), ("second", 1)):
        if seconds % size == 0:
            return name if seconds == size else f"{seconds // size} {name}s"
    return f"{seconds} seconds"
