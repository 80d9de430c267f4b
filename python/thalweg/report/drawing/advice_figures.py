"""The figures of a page of advice."""

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime

import polars as pl

from thalweg.advise import Answer, Arm, Gain
from thalweg.advise.answers.answer import gain
from thalweg.advise.counting.segments import LOSS_TITLES, RTT_TITLES
from thalweg.records.schema import UNKNOWN_TEXT
from thalweg.report.drawing.figure import AxisUnit, Figure, Scaled

HOUR_US = 3_600_000_000

METRICS: dict[str, tuple[str, str, AxisUnit, float]] = {
    "completion_time": ("Completion time of small transfers", "completion time", "s", 1e-6),
    "throughput": ("Throughput of large transfers", "throughput", "bit/s", 1.0),
}
"""Title, axis title, unit, and size of the answer's numbers in that unit, by metric."""

GAIN = Scaled("gain", "ratio")
POSITIVE = "Positive: the treatment is better, with less time or more throughput."


def figures(answer: Answer) -> list[Figure]:
    """Return the figures of an answer."""
    return [
        *_maps(answer),
        *_distributions(answer),
        *_over_time(answer),
        *_sizes(answer),
        *_quantiles(answer),
        *_ages(answer),
        *_since(answer),
    ]


def _maps(answer: Answer) -> Iterator[Figure]:
    for metric, (title, *_) in METRICS.items():
        rows = [
            (*part.names, gain_.value, gain_.low, gain_.high)
            for part in answer.map
            if (compared := part.comparisons.get(metric)) and (gain_ := compared.gain)
            if UNKNOWN_TEXT not in part.names and not (compared.networks and compared.networks.are_few)
        ]
        if rows:
            table = pl.DataFrame(
                rows,
                schema={
                    "x": pl.Enum(RTT_TITLES),
                    "y": pl.Enum(LOSS_TITLES),
                    "value": float,
                    "low": float,
                    "high": float,
                },
                orient="row",
            )
            yield Figure(
                f"map-{metric.replace('_', '-')}",
                f"{title}: gain by RTT and retransmissions of the network",
                "heatmap",
                table,
                x=Scaled("RTT of the network"),
                y=Scaled("retransmitted by the control"),
                value=GAIN,
                middle=0.0,
                about=f"{POSITIVE} Classes with too few networks are empty.",
            )


def _distributions(answer: Answer) -> Iterator[Figure]:
    names = {"treatment": answer.question.treatment, "control": answer.question.control}
    for metric, (title, axis, unit, size) in METRICS.items():
        comparison = answer.overall.comparisons.get(metric)
        if not comparison or not comparison.difference:
            continue
        rows = [
            (name, value * size, share)
            for arm, name in names.items()
            for value, share in getattr(comparison.difference, arm).curve
        ]
        table = pl.DataFrame(rows, schema=["series", "value", "share"], orient="row")
        yield Figure(
            f"cdf-{metric.replace('_', '-')}",
            title,
            "cdf",
            table,
            x=Scaled(axis, unit, is_log=True),
            about="Share of the samples that are below a value, over all parts.",
        )


def _over_time(answer: Answer) -> Iterator[Figure]:
    names = {"treatment": answer.question.treatment, "control": answer.question.control}
    at_us = answer.question.design.at_us
    for metric, (title, axis, unit, size) in METRICS.items():
        table = answer.over_time.filter(pl.col("metric") == metric)
        if table["start_us"].n_unique() < 2:
            continue
        first = int(table["start_us"].min())  # type: ignore[arg-type]
        empty = pl.lit(None, pl.Float64)
        rows = table.select(
            ((pl.col("start_us") - first) / HOUR_US).alias("x"),
            (pl.col("median") * size).alias("y"),
            empty.alias("low"),
            empty.alias("high"),
            pl.col("arm").replace_strict(names).alias("series"),
        ).sort("series", "x")
        mark = None
        if at_us is not None:
            x = (at_us - first) / HOUR_US
            mark = pl.DataFrame({"name": ["activation"] * 2, "x": [x, x], "y": [rows["y"].min(), rows["y"].max()]})
        yield Figure(
            f"time-{metric.replace('_', '-')}",
            f"{title} over time",
            "lines",
            rows,
            x=Scaled(f"hours since {_day(first)} UTC"),
            y=Scaled(f"median {axis}", unit),
            curves=mark,
            about="Medians of the samples that began in each time step.",
        )


def _sizes(answer: Answer) -> Iterator[Figure]:
    yield from _by_size(answer, "sizes", "Completion time by size", "median completion time", lambda arm: arm.median)
    yield from _by_size(
        answer,
        "jitter",
        "Jitter of the completion time by size",
        "95th minus 5th percentile",
        lambda arm: arm.jitter,
        "Difference between the 95th and the 5th percentile; lower is steadier.",
    )


def _by_size(
    answer: Answer, name: str, title: str, axis: str, value_us: Callable[[Arm], float], caption: str = ""
) -> Iterator[Figure]:
    names = {"treatment": answer.question.treatment, "control": answer.question.control}
    rows = [
        (size.title, value_us(getattr(size.difference, arm)) * 1e-6, None, None, series)
        for size in answer.sizes
        for arm, series in names.items()
    ]
    columns = {"x": pl.String, "y": pl.Float64, "low": pl.Float64, "high": pl.Float64, "series": pl.String}
    if rows:
        table = pl.DataFrame(rows, schema=columns, orient="row")
        yield Figure(name, title, "bars", table, x=Scaled("size"), y=Scaled(axis, "s"), about=caption)


def _quantiles(answer: Answer) -> Iterator[Figure]:
    rows = [
        (f"{share:.0%}", quantile_gain.value, quantile_gain.low, quantile_gain.high, METRICS[metric][1])
        for metric, comparison in answer.overall.comparisons.items()
        if comparison.difference
        for share, effect in sorted(comparison.difference.quantiles.items())
        for quantile_gain in [gain(metric, effect)]
    ]
    if rows:
        yield _gains("quantiles", "Gain at each quantile", rows, "quantile", "Gain of fast and slow transfers.")


def _ages(answer: Answer) -> Iterator[Figure]:
    rows = [
        (age.title, age_gain.value, age_gain.low, age_gain.high, "throughput")
        for age in answer.ages
        if age.effect
        for age_gain in [Gain(age.effect.ratio - 1, age.effect.low - 1, age.effect.high - 1)]
    ]
    if rows:
        caption = "Bytes acknowledged in each age span, of connections that were open for the entire span."
        yield _gains("ages", "Gain by age of the connection", rows, "age", caption)


def _since(answer: Answer) -> Iterator[Figure]:
    rows = [
        (period.title, period_gain.value, period_gain.low, period_gain.high, METRICS[period.metric][1])
        for period in answer.since
        if period.difference.median
        for period_gain in [gain(period.metric, period.difference.median)]
    ]
    if rows:
        caption = "Days since the start of the treatment, or of the records."
        yield _gains("since", "Gain by time since the activation", rows, "since the activation", caption)


def _gains(
    name: str, title: str, rows: Sequence[tuple[str, float, float, float, str]], axis: str, caption: str
) -> Figure:
    table = pl.DataFrame(list(rows), schema=["x", "y", "low", "high", "series"], orient="row")
    return Figure(name, title, "points", table, x=Scaled(axis), y=GAIN, about=f"{caption} {POSITIVE}")


def _day(us: int) -> str:
    return f"{datetime.fromtimestamp(us / 1e6, UTC):%Y-%m-%d %H:%M}"
