"""Quantities derived from the resolved plan of a sweep point, which do not depend on the scenario's notation.

A key that is undefined at a point, such as the rate of an unlimited link, is null.
"""

from collections.abc import Sequence
from typing import Literal

import polars as pl

from thalweg.analysis.tables.directions import LINKS, of_flow
from thalweg.analysis.tables.flows import BITS
from thalweg.results import Run
from thalweg.results.plan_document import (
    BufferDocument,
    ExperimentDocument,
    FlowDocument,
    LinkDocument,
    LossDocument,
    PlanDocument,
)

PACKET_BYTES = 1500
"""Bytes of a full-sized packet, including the IP header; capacities in packets are converted with this size."""
SECOND_NS = 1e9
MICROSECOND_NS = 1000
MILLISECONDS = 1e3
"""Milliseconds in a second."""

KEYS = {
    "rate_bps": "Rate of the bottleneck in bit/s: the constant one, the first step's, or the mean of a trace.",
    "rtt_s": "Round-trip time of the empty path in s, without a flow's `extra_rtt`; empty: it changes.",
    "bdp_bytes": "Bandwidth-delay product in bytes: `rate_bps` times `rtt_s`.",
    "buffer_bytes": "Capacity of the bottleneck's queue in bytes; a packet counts as 1500.",
    "buffer_bdp": "That capacity in bandwidth-delay products.",
    "loss": "Ratio of packets that the bottleneck's direction loses at random, in the long run.",
    "rcvbuf_bytes": "Limit of a connection's receive buffer in bytes.",
    "flows": "Number of flows, parallel copies counted.",
    "bbr_fraction": "Share of these flows that run BBR, or an algorithm whose name begins with it.",
    "cpu_share": "Share of a CPU that the first flow's sending host gets; empty: as much as it needs.",
    "cpu_slice_s": "Length of that host's CPU slices, in s.",
    "cpu_period_s": "Time from the start of a slice to that of the next one, in s: `cpu_slice_s` over `cpu_share`.",
}


def derived(run: Run) -> pl.DataFrame:
    """Return one row per sweep point: `experiment` and the derived keys, in the order of the scenario."""
    return derived_from(run.plan)


def derived_from(plan: PlanDocument) -> pl.DataFrame:
    """Return the derived keys of a plan in run.json, one row per sweep point."""
    points = {experiment["experiment"]: experiment for experiment in plan["experiments"]}
    rows = [{"experiment": number} | _derive(points[number], plan) for number in sorted(points)]
    return pl.DataFrame(rows, schema={"experiment": pl.UInt64} | dict.fromkeys(KEYS, pl.Float64))


def rate_bps(link: LinkDocument, plan: PlanDocument) -> float | None:
    """Return the rate that defines a BDP, in bit/s: the first step's, or the mean of a trace or a profile.

    None for an unlimited link.
    """
    capacity = link["capacity"]
    if capacity["kind"] == "steps":
        return float(capacity["steps"][0]["rate_bps"])
    if capacity["kind"] == "trace":
        opportunities = plan["traces"][capacity["trace"]]
        return len(opportunities) * PACKET_BYTES * BITS * MILLISECONDS / float(opportunities[-1])
    if capacity["kind"] == "profile":
        rates, period_ns = _profile_rates(link, plan)
        ends = [at_ns for at_ns, _ in rates[1:]] + [period_ns or rates[-1][0] + 1]
        total = sum(rate * (end - at_ns) for (at_ns, rate), end in zip(rates, ends, strict=True))
        return total / ends[-1]
    return None


def _profile_rates(link: LinkDocument, plan: PlanDocument) -> tuple[list[tuple[int, float]], int | None]:
    """Return the rates of a link's profile with their start times in ns, and its period."""
    profile = plan.get("profiles", {})[str(link.get("profile"))]
    points = profile["points"]
    rates = [(point["at_ns"], float(rate)) for point in points if (rate := point["rate_bps"]) is not None]
    return rates, profile["period_ns"]


