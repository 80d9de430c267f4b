"""The conversions of `convert` and `derived`, vectorised over many rows.

Rows for which the result may differ are marked as uncertain.
"""

from collections.abc import Mapping
from functools import reduce
from operator import and_

import polars as pl

from thalweg.records.imports.addresses import Addresses
from thalweg.records.imports.derived import BITS, EARLIEST_US, MICROSECONDS
from thalweg.records.imports.vectorized import CERTAIN, LINE, WHY
from thalweg.records.schema import COLUMNS, LATEST_US, SCHEMA, TRANSFER

LONGEST_RTT_US = 3_600_000_000
"""Maximum valid RTT: an hour; larger values are assumed to have a wrong unit."""
READ = (
    "kind", "source", "direction", "start_us", "end_us", "duration_us", "acked_bytes", "rtt_min_us", "rtt_max_us",
    "busy_us", "fct_us", "busy_goodput_bps", "goodput_bps", "buffer_bdp",
)  # fmt: skip
"""Columns that `completed` reads or derives; missing ones are added as null."""
MAX_EXACT = 2**53
"""Below this, every integer is exactly representable as a float."""


def completed(frame: pl.DataFrame, constants: Mapping[str, str], addresses: Addresses) -> pl.DataFrame:
    """Complete the columns of regular rows.

    Args:
        frame: Columns of records in any order, `LINE`, `CERTAIN`, and optionally the IP versions of addresses and the
            reasons for assumed values.
        constants: Values of columns that a row leaves empty.
        addresses: Conversion of addresses.

    Returns:
        `LINE`, `CERTAIN`, the reasons, and the completed columns of records that may have values; values of uncertain
        rows are undefined.
    """
    if not frame.width:
        frame = pl.DataFrame(schema={LINE: pl.UInt64, CERTAIN: pl.Boolean})
    needed = dict.fromkeys([*READ, *constants])
    frame = frame.with_columns(pl.lit(None, SCHEMA[name]).alias(name) for name in needed if name not in frame.columns)
    versions = [f"{side}_address_version" for side in ("remote", "local")]
    frame = frame.with_columns(
        *(_text(name).fill_null(pl.lit(value)).alias(name) for name, value in constants.items()),
        ip_version=pl.coalesce(*(name for name in versions if name in frame.columns), pl.lit(None, pl.Int64)),
    )
    if addresses.form != "whole" and "remote_port" in frame.columns:
        is_ours = (pl.col("direction") == "out").fill_null(False)
        frame = frame.with_columns(remote_port=pl.when(is_ours).then("remote_port"))
    frame = _with_times(frame)
    frame = _with_rates(frame)
    present = [name for name in SCHEMA if name in frame.columns]
    checks = [check for name in present if (check := _is_in_range(name)) is not None]
    frame = frame.with_columns((pl.col(CERTAIN) & reduce(and_, checks)).fill_null(False).alias(CERTAIN))
    why_columns = [name for name in frame.columns if name.removesuffix(WHY) in COLUMNS and name.endswith(WHY)]
    return frame.select(
        LINE, CERTAIN, *why_columns, *(pl.col(name).cast(SCHEMA[name], strict=False) for name in present)
    )


def _text(name: str) -> pl.Expr:
    return pl.col(name).cast(pl.String)


def _int(name: str) -> pl.Expr:
    return pl.col(name).cast(pl.Int64, strict=False)


def _with_times(frame: pl.DataFrame) -> pl.DataFrame:
    """Fill in start, end or duration; a row without an end, or with an invalid time, becomes uncertain."""
    start, end, duration = _int("start_us"), _int("end_us"), _int("duration_us")
    frame = frame.with_columns(end_us=pl.coalesce(end, start + duration))
    is_certain = (
        end.is_between(EARLIEST_US, LATEST_US)
        & (start.is_between(EARLIEST_US, LATEST_US) & (start <= end)).fill_null(start.is_null())
        & (start.is_not_null() | (duration <= end - EARLIEST_US).fill_null(True))
    )
    return frame.with_columns(
        pl.coalesce(duration, end - start).alias("duration_us"),
        pl.coalesce(start, end - duration).alias("start_us"),
        (pl.col(CERTAIN) & is_certain.fill_null(False)).alias(CERTAIN),
    )


def _with_rates(frame: pl.DataFrame) -> pl.DataFrame:
    acked, low, high = _int("acked_bytes"), _int("rtt_min_us"), _int("rtt_max_us")
    bits = BITS * MICROSECONDS * acked
    has_span = _int("busy_us").is_not_null() | _int("fct_us").is_not_null()
    is_exact = (acked < MAX_EXACT // (BITS * MICROSECONDS)).fill_null(True) | ~has_span

    def goodput(name: str, span: pl.Expr, condition: pl.Expr) -> pl.Expr:
        rate = bits.cast(pl.Float64) / span.cast(pl.Float64)
        return pl.coalesce(pl.col(name).cast(pl.Float64), pl.when((span > 0) & condition).then(rate)).alias(name)

    return frame.with_columns(
        goodput("busy_goodput_bps", _int("busy_us"), pl.lit(True)),
        goodput("goodput_bps", _int("fct_us"), pl.col("kind") == TRANSFER),
        pl.coalesce(
            pl.col("buffer_bdp").cast(pl.Float64),
            pl.when((low > 0) & (high >= low)).then((high - low).cast(pl.Float64) / low.cast(pl.Float64)),
        ).alias("buffer_bdp"),
        (pl.col(CERTAIN) & is_exact).alias(CERTAIN),
    )


def _is_in_range(name: str) -> pl.Expr | None:
    """Return which rows have a value in a column that is valid and needs no note, or is null if allowed; None: all."""
    kind = COLUMNS[name].kind
    if name == "connection" or kind == "bool":
        return None
    if kind == "string":
        return None if COLUMNS[name].is_optional else pl.col(name).is_not_null()
    largest = LONGEST_RTT_US if name.startswith("rtt_") else MAX_EXACT if kind == "f64" else 2**63 - 1
    return (
        pl.col(name)
        .cast(pl.Float64 if kind == "f64" else pl.Int64, strict=False)
        .is_between(0, largest)
        .fill_null(True)
    )
