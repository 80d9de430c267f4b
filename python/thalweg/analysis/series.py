"""Time series of single experiments, light enough to draw.

Rates are means over equal bins, so their area is the bytes that were acknowledged; everything else is thinned with its
peaks kept.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import polars as pl

from thalweg.analysis.flows import BITS, EXPERIMENT, MICROSECONDS
from thalweg.analysis.thin import Numbers, peaks
from thalweg.results import Run

CONNECTION = ["copy", "connection"]

T = TypeVar("T")


@dataclass(frozen=True)
class Line:
    """A curve: the points that stay after thinning."""

    name: str
    """What it belongs to: a flow, or `queue`."""
    t_s: list[float]
    value: list[float]


@dataclass(frozen=True)
class Series:
    """What happened in one experiment."""

    experiment: int
    repetition: int
    rate_bps: list[Line]
    """A line per flow: its connections together."""
    cwnd_packets: list[Line]
    """A line per connection."""
    rtt_s: list[Line]
    """The smoothed round-trip time, a line per connection."""
    backlog_bytes: list[Line]
    """The bottleneck's queue; no line without samples of it."""
    drops_s: list[float]
    """Moments at which packets found no room in the queue, thinned to one per bin."""
    connections: int
    """Connections that were sampled."""
    connections_drawn: int
    """Connections that have a line."""


def series(run: Run, chosen: Iterable[tuple[int, int]], limit: int = 300, most_connections: int = 60) -> list[Series]:
    """Read the time series of the experiments `chosen` (experiment and repetition), in their order.

    A curve keeps about `limit` points, and so do the connections of one flow together; of more than `most_connections`
    connections of a flow some have lines, spread evenly over all.
    """
    pairs = list(chosen)
    wanted = pl.LazyFrame(pairs, schema=dict.fromkeys(EXPERIMENT, pl.UInt64), orient="row")
    samples = (
        run.scan("samples")
        .join(wanted, on=EXPERIMENT, how="semi", maintain_order="left")
        .select(*EXPERIMENT, "flow", *CONNECTION, "t_us", "cwnd_packets", "srtt_us", "acked_bytes")
    )
    queue = (
        run.scan("queue")
        .filter(pl.col("link") == "forward")
        .join(wanted, on=EXPERIMENT, how="semi", maintain_order="left")
        .select(*EXPERIMENT, "t_us", "backlog_bytes", "dropped_packets")
    )
    by_sample = samples.collect().partition_by(EXPERIMENT, as_dict=True)
    by_queue = queue.collect().partition_by(EXPERIMENT, as_dict=True)
    empty_samples, empty_queue = samples.limit(0).collect(), queue.limit(0).collect()
    return [
        _one(*pair, by_sample.get(pair, empty_samples), by_queue.get(pair, empty_queue), limit, most_connections)
        for pair in pairs
    ]


def _one(
    experiment: int, repetition: int, samples: pl.DataFrame, queue: pl.DataFrame, limit: int, most_connections: int
) -> Series:
    flows = samples.partition_by("flow", as_dict=True, maintain_order=True)
    rates, windows, rtts = [], [], []
    total = drawn = 0
    for (flow,), rows in flows.items():
        rates.append(rate(str(flow), rows, bins=limit))
        connections = rows.sort(*CONNECTION, "t_us").partition_by(CONNECTION, maintain_order=True)
        total += len(connections)
        connections = spread(connections, most_connections)
        drawn += len(connections)
        points = sum(connection.height for connection in connections)
        for connection in connections:
            share = max(4, limit * connection.height // max(1, points))
            windows.append(_thinned(str(flow), connection, "cwnd_packets", 1, share))
            rtts.append(_thinned(str(flow), connection, "srtt_us", MICROSECONDS, share))
    backlog = [_thinned("queue", queue.sort("t_us"), "backlog_bytes", 1, limit)] if queue.height else []
    return Series(
        experiment,
        repetition,
        rates,
        windows,
        [line for line in rtts if line.t_s],
        backlog,
        _drops(queue.sort("t_us"), limit),
        total,
        drawn,
    )


def spread(items: list[T], most: int) -> list[T]:
    """Choose at most `most` items, the first and the last among them, as far apart from one another as can be.

    >>> spread([0, 1, 2, 3, 4, 5, 6], 3)
    [0, 3, 6]
    """
    if len(items) <= most:
        return items
    return [items[round(place)] for place in np.linspace(0, len(items) - 1, most)]


def rate(flow: str, samples: pl.DataFrame, bins: int) -> Line:
    """Give the rate (bit/s) at which the flow's bytes were acknowledged, all its connections together, in equal bins.

    Bytes between two samples of a connection are spread evenly over the time between them; those before a connection's
    first sample are left out, since when they began is not known.
    """
    t = samples["t_us"].cast(pl.Float64).to_numpy()
    if len(t) < 2 or t.max() == t.min():
        return Line(flow, [], [])
    steps = int(np.clip(samples["t_us"].n_unique() - 1, 1, bins))
    edges = np.linspace(t.min(), t.max(), steps + 1)
    acked = np.zeros(steps)
    for connection in samples.sort(*CONNECTION, "t_us").partition_by(CONNECTION, maintain_order=True):
        at = connection["t_us"].cast(pl.Float64).to_numpy()
        acked += np.diff(np.interp(edges, at, connection["acked_bytes"].cast(pl.Float64).to_numpy()))
    width_s = (edges[1] - edges[0]) / MICROSECONDS
    middle = (edges[:-1] + edges[1:]) / 2 / MICROSECONDS
    return Line(flow, middle.tolist(), (acked * BITS / width_s).tolist())


def _thinned(name: str, rows: pl.DataFrame, column: str, scale: float, limit: int) -> Line:
    known = rows.drop_nulls(column)
    t: Numbers = known["t_us"].cast(pl.Float64).to_numpy()
    y: Numbers = known[column].cast(pl.Float64).to_numpy()
    keep = peaks(t, y, limit)
    return Line(name, (t[keep] / MICROSECONDS).tolist(), (y[keep] / scale).tolist())


def _drops(queue: pl.DataFrame, limit: int) -> list[float]:
    if queue.height < 2:
        return []
    t = queue["t_us"].cast(pl.Float64).to_numpy()[1:] / MICROSECONDS
    dropped = np.diff(queue["dropped_packets"].cast(pl.Float64).to_numpy()) > 0
    times = t[dropped]
    bins = np.floor((times - t[0]) / max(t[-1] - t[0], 1e-9) * limit)
    return [float(time) for time in times[np.unique(bins, return_index=True)[1]]]


def typical_repetitions(values: pl.DataFrame, flow: str, measure: str = "goodput") -> dict[int, int]:
    """Choose a repetition per experiment: the one whose value of `measure` for `flow` is the (lower) median.

    `values` is what `thalweg.analysis.repetitions` gives; equal values go to the earlier repetition.
    """
    ranked = (
        values.filter(pl.col("flow") == flow, pl.col("measure") == measure)
        .drop_nulls("value")
        .sort("experiment", "value", "repetition")
        .group_by("experiment", maintain_order=True)
        .agg(pl.col("repetition").get((pl.len() - 1) // 2))
    )
    return {int(experiment): int(repetition) for experiment, repetition in ranked.iter_rows()}
