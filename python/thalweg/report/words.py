"""A plan in words: what was tried, in sentences that are true of every point of the sweep."""

from collections.abc import Callable, Sequence
from typing import Any

from thalweg.report.labels import joined
from thalweg.report.numbers import amount, per_cent

NS = 1e9
"""Nanoseconds in a second."""
NO_LIMIT_BYTES = 2**31 - 1
"""A buffer as large as this (the most that Linux allows a socket) binds nobody, and is not worth a sentence."""
MOST_VALUES = 6
"""Of more different values, only the first and the last are named."""

Plan = dict[str, Any]
Experiment = dict[str, Any]


def path_sentences(plan: Plan) -> list[str]:
    """Describe the path and its hosts."""
    points = _points(plan)
    sentences = [
        f"The bottleneck carries {_each(points, lambda e: _capacity(e['forward']))}"
        f" and the round-trip time of the empty path is {_each(points, lambda e: _time(e['rtt_ns']))}.",
        f"Its queue is {_each(points, lambda e: _discipline(e['forward']))} and has room for {_each(points, _room)}.",
        *_impairments(points, "forward", "On the way there"),
        _way_back(points),
        *_impairments(points, "reverse", "On the way back"),
        *_hosts(points),
    ]
    return [sentence for sentence in sentences if sentence]


def flow_sentences(plan: Plan) -> list[tuple[str, str]]:
    """Describe each flow: its name, and what it does."""
    points = _points(plan)
    names = list(dict.fromkeys(flow["name"] for point in points for flow in point["flows"]))
    return [(name, _flow(points, name)) for name in names]


def traffic_sentences(plan: Plan) -> list[str]:
    """Describe the background and when everything starts and ends."""
    points = _points(plan)
    background = _each(points, _background)
    jitter = _each(points, lambda e: _time(e["start_jitter_ns"]) if e["start_jitter_ns"] else "")
    ends = _each(points, lambda e: _time(e["duration_ns"]) if e["duration_ns"] is not None else "")
    return [
        sentence
        for sentence in (
            f"UDP in the background: {background}." if background else "",
            f"Each connection's start moves by a random time of up to {jitter}." if jitter else "",
            f"An experiment ends once every flow has finished{f', or after {ends}' if ends else ''}.",
        )
        if sentence
    ]


def _points(plan: Plan) -> list[Experiment]:
    first = {entry["experiment"]: entry for entry in reversed(plan["experiments"])}
    return [first[number] for number in sorted(first)]


def _each(points: Sequence[Any], text: Callable[[Any], str]) -> str:
    """Write what differs between points as alternatives."""
    texts = list(dict.fromkeys(text(point) for point in points))
    if len(texts) > MOST_VALUES:
        return f"{texts[0]} to {texts[-1]} ({len(texts)} values)"
    return joined([each or "none" for each in texts], "or") if len(texts) > 1 else "".join(texts)


def _time(ns: int) -> str:
    return amount(ns / NS, "s")


def _capacity(link: Plan) -> str:
    capacity = link["capacity"]
    if capacity["kind"] == "unlimited":
        return "any rate"
    if capacity["kind"] == "trace":
        return f"what the trace {capacity['trace']} allows"
    first, *later = capacity["steps"]
    changes = "".join(f", from {_time(step['at_ns'])} on {amount(step['rate_bps'], 'bit/s')}" for step in later)
    return amount(first["rate_bps"], "bit/s") + changes


def _discipline(link: Plan) -> str:
    kind = str(link["queue"]["kind"])
    return "first in, first out (drop-tail)" if kind == "fifo" else kind


def _room(experiment: Experiment) -> str:
    buffer = experiment["forward"]["buffer"]
    if buffer["kind"] == "packets":
        return f"{buffer['packets']} packets"
    if buffer["bytes"] >= NO_LIMIT_BYTES:
        return "everything"
    text = amount(buffer["bytes"], "B")
    capacity = experiment["forward"]["capacity"]
    if capacity["kind"] == "steps" and capacity["steps"][0]["rate_bps"]:
        bdp = capacity["steps"][0]["rate_bps"] * experiment["rtt_ns"] / NS / 8
        text += f" ({buffer['bytes'] / bdp:.3g} BDP)"
    return text


def _way_back(points: Sequence[Experiment]) -> str:
    if all(point["reverse"]["capacity"]["kind"] == "unlimited" for point in points):
        return "The way back has no limit of rate."
    return f"The way back carries {_each(points, lambda e: _capacity(e['reverse']))}."


def _impairments(points: Sequence[Experiment], direction: str, where: str) -> list[str]:
    def one(experiment: Experiment) -> str:
        link = experiment[direction]
        loss = link["loss"]
        found = []
        if loss["kind"] == "bernoulli" and loss["ratio"]:
            found.append(f"{per_cent(loss['ratio'])} of the packets are lost at random")
        if loss["kind"] == "gilbert_elliott":
            found.append(f"packets are lost in bursts ({_gilbert_elliott(loss)})")
        if link["jitter_ns"]:
            found.append(f"packets wait a random time of up to {_time(link['jitter_ns'])}, in order")
        if link["reorder"]:
            found.append(f"{per_cent(link['reorder'])} are held back by {_time(link['reorder_delay_ns'])}")
        if link["duplicate"]:
            found.append(f"{per_cent(link['duplicate'])} arrive twice")
        return joined(found)

    text = _each(points, lambda e: one(e) or "nothing else happens to packets")
    return [] if text == "nothing else happens to packets" else [f"{where}, {text}."]


