"""Counters of connections at any moment, interpolated linearly between samples and the starts and ends of transfers.

Transfers shorter than the sampling interval are therefore included.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from thalweg.analysis.tables.directions import with_direction
from thalweg.analysis.tables.flows import EXPERIMENT
from thalweg.analysis.tables.thin import Numbers

CONNECTION = ["copy", "connection"]
COUNTERS = ["acked_bytes", "segments", "retransmits"]

SAMPLED = [*COUNTERS, "inflight_packets"]


@dataclass(frozen=True)
class Connection:
    """The counters of a connection."""

    t_us: Numbers
    acked_bytes: Numbers
    segments: Numbers
    retransmits: Numbers
    delivered: Numbers
    """Delivered segments: sent minus retransmitted minus in flight, because each lost segment is retransmitted. Unlike
    acked_bytes, the count does not wait for a hole to be filled.
    """


@dataclass(frozen=True)
class Copy:
    """One of the parallel copies of a flow."""

    flow: str
    cc: str
    start_us: float
    """Start of its first transfer."""
    end_us: float
    """End of its last transfer."""
    connections: Sequence[Connection]
    direction: str = "down"

    def at(self, counter: str, moments_us: Numbers) -> Numbers:
        """Return the sum of a counter over its connections at each time."""
        total = np.zeros(len(moments_us))
        for connection in self.connections:
            total += np.interp(moments_us, connection.t_us, getattr(connection, counter))
        return total

    def active_us(self, from_us: float, to_us: float) -> float:
        """Return the time, in us, for which the copy was active in a span, including pauses between transfers."""
        return max(0.0, min(to_us, self.end_us) - max(from_us, self.start_us))


Copies = Mapping[tuple[int, int], Sequence[Copy]]
"""The copies of all flows, by experiment and repetition."""


def total(copies: Iterable[Copy], counter: str, moments_us: Numbers) -> Numbers:
    """Return the sum of a counter over several copies at each time."""
    sums = np.zeros(len(moments_us))
    for copy in copies:
        sums += copy.at(counter, moments_us)
    return sums


def copies(flows: pl.DataFrame, samples: pl.DataFrame) -> Copies:
    """Return the copies of every flow that started, by experiment and repetition.

    `samples` needs only the key columns, `t_us` and `SAMPLED`.
    """
    keys = [*EXPERIMENT, "flow", *CONNECTION]
    knots = _knots(flows, samples, keys)
    by_experiment: dict[tuple[int, int], list[Copy]] = {}
    by_copy: dict[tuple[int, int, str, int], list[Connection]] = {}
    for (experiment, repetition, flow, copy, _), connection in _connections(knots, keys):
        by_copy.setdefault((experiment, repetition, flow, copy), []).append(connection)
    spans = (
        with_direction(flows)
        .group_by(*EXPERIMENT, "flow", "copy", maintain_order=True)
        .agg(pl.col("cc").first(), pl.col("start_us").min(), pl.col("end_us").max(), pl.col("direction").first())
    )
    for experiment, repetition, flow, copy, cc, start_us, end_us, direction in spans.iter_rows():
        connections = by_copy[experiment, repetition, flow, copy]
        entry = Copy(flow, cc, float(start_us), float(end_us), connections, direction)
        by_experiment.setdefault((experiment, repetition), []).append(entry)
    return by_experiment


def by_flow(of_experiment: Iterable[Copy]) -> Mapping[str, list[Copy]]:
    """Group the copies by flow."""
    flows: dict[str, list[Copy]] = {}
    for copy in of_experiment:
        flows.setdefault(copy.flow, []).append(copy)
    return flows


def _knots(flows: pl.DataFrame, samples: pl.DataFrame, keys: list[str]) -> pl.DataFrame:
    """Return one row per connection and time at which its counters are known; counters never decrease."""
    ordered = flows.sort(*keys, "transfer")
    after = [pl.col(name).cum_sum().over(keys).alias(name) for name in COUNTERS]
    before = [(pl.col(name).cum_sum().over(keys) - pl.col(name)).alias(name) for name in COUNTERS]
    arrived = pl.col("segments").cast(pl.Int64) - pl.col("retransmits").cast(pl.Int64)
    in_flight = pl.col("inflight_packets").cast(pl.Int64)
    parts = [
        ordered.select(*keys, pl.col("start_us").alias("t_us"), *before).with_columns(delivered=arrived),
        samples.select(*keys, "t_us", *COUNTERS, delivered=arrived - in_flight).join(
            ordered.select(keys).unique(), on=keys, how="semi"
        ),
        # Data in flight at the end of an aborted transfer did not arrive.
        ordered.select(*keys, pl.col("end_us").alias("t_us"), *after, "completed")
        .with_columns(delivered=pl.when("completed").then(arrived))
        .drop("completed"),
    ]
    rising = [pl.col(name).fill_null(0).cum_max().over(keys).cast(pl.Float64) for name in (*COUNTERS, "delivered")]
    return pl.concat(parts).sort(*keys, "t_us", *COUNTERS).with_columns(pl.col("t_us").cast(pl.Float64), *rising)


def _connections(knots: pl.DataFrame, keys: list[str]) -> Iterator[tuple[tuple[int, int, str, int, int], Connection]]:
    groups = knots.group_by(keys, maintain_order=True).len()
    columns = [knots[name].to_numpy() for name in ("t_us", *COUNTERS, "delivered")]
    first = 0
    for *key, rows in groups.iter_rows():
        piece = slice(first, first + rows)
        experiment, repetition, flow, copy, number = key
        yield (experiment, repetition, flow, copy, number), Connection(*(column[piece] for column in columns))
        first += rows