def rates(run: Run) -> pl.DataFrame:
    """Return the changes of both links' rates in order of time: experiment, direction, t_us (since when), rate_bps.

    Traces and profiles are represented by their mean rates; an unlimited link has no rows.
    """
    plan = run.plan
    points = {experiment["experiment"]: experiment for experiment in plan["experiments"]}
    rows = [
        (number, direction, at_ns // MICROSECOND_NS, rate)
        for number, point in points.items()
        for direction, link in LINKS.items()
        for at_ns, rate in _steps(point[link], plan)
    ]
    schema = {"experiment": pl.UInt64, "direction": pl.String, "t_us": pl.UInt64, "rate_bps": pl.Float64}
    return pl.DataFrame(rows, schema=schema, orient="row").sort("t_us", maintain_order=True)


def base_rtts(run: Run) -> pl.DataFrame:
    """Return each flow's direction and round-trip time of the empty path: experiment, flow, direction, base_rtt_s (null
    where it changes), max_rtt_s (the sum of the largest delays of both directions).
    """
    points = {experiment["experiment"]: experiment for experiment in run.plan["experiments"]}
    rows = []
    for number, point in points.items():
        delays_ns = _delay_changes(point, run.plan)
        own_delays_ns = [point[link]["delay_ns"] for link in LINKS.values()]
        largest_ns = [max([own, *changes]) for own, changes in zip(own_delays_ns, delays_ns, strict=True)]
        max_rtt_ns = max(point["rtt_ns"], sum(largest_ns))
        for flow in point["flows"]:
            max_rtt_s = (max_rtt_ns + flow["extra_rtt_ns"]) / SECOND_NS
            base_rtt_s = None if any(delays_ns) else max_rtt_s
            rows.append((number, flow["name"], of_flow(flow), base_rtt_s, max_rtt_s))
    values = dict.fromkeys(("base_rtt_s", "max_rtt_s"), pl.Float64)
    schema = {"experiment": pl.UInt64, "flow": pl.String, "direction": pl.String, **values}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _derive(experiment: ExperimentDocument, plan: PlanDocument) -> dict[str, float | None]:
    forward = experiment["forward"]
    rate = rate_bps(forward, plan)
    rtt_s = None if any(_delay_changes(experiment, plan)) else experiment["rtt_ns"] / SECOND_NS
    bdp = None if rate is None or rtt_s is None else rate * rtt_s / BITS
    room = room_bytes(forward["buffer"]) if rate is not None else None
    return {
        "rate_bps": rate,
        "rtt_s": rtt_s,
        "bdp_bytes": bdp,
        "buffer_bytes": room,
        "buffer_bdp": room / bdp if room is not None and bdp else None,
        "loss": None if _changes(forward, plan, "loss") else mean_loss(forward["loss"]),
        "rcvbuf_bytes": float(experiment["hosts"]["receiver"]["rcvbuf_max_bytes"]),
        "flows": float(sum(flow["count"] for flow in experiment["flows"])),
        "bbr_fraction": _bbr_fraction(experiment["flows"]),
        **_cpu(experiment),
    }


def _delay_changes(experiment: ExperimentDocument, plan: PlanDocument) -> list[list[float]]:
    return [_changes(experiment[link], plan, "delay_ns") for link in LINKS.values()]


def _changes(link: LinkDocument, plan: PlanDocument, key: Literal["delay_ns", "loss"]) -> list[float]:
    """Return the values of a condition that the profile of a link sets."""
    profile = link.get("profile")
    points = [] if profile is None else plan["profiles"][profile]["points"]
    return [value for point in points if (value := point[key]) is not None]


def _bbr_fraction(flows: Sequence[FlowDocument]) -> float:
    of_bbr = sum(flow["count"] for flow in flows if flow["cc"].startswith("bbr"))
    return float(of_bbr / sum(flow["count"] for flow in flows))


def _cpu(experiment: ExperimentDocument) -> dict[str, float | None]:
    cpu = experiment["hosts"][experiment["flows"][0]["host"]].get("cpu")
    if cpu is None:
        return dict.fromkeys(("cpu_share", "cpu_slice_s", "cpu_period_s"))
    return {
        "cpu_share": cpu["slice_ns"] / cpu["period_ns"],
        "cpu_slice_s": cpu["slice_ns"] / SECOND_NS,
        "cpu_period_s": cpu["period_ns"] / SECOND_NS,
    }


def _steps(link: LinkDocument, plan: PlanDocument) -> list[tuple[int, float]]:
    capacity = link["capacity"]
    if capacity["kind"] == "steps":
        return [(step["at_ns"], float(step["rate_bps"])) for step in capacity["steps"]]
    rate = rate_bps(link, plan)
    return [] if rate is None else [(0, rate)]


def room_bytes(buffer: BufferDocument) -> float:
    """Return the capacity of a queue, in bytes."""
    return float(buffer["bytes"] if buffer["kind"] == "bytes" else buffer["packets"] * PACKET_BYTES)


def mean_loss(loss: LossDocument) -> float:
    """Return the mean loss ratio; the states of a Gilbert-Elliott model are weighted by their packets (Gilbert 1960,
    Elliott 1963).
    """
    if loss["kind"] == "bernoulli":
        return float(loss["ratio"])
    transition = loss["p"] + loss["r"]
    bad = loss["p"] / transition if transition > 0 else 0.0  # The model begins in the good state and stays there.
    return float(bad * loss["loss_bad"] + (1 - bad) * loss["loss_good"])