def _gilbert_elliott(loss: Plan) -> str:
    bad = loss["p"] / (loss["p"] + loss["r"]) if loss["p"] + loss["r"] else 0.0
    mean = bad * loss["loss_bad"] + (1 - bad) * loss["loss_good"]
    return f"Gilbert-Elliott, {per_cent(mean)} in the long run"


def _hosts(points: Sequence[Experiment]) -> list[str]:
    sentences = []
    for name in dict.fromkeys(name for point in points for name in point["hosts"]):
        limits = []
        for key, what in (("sndbuf_max_bytes", "send"), ("rcvbuf_max_bytes", "receive")):
            sizes = [point["hosts"][name][key] for point in points if name in point["hosts"]]
            if min(sizes) < NO_LIMIT_BYTES:
                limits.append(f"{what} buffers of up to {_each(sizes, lambda size: amount(size, 'B'))}")
        delays = [point["hosts"][name]["delay_jitter_ns"] for point in points if name in point["hosts"]]
        if max(delays):
            limits.append(f"a random delay of up to {_each(delays, _time)} per packet")
        limits += _processors([point["hosts"][name] for point in points if name in point["hosts"]])
        qdiscs = [point["hosts"][name].get("qdisc") for point in points if name in point["hosts"]]
        if any(qdiscs):
            limits.append(f"the queue discipline {_each(qdiscs, lambda qdisc: qdisc or 'of its kernel')}")
        if limits:
            sentences.append(f"The host {name} has {joined(limits)}.")
    return sentences


def _processors(hosts: Sequence[Plan]) -> list[str]:
    """Say how scarce a host's CPU is, where it is."""
    found = []
    given = [cpu for host in hosts if (cpu := host.get("cpu"))]
    if given:
        found.append(
            f"a CPU for {_each(given, lambda c: _time(c['slice_ns']))} out of every "
            f"{_each(given, lambda c: _time(c['period_ns']))}"
        )
    if any(tenants := [host.get("co_tenants", 0) for host in hosts]):
        found.append(f"{_each(tenants, str)} co-tenants on its CPU")
    return found


def _flow(points: Sequence[Experiment], name: str) -> str:
    flows = [flow for point in points for flow in point["flows"] if flow["name"] == name]
    count = _each(flows, lambda f: str(f["count"]))
    parts = [
        _each(flows, lambda f: f["cc"] + _parameters(f)),
        "" if count == "1" else f"{count} parallel copies",
        _each(flows, lambda f: "paced" if f.get("paced") else ""),
        _each(flows, lambda f: _load(f["load"])),
        _each(flows, lambda f: f"starts at {_time(f['start_ns'])}"),
        _each(flows, lambda f: _repeat(f["repeat"])),
        _each(flows, lambda f: f"stops at {_time(f['stop_ns'])}" if f["stop_ns"] is not None else ""),
        _each(flows, lambda f: f"{_time(f['extra_rtt_ns'])} more round-trip time" if f["extra_rtt_ns"] else ""),
        _each(flows, lambda f: f"sent by host {f['host']}" if f["host"] != "sender" else ""),
    ]
    return "; ".join(part for part in parts if part) + "."


def _parameters(flow: Plan) -> str:
    parameters = ", ".join(f"{name} = {value:g}" for name, value in flow["cc_params"].items())
    return f" ({parameters})" if parameters else ""


def _load(load: Plan) -> str:
    if load["kind"] == "unlimited":
        return "data without end"
    if load["kind"] == "sizes":
        return f"{joined([amount(size, 'B') for size in load['sizes_bytes']], 'or')} per connection"
    count = "until the flow stops" if load["count"] is None else f"{load['count']} times"
    pause = f" with pauses of {_time(load['think_ns'])}" if load["think_ns"] else ""
    return f"{amount(load['size_bytes'], 'B')} again and again on one connection, {count}{pause}"


def _repeat(repeat: Plan) -> str:
    if repeat["kind"] == "once":
        return ""
    ends = joined(
        [f"until {repeat['until']} has finished"] * bool(repeat["until"])
        + [f"{repeat['count']} in all"] * bool(repeat["count"])
    )
    if repeat["kind"] == "gap":
        text = f"the next connection opens {_time(repeat['gap_ns'])} after the one before has finished"
    else:
        text = f"connections arrive at random, {_time(repeat['mean_gap_ns'])} apart on average (Poisson)"
    return f"{text}, {ends}" if ends else text


def _background(experiment: Experiment) -> str:
    return joined(
        [
            f"{amount(each['rate_bps'], 'bit/s')} from {_time(each['start_ns'])}"
            + (f" to {_time(each['stop_ns'])}" if each["stop_ns"] is not None else " on")
            for each in experiment["background"]
        ]
    )
