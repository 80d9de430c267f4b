"""Time series of single experiments, downsampled for drawing.

Rates are means over equal bins, so that their integral is kept; other quantities are thinned so that peaks remain.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Literal, TypeVar

import numpy as np
import polars as pl

from thalweg.analysis.tables.derived import PACKET_BYTES, base_rtts, rates
from thalweg.analysis.tables.directions import has_up
from thalweg.analysis.tables.flows import BITS, EXPERIMENT, MICROSECONDS
from thalweg.analysis.tables.thin import Numbers, peaks
from thalweg.results import Run

CONNECTION = ["copy", "connection"]
UNLIMITED_BPS = 2**64 - 1
"""Pacing rate of a connection before its first one is set, as in Linux."""

BATCH = 32

T = TypeVar("T")


@dataclass(frozen=True)
class SampledQuantity:
    """A quantity that changes during an experiment."""

    title: str
    unit: Literal["bit/s", "s", "B", "BDP", "packets", ""]
    about: str
    column: str = ""
    """Column in the samples; empty: the quantity is computed, or in another table."""
    size: float = 1.0
    """Size of one `unit` in the column's unit."""
    key: str = ""
    """Key of the quantity in the table of the algorithm's state."""


QUANTITIES: dict[str, SampledQuantity] = {
    "rate": SampledQuantity("Rate of acknowledged bytes", "bit/s", "of a flow, all its connections together"),
    "cwnd": SampledQuantity("Congestion window", "packets", "of a connection", column="cwnd_packets"),
    "inflight_bdp": SampledQuantity(
        "In flight over BDP",
        "BDP",
        "of a connection; the BDP is that of the bottleneck's rate at that time and the flow's empty path",
        column="inflight_bdp",
    ),
    "pacing_rate": SampledQuantity("Pacing rate", "bit/s", "of a connection that paces", column="pacing_rate_bps"),
    "rtt": SampledQuantity("Smoothed round-trip time", "s", "of a connection", column="srtt_us", size=MICROSECONDS),
    "bandwidth": SampledQuantity(
        "Bandwidth estimate", "bit/s", "of a connection whose algorithm has one (BBR)", key="bw_bps"
    ),
    "gain": SampledQuantity("Pacing gain", "", "of a connection whose algorithm has one (BBR)", key="pacing_gain"),
    "queue": SampledQuantity("Queue of the bottleneck", "B", "the packet being sent is not counted"),
    "queue_up": SampledQuantity(
        "Queue of path.reverse", "B", "where flows or UDP go up; the packet being sent is not counted"
    ),
}


@dataclass(frozen=True)
class Line:
    """A curve: the points that remain after thinning."""

    name: str
    """Subject of the curve: a flow, `queue` or `queue_up`."""
    t_s: list[float]
    value: list[float]


@dataclass(frozen=True)
class Series:
    """Time series of one experiment."""

    experiment: int
    repetition: int
    lines: dict[str, list[Line]]
    """Curves of each requested quantity, in its unit; empty if it was not recorded."""
    drops_s: list[float]
    """Times of the samples at which the count of dropped packets had grown, thinned."""
    connections: int
    connections_drawn: int


def series(
    run: Run,
    chosen: Iterable[tuple[int, int]],
    limit: int = 300,
    max_connections: int = 60,
    quantities: Collection[str] = tuple(QUANTITIES),
) -> list[Series]:
    """Read the time series of the experiments `chosen` (experiment and repetition), in their order.

    A curve has about `limit` points, and so have all connections of one flow together. At most `max_connections`
    connections of a flow are drawn, evenly spaced. Incomplete experiments have no curves.
    """
    pairs = list(chosen)
    ids = {
        (experiment["experiment"], experiment["repetition"]): experiment["id"] for experiment in run.meta["experiments"]
    }
    complete = set(run.finished_ids)
    curves = []
    for start in range(0, len(pairs), BATCH):
        batch = pairs[start : start + BATCH]
        reader = _Reader(run, [id for pair in batch if (id := ids.get(pair)) in complete], quantities)
        curves += [_experiment_series(*pair, reader, limit, max_connections, quantities) for pair in batch]
    return curves


