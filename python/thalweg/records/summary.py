"""Summary of records: counts by column, and distributions of measures per algorithm."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from thalweg.records.find import LeftOutFile, unless_gone
from thalweg.records.measures import MEASURES
from thalweg.records.missing import Missing, empties, missing
from thalweg.records.read import Records, read
from thalweg.records.schema import CLOSE, INTERIM, LATEST_US, TRANSFER, UNKNOWN_TEXT, is_connection, weight
from thalweg.records.sizes import SIZES, size_class
from thalweg.records.spread import Spread, classed
from thalweg.records.where import Where

COUNTED = ("kind", "source", "machine", "cc", "close", "direction", "ip_version", "joined", "assignment")

BINS_S = (1, 10, 60, 300, 900, 3600, 6 * 3600, 86_400, 7 * 86_400, 28 * 86_400)
MAX_BINS = 200


@dataclass(frozen=True)
class Count:
    """Number of occurrences of a column's value."""

    value: str
    connections: int
    """Number of rows of connections: closed, or open at the last sample."""
    transfers: int
    """Number of rows of transfers."""
    connections_stand_for: int
    """Sum of their weights."""
    transfers_stand_for: int
    """Sum of their weights."""


@dataclass(frozen=True)
class Algorithm:
    """Connections and transfers of one congestion control."""

    cc: str
    count: Count
    acked_bytes: int | None
    """Weighted sum of the acknowledged bytes of its connections; of its transfers if there are no connections. None:
    unknown in every row.
    """
    cpu_judged: int
    """Weighted number of connections for which it is known whether the CPU limited them."""
    cpu_limited: int
    """Weighted number of connections that the CPU limited."""
    spreads: dict[str, Spread] = field(repr=False)
    """Distributions by measure; only measures with a value in any row."""
    by_size: dict[int, Spread] = field(repr=False)
    """Completion times of transfers by the number of their size class in `SIZES`."""

    @property
    def cpu_limited_share(self) -> float | None:
        """Fraction of connections that the CPU limited; None: unknown."""
        return self.cpu_limited / self.cpu_judged if self.cpu_judged else None


@dataclass(frozen=True)
class Summary:
    """Summary of records."""

    files: int
    left_out: Sequence[LeftOutFile]
    unknown_kinds: dict[str, int]
    """Number of rows by unknown kind; they are excluded."""
    superseded: int
    """Number of interim rows that a later row of the same connection replaces; they are excluded."""
    rows: int
    open: int
    """Number of connections that were open at the last sample."""
    first_us: int | None
    """Earliest start or end, as UNIX time; None: unknown."""
    last_us: int | None
    """Latest end, as UNIX time; None: unknown."""
    largest_weight: int
    """Maximum weight: the N of --sample 1/N; 1: everything was recorded."""
    counts: dict[str, list[Count]]
    """Counts by the columns of `COUNTED`, the most frequent value first."""
    algorithms: dict[str, Algorithm]
    """Algorithms by name, the one with most rows first."""
    missing: list[Missing]
    over_time: pl.DataFrame
    """Columns cc, start_us (of the time step), connections, transfers: the weighted number that ended in each step."""
    bin_s: int
    where: Where


def summarise(records: Records) -> Summary:
    """Summarise records.

    Raises:
        ThalwegError: If a file is damaged or was removed.
    """
    rows = records.rows.with_columns(pl.col("cc").fill_null(UNKNOWN_TEXT))
    begin = pl.min_horizontal(pl.col("start_us").min(), pl.col("end_us").min()).alias("first")
    spans = rows.select(begin, pl.col("end_us").max().alias("last"), weight().max().alias("weight"))
    span, counted, empty = records.collect(spans, _counted(rows), empties(records.rows))
    # A file may contain any value.
    first, last = (None if us is None else min(us, LATEST_US) for us in span.row(0)[:2])
    max_weight = span.row(0)[2]
    bin_s = _bin_s(first, last)
    rows_of = {name: rows.filter(_of(measure.of)) for name, measure in MEASURES.items()}
    spreads = [classed(rows_of[name], measure.value, pl.col("cc")) for name, measure in MEASURES.items()]
    sized = classed(
        rows_of["completion_time"], MEASURES["completion_time"].value, pl.col("cc"), size_class().alias("size")
    )
    *tables, by_size, over_time = records.collect(*spreads, sized, _over_time(rows, bin_s))
    measured = dict(zip(MEASURES, tables, strict=True))
    algorithms = [_algorithm(count, counted, measured, by_size) for count in _counts(counted, "cc")]
    return Summary(
        files=len(records.files),
        left_out=records.left_out,
        unknown_kinds=records.unknown_kinds,
        superseded=records.superseded.height,
        rows=int(counted["rows"].sum()),
        open=int(counted.filter(pl.col("kind") == INTERIM)["rows"].sum()),
        first_us=first,
        last_us=last,
        largest_weight=int(max_weight or 1),
        counts={column: _counts(counted, column) for column in COUNTED},
        algorithms={algorithm.cc: algorithm for algorithm in algorithms},
        missing=missing(empty),
        over_time=over_time,
        bin_s=bin_s,
        where=records.where,
    )


