"""Measures of the bottleneck, one value per experiment (or experiment and flow), from the table of the queue.

Left out: what a link that has no limit of rate could have carried; such a link has no utilisation.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from thalweg.analysis.flows import EXPERIMENT, MICROSECONDS

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Bottleneck:
    """The forward link of one experiment at moments: counters so far, and the backlog."""

    t_us: Numbers
    sent_bytes: Numbers
    capacity_bytes: Numbers | None
    """None: without limit."""
    backlog_bytes: Numbers
    dropped_packets: Numbers

    def utilisation(self, start_us: float, end_us: float) -> float | None:
        """Bytes sent over bytes possible between two moments; counters are straight lines between samples.

        Moments before the first sample or after the last one are moved there.
        """
        if self.capacity_bytes is None:
            return None
        moments = np.array([start_us, end_us], dtype=float)
        sent = float(np.diff(np.interp(moments, self.t_us, self.sent_bytes))[0])
        possible = float(np.diff(np.interp(moments, self.t_us, self.capacity_bytes))[0])
        return sent / possible if possible > 0 else None

    def queueing_delay_s(self) -> float | None:
        """Mean wait of a byte by Little's law (Little 1961); it needs no rate, so the rate may change or be 0."""
        sent = float(self.sent_bytes[-1] - self.sent_bytes[0])
        if sent <= 0:
            return None
        return float(np.trapezoid(self.backlog_bytes, self.t_us)) / sent / MICROSECONDS


def bottlenecks(queue: pl.DataFrame) -> dict[tuple[int, int], Bottleneck]:
    """Give the forward link of every experiment that has two samples of it or more, by experiment and repetition."""
    links = {}
    forward = queue.filter(pl.col("link") == "forward").sort(*EXPERIMENT, "t_us")
    for (experiment, repetition), rows in forward.group_by(*EXPERIMENT, maintain_order=True):
        if rows.height < 2:
            continue
        columns = {
            name: rows[name].cast(pl.Float64).to_numpy()
            for name in ("t_us", "sent_bytes", "backlog_bytes", "dropped_packets")
        }
        is_limited = rows["capacity_bytes"].null_count() == 0
        capacity = rows["capacity_bytes"].cast(pl.Float64).to_numpy() if is_limited else None
        links[int(experiment), int(repetition)] = Bottleneck(capacity_bytes=capacity, **columns)
    return links


def path_measures(links: Mapping[tuple[int, int], Bottleneck]) -> pl.DataFrame:
    """Give a row per experiment and repetition, with a column per measure of the path."""
    rows = [
        {
            "experiment": experiment,
            "repetition": repetition,
            "utilisation": link.utilisation(link.t_us[0], link.t_us[-1]),
            "queueing_delay": link.queueing_delay_s(),
            "drops": float(link.dropped_packets[-1] - link.dropped_packets[0]),
        }
        for (experiment, repetition), link in links.items()
    ]
    schema: dict[str, Any] = dict.fromkeys(EXPERIMENT, pl.UInt64)
    return pl.DataFrame(rows, schema=schema | dict.fromkeys(["utilisation", "queueing_delay", "drops"], pl.Float64))


def with_utilisation_while_active(flows: pl.DataFrame, links: Mapping[tuple[int, int], Bottleneck]) -> pl.DataFrame:
    """Add the column `utilisation_while_active` to a table with `start_us` and `end_us` per experiment and flow."""
    values = [
        link.utilisation(row["start_us"], row["end_us"])
        if (link := links.get((row["experiment"], row["repetition"])))
        else None
        for row in flows.select(*EXPERIMENT, "start_us", "end_us").iter_rows(named=True)
    ]
    return flows.with_columns(pl.Series("utilisation_while_active", values, dtype=pl.Float64))