class _Reader:
    def __init__(self, run: Run, ids: list[str], quantities: Collection[str]) -> None:
        samples = run.scan("samples", ids).select(
            *EXPERIMENT, "flow", *CONNECTION, "t_us", "cwnd_packets", "inflight_packets", "pacing_rate_bps", "srtt_us",
            "acked_bytes",
        )  # fmt: skip
        self._samples = run.collect(samples.sort("t_us"))
        has_rate = pl.col("pacing_rate_bps") < UNLIMITED_BPS
        self._samples = self._samples.with_columns(pl.when(has_rate).then(pl.col("pacing_rate_bps")))
        if "inflight_bdp" in quantities:
            self._samples = _with_inflight_bdp(self._samples, run)
        keys = [QUANTITIES[name].key for name in quantities if QUANTITIES[name].key]
        state = run.scan("state", ids).filter(pl.col("key").is_in(keys))
        self._state = run.collect(state.sort("t_us"))
        queue = run.scan("queue", ids).select(*EXPERIMENT, "link", "t_us", "backlog_bytes", "dropped_packets")
        queues = run.collect(queue.sort("t_us"))
        forward, reverse = (queues.filter(pl.col("link") == link) for link in ("forward", "reverse"))
        self.samples, self.state, self.queue = (_Parts(frame) for frame in (self._samples, self._state, forward))
        self.queue_up = _Parts(reverse if has_up(run) else reverse.clear())


class _Parts:
    def __init__(self, frame: pl.DataFrame) -> None:
        self._parts = frame.partition_by(EXPERIMENT, as_dict=True, maintain_order=True)
        self._none = frame.clear()

    def of(self, experiment: int, repetition: int) -> pl.DataFrame:
        return self._parts.get((experiment, repetition), self._none)


def _with_inflight_bdp(samples: pl.DataFrame, run: Run) -> pl.DataFrame:
    """Add the data in flight of each connection in BDPs; null if the BDP is unknown."""
    bdp = pl.col("rate_bps") * pl.col("base_rtt_s") / BITS
    ratio = pl.when(bdp > 0).then(pl.col("inflight_packets") * PACKET_BYTES / bdp)
    return (
        samples.join(base_rtts(run), on=["experiment", "flow"], how="left", maintain_order="left")
        .join_asof(rates(run), on="t_us", by=["experiment", "direction"], check_sortedness=False)
        .with_columns(ratio.alias("inflight_bdp"))
        .drop("rate_bps", "base_rtt_s", "max_rtt_s", "direction")
    )


def _experiment_series(
    experiment: int, repetition: int, reader: _Reader, limit: int, max_connections: int, quantities: Collection[str]
) -> Series:
    samples, state, queue, queue_up = (
        parts.of(experiment, repetition) for parts in (reader.samples, reader.state, reader.queue, reader.queue_up)
    )
    lines: dict[str, list[Line]] = {name: [] for name in QUANTITIES if name in quantities}
    total = line_count = 0
    for (flow,), rows in samples.partition_by("flow", as_dict=True, maintain_order=True).items():
        if "rate" in lines:
            lines["rate"].append(rate(str(flow), rows, bins=limit))
        connection_rows = rows.sort(*CONNECTION, "t_us").partition_by(CONNECTION, maintain_order=True)
        connections = spread(connection_rows, max_connections)
        total += len(connection_rows)
        line_count += len(connections)
        for name in lines:
            if column := QUANTITIES[name].column:
                lines[name] += _of_connections(str(flow), connections, column, QUANTITIES[name].size, limit)
    for name in lines:
        if not QUANTITIES[name].key:
            continue
        rows = state.filter(pl.col("key") == QUANTITIES[name].key)
        for (flow,), of_flow in rows.partition_by("flow", as_dict=True, maintain_order=True).items():
            connection_rows = of_flow.sort(*CONNECTION, "t_us").partition_by(CONNECTION, maintain_order=True)
            stepped = _at_samples(spread(connection_rows, max_connections), samples.filter(pl.col("flow") == flow))
            lines[name] += _of_connections(str(flow), stepped, "value", 1, limit)
    if "queue" in lines and queue.height:
        lines["queue"] = [_thinned("queue", queue, "backlog_bytes", 1, limit)]
    if "queue_up" in lines and queue_up.height:
        lines["queue_up"] = [_thinned("queue_up", queue_up, "backlog_bytes", 1, limit)]
    kept = {name: [line for line in curves if line.t_s] for name, curves in lines.items()}
    return Series(experiment, repetition, kept, _drops(queue, limit), total, line_count)


