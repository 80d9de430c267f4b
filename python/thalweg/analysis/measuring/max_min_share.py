"""Rate of each flow relative to its fair share of the path.

The fair share is the max-min allocation of the link's rate, minus unresponsive background, among all active transfers,
pages, and copies of applications with their own rate.
"""

from collections.abc import Iterator, Mapping
from math import inf

import numpy as np
import polars as pl

from thalweg.analysis.statistics.max_min import allocate
from thalweg.analysis.tables.apps import demand_bps
from thalweg.analysis.tables.derived import MICROSECOND_NS, PACKET_BYTES
from thalweg.analysis.tables.directions import of_flow, with_direction
from thalweg.analysis.tables.flows import BITS, EXPERIMENT, MICROSECONDS
from thalweg.analysis.tables.thin import Numbers
from thalweg.results.plan_document import BackgroundDocument, ExperimentDocument

PAYLOAD = 1448 / PACKET_BYTES
"""Fraction of a full-sized packet with timestamps that is payload."""

SCHEMA = {**dict.fromkeys(EXPERIMENT, pl.UInt64), "flow": pl.String, "max_min_share": pl.Float64}


def max_min_shares(flows: pl.DataFrame, rates: pl.DataFrame, planned: Mapping[int, ExperimentDocument]) -> pl.DataFrame:
    """Return `max_min_share` per experiment, repetition and flow; no rows for a link without a rate limit.

    Args:
        flows: The transfers.
        rates: The changes of the links' rates, as `derived.rates` returns them.
        planned: Each sweep point in the plan.
    """
    rows: list[tuple[int, int, str, float]] = []
    parts = with_direction(flows).partition_by(*EXPERIMENT, "direction", as_dict=True, maintain_order=True)
    for (experiment, repetition, direction), transfers in parts.items():
        point = planned[experiment]
        steps = rates.filter((pl.col("experiment") == experiment) & (pl.col("direction") == direction))
        if steps.is_empty():
            continue
        background = [traffic for traffic in point["background"] if of_flow(traffic) == direction]
        demands = {flow["name"]: demand_bps(flow) for flow in point["flows"]}
        times, available = _available_rate(steps, background)
        rows += [(experiment, repetition, *flow_share) for flow_share in _shares(transfers, demands, times, available)]
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def _available_rate(steps: pl.DataFrame, background: list[BackgroundDocument]) -> tuple[Numbers, Numbers]:
    """Return the payload rate that is left to the flows: start times of its steps (us), and rates (bit/s)."""
    since, rate = steps["t_us"].to_numpy().astype(np.float64), steps["rate_bps"].to_numpy()
    starts = [traffic["start_ns"] / MICROSECOND_NS for traffic in background]
    stops = [inf if traffic["stop_ns"] is None else traffic["stop_ns"] / MICROSECOND_NS for traffic in background]
    times = np.unique([*since, *starts, *(stop for stop in stops if stop < inf)])
    available = rate[np.clip(np.searchsorted(since, times, "right") - 1, 0, None)]
    for traffic, start, stop in zip(background, starts, stops, strict=True):
        available = available - traffic["rate_bps"] * ((times >= start) & (times < stop))
    return times, np.maximum(available, 0) * PAYLOAD


def _shares(
    transfers: pl.DataFrame, demands: Mapping[str, float], times: Numbers, available: Numbers
) -> Iterator[tuple[str, float]]:
    demand = pl.col("flow").replace_strict(demands, default=inf, return_dtype=pl.Float64).alias("demand")
    with_demand = transfers.with_columns(demand)
    # A page counts as one demand for any number of connections, and so does a copy of an application with its own rate.
    page = pl.col("item").fill_null(pl.int_range(pl.len()))
    unit = pl.when(pl.col("demand").is_finite()).then(0).otherwise(page).alias("together")
    active = with_demand.group_by("flow", "copy", "demand", unit, maintain_order=True).agg(
        pl.col("start_us").min(), pl.col("end_us").max(), pl.col("acked_bytes").sum()
    )
    start, end = (active[name].to_numpy().astype(np.float64) for name in ("start_us", "end_us"))
    edges = np.unique(np.concatenate([start, end, times[times < end.max()]]))
    rate = available[np.clip(np.searchsorted(times, edges, "right") - 1, 0, None)]
    demand_values, kind = np.unique(active["demand"].to_numpy(), return_inverse=True)
    counts = np.array(
        [
            np.searchsorted(np.sort(start[kind == demand_index]), edges, "right")
            - np.searchsorted(np.sort(end[kind == demand_index]), edges, "right")
            for demand_index in range(len(demand_values))
        ],
        dtype=np.float64,
    )
    allocations = allocate(rate, demand_values, counts)
    durations = np.append(np.diff(edges), 0.0)
    bits = (
        np.concatenate([np.zeros((len(demand_values), 1)), np.cumsum(allocations * durations, axis=1)], axis=1)
        / MICROSECONDS
    )
    fair = bits[kind, np.searchsorted(edges, end)] - bits[kind, np.searchsorted(edges, start)]
    totals = active.with_columns(pl.Series("fair", fair)).group_by("flow", maintain_order=True)
    for flow, acked, share in totals.agg(pl.col("acked_bytes").sum(), pl.col("fair").sum()).iter_rows():
        if share > 0:
            yield flow, acked * BITS / share
