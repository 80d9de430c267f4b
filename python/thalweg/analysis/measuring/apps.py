"""Measures of applications, from their transfers."""

from types import MappingProxyType

import polars as pl

from thalweg.analysis.tables.flows import EXPERIMENT, MICROSECONDS

FLOW = [*EXPERIMENT, "flow"]
COPY = [*FLOW, "copy"]

SCHEMA = MappingProxyType(
    dict.fromkeys(EXPERIMENT, pl.UInt64())
    | {"flow": pl.String()}
    | dict.fromkeys(
        (
            "completion_time_p99",
            "completion_rate",
            "video_bitrate",
            "startup_delay",
            "stalls",
            "stall_time",
            "stall_ratio",
            "page_time_half",
            "page_time",
        ),
        pl.Float64(),
    )
)


def app_measures(flows: pl.DataFrame, apps: pl.DataFrame) -> pl.DataFrame:
    """Return one row per experiment, repetition and application, with a column per measure.

    Args:
        flows: The transfers.
        apps: Each sweep point's applications, as `tables.apps.apps` returns them.
    """
    transfers = flows.join(apps, on=["experiment", "flow"], how="inner", maintain_order="left")
    if transfers.is_empty():
        return pl.DataFrame(schema=SCHEMA)
    measures = _messages(transfers)
    for table in (_playback(transfers), _pages(transfers)):
        measures = measures.join(table, on=FLOW, how="left", maintain_order="left")
    return measures.select(*SCHEMA)


def _messages(transfers: pl.DataFrame) -> pl.DataFrame:
    completed_s = pl.col("fct_us").filter("completed") / MICROSECONDS
    active_s = (pl.col("end_us").max() - pl.col("start_us").min()) / MICROSECONDS
    is_first_segment = (pl.col("app") == "video") & (pl.col("item") == 0) & pl.col("completed")
    return transfers.group_by(FLOW, maintain_order=True).agg(
        completed_s.quantile(0.99, "linear").alias("completion_time_p99"),
        pl.when(active_s > 0).then(pl.col("completed").sum() / active_s).alias("completion_rate"),
        pl.col("bitrate_bps").filter("completed").mean().alias("video_bitrate"),
        (pl.col("fct_us").filter(is_first_segment).mean() / MICROSECONDS).alias("startup_delay"),
    )


def _playback(transfers: pl.DataFrame) -> pl.DataFrame:
    """Return the number, duration and share of stalls; null if playback of a copy did not begin."""
    played = transfers.filter(pl.col("stall_us").is_not_null())
    shown_us = pl.col("end_us").max() - pl.col("end_us").min()
    of_copies = played.group_by(COPY, maintain_order=True).agg(
        (pl.col("stall_us") > 0).sum().alias("stalls"),
        (pl.col("stall_us").sum() / MICROSECONDS).alias("stall_time"),
        (shown_us / MICROSECONDS).alias("shown_s"),
        pl.col("completed").any().alias("has_begun"),
    )
    shown_s, have_begun = pl.col("shown_s").sum(), pl.col("has_begun").all()
    return of_copies.group_by(FLOW, maintain_order=True).agg(
        pl.when(have_begun).then(pl.col("stalls").sum().cast(pl.Float64)),
        pl.when(have_begun).then(pl.col("stall_time").sum()),
        pl.when(have_begun & (shown_s > 0)).then(pl.col("stall_time").sum() / shown_s).alias("stall_ratio"),
    )


def _pages(transfers: pl.DataFrame) -> pl.DataFrame:
    """Return the mean times until half and all of the objects of a page had arrived."""
    ends = pl.col("end_us").filter("completed").sort()
    half = (pl.col("objects").first() + 1) // 2
    start = pl.col("start_us").min()
    is_half = pl.col("completed").sum() >= half
    is_whole = pl.col("completed").sum() == pl.col("objects").first()
    pages = (
        transfers.filter(pl.col("app") == "web")
        .group_by([*COPY, "item"], maintain_order=True)
        .agg(
            pl.when(is_half).then(ends.get(half - 1, null_on_oob=True) - start).alias("half_us"),
            pl.when(is_whole).then(ends.max() - start).alias("whole_us"),
        )
    )
    return pages.group_by(FLOW, maintain_order=True).agg(
        (pl.col("half_us").mean() / MICROSECONDS).alias("page_time_half"),
        (pl.col("whole_us").mean() / MICROSECONDS).alias("page_time"),
    )