def summary_of(paths: Sequence[Path], where: Where = ()) -> Summary:
    """Read the records that meet conditions and summarise them; retry if a file is removed meanwhile.

    Raises:
        ThalwegError: If the records cannot be read, or a column is unknown.
    """
    return unless_gone(lambda: summarise(read(paths, where)))


def _of(kind: str) -> pl.Expr:
    return is_connection() if kind == "connections" else pl.col("kind") == TRANSFER


def _where(condition: pl.Expr) -> pl.Expr:
    """Return a row's weight if a condition holds, otherwise zero."""
    return pl.when(condition).then(weight()).otherwise(0)


def _counted(rows: pl.LazyFrame) -> pl.LazyFrame:
    """Count rows grouped by all columns of `COUNTED`."""
    sums = {
        "weight": weight(),
        # This sum over untrusted values is a float, so that it cannot overflow.
        "acked_bytes": pl.col("acked_bytes").fill_null(0).cast(pl.Float64) * weight(),
        "with_acked_bytes": pl.col("acked_bytes").is_not_null().cast(pl.Int64),
        "cpu_judged": _where(pl.col("cpu_limited").is_not_null()),
        "cpu_limited": _where(pl.col("cpu_limited")),
    }
    return rows.group_by(COUNTED).agg(
        pl.len().alias("rows"), *(total.sum().alias(name) for name, total in sums.items())
    )


def _counts(counted: pl.DataFrame, column: str) -> list[Count]:
    if column == "close":
        # Interim rows and transfers have no close reason.
        counted = counted.filter(pl.col("kind") == CLOSE)
    is_transfer = pl.col("kind") == TRANSFER
    table = (
        counted.with_columns(
            pl.col(column).cast(pl.String).fill_null(UNKNOWN_TEXT).alias("value"), is_transfer.alias("of")
        )
        .group_by("value", "of")
        .agg(pl.col("rows", "weight").sum())
    )
    by_value: dict[str, dict[bool, tuple[int, int]]] = {}
    for value, is_transfer_row, rows, stands_for in table.iter_rows():
        by_value.setdefault(value, {})[is_transfer_row] = rows, stands_for
    counts = []
    for value, both in by_value.items():
        connections, transfers = both.get(False, (0, 0)), both.get(True, (0, 0))
        counts.append(Count(value, connections[0], transfers[0], connections[1], transfers[1]))
    return sorted(counts, key=lambda count: (-count.connections - count.transfers, count.value))


def _algorithm(
    count: Count, counted: pl.DataFrame, measured: dict[str, pl.DataFrame], by_size: pl.DataFrame
) -> Algorithm:
    own_rows = counted.filter(pl.col("cc") == count.value)
    connections = own_rows.filter(is_connection())
    summed = connections if connections.height else own_rows
    spreads = {name: Spread(values) for name, table in measured.items()
               if (values := table.filter(pl.col("cc") == count.value)).height}  # fmt: skip
    sizes = {number: Spread(values) for number in range(len(SIZES))
             if (values := by_size.filter(cc=count.value, size=number)).height}  # fmt: skip
    return Algorithm(
        cc=count.value,
        count=count,
        acked_bytes=int(summed["acked_bytes"].sum()) if summed["with_acked_bytes"].sum() else None,
        cpu_judged=int(connections["cpu_judged"].sum()),
        cpu_limited=int(connections["cpu_limited"].sum()),
        spreads=spreads,
        by_size=sizes,
    )


def _bin_s(first: int | None, last: int | None) -> int:
    """Choose the length of a time step.

    >>> _bin_s(0, 3600 * 1_000_000), _bin_s(0, 7 * 86_400 * 1_000_000)
    (60, 3600)

    Above 28 days it is a multiple of 28 days, for example if the clock of a machine was not set:

    >>> _bin_s(0, 56 * 365 * 86_400 * 1_000_000) // 86_400
    112
    """
    length_s = ((last or 0) - (first or 0)) / 1e6
    longest = BINS_S[-1] * (int(length_s / BINS_S[-1] / MAX_BINS) + 1)
    return next((step for step in BINS_S if length_s / step < MAX_BINS), longest)


def _over_time(rows: pl.LazyFrame, bin_s: int) -> pl.LazyFrame:
    step_us = bin_s * 1_000_000
    start = (pl.col("end_us") // step_us * step_us).alias("start_us")
    return (
        rows.filter(pl.col("end_us") <= LATEST_US)
        .group_by("cc", start)
        .agg(
            _where(is_connection()).sum().alias("connections"),
            _where(pl.col("kind") == TRANSFER).sum().alias("transfers"),
        )
        .sort("cc", "start_us")
    )