def _at_samples(connections: list[pl.DataFrame], samples: pl.DataFrame) -> list[pl.DataFrame]:
    """Repeat the values of one key at each sample of their connection, because the state table has one row per change.

    Older engines wrote one row per sample; these rows are unchanged.

    Args:
        connections: The rows of each connection, by time: `copy`, `connection`, `t_us`, `value`.
        samples: Samples of the flow, by time.

    Returns:
        A frame for each of `connections`: `t_us` and `value`.
    """
    chosen = pl.concat([rows.select(CONNECTION).head(1) for rows in connections])
    instants = samples.join(chosen, on=CONNECTION, how="semi").partition_by(CONNECTION, as_dict=True)
    stepped = []
    for rows in connections:
        changed = rows["t_us"].to_numpy()
        sampled = instants.get(rows.select(CONNECTION).row(0))
        t = changed if sampled is None else np.union1d(changed, sampled["t_us"].to_numpy())
        t = t[t >= changed[0]]
        latest = np.searchsorted(changed, t, side="right") - 1
        stepped.append(pl.DataFrame({"t_us": t, "value": rows["value"].to_numpy()[latest]}))
    return stepped


def _of_connections(flow: str, connections: list[pl.DataFrame], column: str, size: float, limit: int) -> list[Line]:
    """Return one line per connection, with points about in proportion to its length."""
    points = sum(connection.height for connection in connections)
    return [
        _thinned(flow, connection, column, size, max(4, limit * connection.height // max(1, points)))
        for connection in connections
    ]


def spread(items: list[T], limit: int) -> list[T]:
    """Choose at most `limit` evenly spaced items, including the first and the last.

    >>> spread([0, 1, 2, 3, 4, 5, 6], 3)
    [0, 3, 6]
    """
    if len(items) <= limit:
        return items
    return [items[round(index)] for index in np.linspace(0, len(items) - 1, limit)]


def rate(flow: str, samples: pl.DataFrame, bins: int) -> Line:
    """Return the rate (bit/s) at which the flow's bytes were acknowledged, summed over its connections, in equal bins.

    Bytes before a connection's first sample are excluded, since their start is unknown.
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


def _thinned(name: str, rows: pl.DataFrame, column: str, size: float, limit: int) -> Line:
    present = rows[column].is_not_null().to_numpy()
    t: Numbers = rows["t_us"].cast(pl.Float64).to_numpy()[present]
    y: Numbers = rows[column].cast(pl.Float64).to_numpy()[present]
    keep = peaks(t, y, limit)
    return Line(name, (t[keep] / MICROSECONDS).tolist(), (y[keep] / size).tolist())


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

    `values` is the result of `thalweg.analysis.repetitions`.
    """
    ranked = (
        values.filter(pl.col("flow") == flow, pl.col("measure") == measure)
        .drop_nulls("value")
        .sort("experiment", "value", "repetition")
        .group_by("experiment", maintain_order=True)
        .agg(pl.col("repetition").get((pl.len() - 1) // 2))
    )
    return {int(experiment): int(repetition) for experiment, repetition in ranked.iter_rows()}
