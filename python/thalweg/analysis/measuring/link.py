"""Measures of the bottleneck, from the table of the queue, interpolated linearly between samples."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from thalweg.analysis.tables.directions import Direction
from thalweg.analysis.tables.flows import EXPERIMENT, MICROSECONDS
from thalweg.analysis.tables.thin import Numbers
from thalweg.analysis.tables.window import Window

QUEUE_COLUMNS = [
    *EXPERIMENT, "link", "t_us", "sent_bytes", "capacity_bytes", "backlog_bytes", "dropped_packets", "marked_packets",
]  # fmt: skip

PATH_MEASURES = ["utilisation", "queueing_delay", "queueing_delay_p50", "queueing_delay_p95", "drops", "marks"]

MIN_SAMPLES = 10
"""Minimum number of samples for `utilisation_during`, and of intervals with departures for `queueing_delay_s`."""

END_US = 1e6
"""Length of the final span of samples; its mean rate is assumed after the last sample."""


@dataclass(frozen=True)
class Bottleneck:
    """Counters and backlog of one link in one experiment, over time."""

    t_us: Numbers
    sent_bytes: Numbers
    capacity_bytes: Numbers | None
    """Cumulative capacity; None: unlimited."""
    backlog_bytes: Numbers
    dropped_packets: Numbers
    marked_packets: Numbers

    def utilisation(self, start_us: float, end_us: float) -> float | None:
        """Return bytes sent over bytes possible between two times; times outside the samples are clamped to them."""
        if self.capacity_bytes is None:
            return None
        moments = np.array([start_us, end_us], dtype=float)
        sent = float(np.diff(np.interp(moments, self.t_us, self.sent_bytes))[0])
        possible = float(np.diff(np.interp(moments, self.t_us, self.capacity_bytes))[0])
        return sent / possible if possible > 0 else None

    def utilisation_during(self, start_us: float, end_us: float) -> float | None:
        """Return the utilisation between two times; None: they span too few samples."""
        samples = np.count_nonzero((self.t_us >= start_us) & (self.t_us <= end_us))
        return self.utilisation(start_us, end_us) if samples >= MIN_SAMPLES else None

    def within(self, window: Window) -> "Bottleneck | None":
        """Return the part within a window; None if the overlap is empty."""
        start, end = max(window.from_us, self.t_us[0]), min(window.to_us, self.t_us[-1])
        if end <= start:
            return None
        t = np.concatenate(([start], self.t_us[(self.t_us > start) & (self.t_us < end)], [end]))

        def at(values: Numbers) -> Numbers:
            return np.asarray(np.interp(t, self.t_us, values), dtype=np.float64)

        capacity = None if self.capacity_bytes is None else at(self.capacity_bytes)
        return Bottleneck(
            t,
            at(self.sent_bytes),
            capacity,
            at(self.backlog_bytes),
            at(self.dropped_packets),
            at(self.marked_packets),
        )

    def waits_s(self, window: Window) -> Numbers:
        """Return the waiting time of a packet that had arrived at each sample within the window; empty if the link is
        unlimited.

        The wait ends when the link has had capacity for the backlog; after the last sample the mean rate of the last
        second is assumed. Infinite waits are left out.
        """
        inside = (self.t_us >= window.from_us) & (self.t_us <= window.to_us)
        if self.capacity_bytes is None:
            return np.empty(0)
        carried = self.capacity_bytes
        departures = (carried + self.backlog_bytes)[inside]
        after = np.searchsorted(carried, departures, side="left").clip(1, len(carried) - 1)
        step = carried[after] - carried[after - 1]
        reached = departures <= carried[-1]
        tail = self.t_us >= self.t_us[-1] - END_US
        last = (carried[-1] - carried[tail][0]) / max(self.t_us[-1] - self.t_us[tail][0], 1.0)  # bytes per us
        with np.errstate(divide="ignore", invalid="ignore"):
            part = np.where(step > 0, (departures - carried[after - 1]) / step, 0.0)
            moment = self.t_us[after - 1] + part * (self.t_us[after] - self.t_us[after - 1])
            later = self.t_us[-1] + (departures - carried[-1]) / last
        waits = np.where(self.backlog_bytes[inside] > 0, np.where(reached, moment, later) - self.t_us[inside], 0.0)
        return waits[np.isfinite(waits)] / MICROSECONDS

    def queueing_delay_s(self) -> float | None:
        """Mean waiting time of a byte (Little 1961); None: bytes left the queue in too few intervals."""
        busy = np.count_nonzero(np.diff(self.sent_bytes) > 0)
        if busy < MIN_SAMPLES:
            return None
        sent = float(self.sent_bytes[-1] - self.sent_bytes[0])
        return float(np.trapezoid(self.backlog_bytes, self.t_us)) / sent / MICROSECONDS


def bottlenecks(queue: pl.DataFrame, link: str = "forward") -> dict[tuple[int, int], Bottleneck]:
    """Return a link of every experiment with at least two samples of it, by experiment and repetition."""
    links = {}
    of_link = queue.filter(pl.col("link") == link).sort(*EXPERIMENT, "t_us")
    for (experiment, repetition), rows in of_link.group_by(*EXPERIMENT, maintain_order=True):
        if rows.height < 2:
            continue
        columns = {
            name: rows[name].cast(pl.Float64).to_numpy()
            for name in ("t_us", "sent_bytes", "backlog_bytes", "dropped_packets", "marked_packets")
        }
        is_limited = rows["capacity_bytes"].null_count() == 0
        capacity = rows["capacity_bytes"].cast(pl.Float64).to_numpy() if is_limited else None
        links[int(experiment), int(repetition)] = Bottleneck(capacity_bytes=capacity, **columns)
    return links


def path_measures(links: Mapping[tuple[int, int], Bottleneck], window: Window) -> pl.DataFrame:
    """Return one row per experiment and repetition whose samples overlap the window, with a column per measure."""
    rows = []
    for (experiment, repetition), link in links.items():
        part = link.within(window)
        if part is None:
            continue
        waits = link.waits_s(window)
        rows.append(
            {
                "experiment": experiment,
                "repetition": repetition,
                "utilisation": part.utilisation(part.t_us[0], part.t_us[-1]),
                "queueing_delay": part.queueing_delay_s(),
                "queueing_delay_p50": float(np.quantile(waits, 0.5)) if len(waits) else None,
                "queueing_delay_p95": float(np.quantile(waits, 0.95)) if len(waits) else None,
                "drops": float(part.dropped_packets[-1] - part.dropped_packets[0]),
                "marks": float(part.marked_packets[-1] - part.marked_packets[0]),
            }
        )
    schema: dict[str, type[pl.DataType]] = dict.fromkeys(EXPERIMENT, pl.UInt64)
    return pl.DataFrame(rows, schema=schema | dict.fromkeys(PATH_MEASURES, pl.Float64))


def with_utilisation_while_active(
    flows: pl.DataFrame, links: Mapping[Direction, Mapping[tuple[int, int], Bottleneck]]
) -> pl.DataFrame:
    """Add `utilisation_while_active` to a table with `start_us`, `end_us` and `direction` per experiment and flow."""
    values = [
        link.utilisation_during(row["start_us"], row["end_us"])
        if (link := links[row["direction"]].get((row["experiment"], row["repetition"])))
        else None
        for row in flows.select(*EXPERIMENT, "start_us", "end_us", "direction").iter_rows(named=True)
    ]
    return flows.with_columns(pl.Series("utilisation_while_active", values, dtype=pl.Float64))
