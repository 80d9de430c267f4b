"""Measures of flows within a window, from the counters of their connections."""

import numpy as np
import polars as pl

from thalweg.analysis.measuring.counters import COUNTERS, Copies, Copy, by_flow
from thalweg.analysis.statistics.fairness import jain
from thalweg.analysis.tables.directions import LINKS, UP
from thalweg.analysis.tables.flows import BITS, EXPERIMENT, MICROSECONDS
from thalweg.analysis.tables.window import Window

FLOW_MEASURES = ["goodput", "share", "retransmits", "retransmit_ratio"]


def window_measures(of_experiments: Copies, window: Window) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return one row per experiment, repetition and flow that was active within the window, and `jain` and `jain_up`
    per experiment and repetition.

    Shares and indices are computed within one direction.
    """
    rows: list[dict[str, int | float | str | None]] = []
    jains: list[tuple[int, int, float | None, float | None]] = []
    for (experiment, repetition), all_copies in of_experiments.items():
        active = [copy for copy in all_copies if copy.active_us(window.from_us, window.to_us) > 0]
        counts = {id(copy): _done(copy, window) for copy in active}
        acked_bytes: dict[str, float] = {
            direction: sum(counts[id(copy)]["acked_bytes"] for copy in active if copy.direction == direction)
            for direction in LINKS
        }
        for flow, flow_copies in by_flow(active).items():
            sums = {name: sum(counts[id(copy)][name] for copy in flow_copies) for name in COUNTERS}
            start, end = min(copy.start_us for copy in flow_copies), max(copy.end_us for copy in flow_copies)
            seconds = (min(window.to_us, end) - max(window.from_us, start)) / MICROSECONDS
            rows.append(
                {
                    "experiment": experiment,
                    "repetition": repetition,
                    "flow": flow,
                    "cc": flow_copies[0].cc,
                    "goodput": sums["acked_bytes"] * BITS / seconds,
                    "share": sums["acked_bytes"] / all_bytes
                    if (all_bytes := acked_bytes[flow_copies[0].direction]) > 0
                    else None,
                    "retransmits": sums["retransmits"],
                    "retransmit_ratio": sums["retransmits"] / sums["segments"] if sums["segments"] > 0 else None,
                }
            )
        goodputs = {
            direction: [
                counts[id(copy)]["acked_bytes"] / copy.active_us(window.from_us, window.to_us)
                for copy in active
                if copy.direction == direction
            ]
            for direction in LINKS
        }
        jains.append((experiment, repetition, jain(goodputs["down"]), jain(goodputs["up"])))
    keys = dict.fromkeys(EXPERIMENT, pl.UInt64)
    names = dict.fromkeys(["flow", "cc"], pl.String)
    flows = pl.DataFrame(rows, schema=keys | names | dict.fromkeys(FLOW_MEASURES, pl.Float64))
    return flows, pl.DataFrame(jains, schema=keys | {"jain": pl.Float64, f"jain{UP}": pl.Float64}, orient="row")


def _done(copy: Copy, window: Window) -> dict[str, float]:
    edges = np.array([window.from_us, window.to_us])
    return {name: float(np.diff(copy.at(name, edges))[0]) for name in COUNTERS}
