"""Describes a plan in sentences that are true at every point of the sweep."""

from collections.abc import Mapping, Sequence
from typing import Literal

from thalweg.analysis.tables.derived import mean_loss
from thalweg.analysis.tables.directions import LinkName
from thalweg.report.text.alternatives import amounts, optional, texts
from thalweg.report.text.labels import joined
from thalweg.report.text.numbers import amount, per_cent
from thalweg.report.text.trace_names import trace_names
from thalweg.results.plan_document import (
    CapacityDocument,
    ExperimentDocument,
    FlowDocument,
    HostDocument,
    LinkDocument,
    LoadDocument,
    LossDocument,
    PlanDocument,
    RepeatDocument,
)

NS = 1e9
NO_LIMIT_BYTES = 2**31 - 1
"""A buffer of at least this size counts as unlimited."""

SOCKET_BUFFERS: tuple[tuple[Literal["sndbuf_max_bytes", "rcvbuf_max_bytes"], str], ...] = (
    ("sndbuf_max_bytes", "send"),
    ("rcvbuf_max_bytes", "receive"),
)


def path_sentences(plan: PlanDocument, command: Sequence[str]) -> list[str]:
    """Describe the path and its hosts; `command` is the command that started the run."""
    points, names = _points(plan), trace_names(plan, command)
    sentences = [
        f"The bottleneck carries {_capacities(points, 'forward', names)}"
        f" and the round-trip time of the empty path is {amounts([e['rtt_ns'] for e in points], _time)}.",
        f"Its queue is {texts(_discipline(e['forward']) for e in points)}"
        f" and holds {texts(_room(e, 'forward') for e in points)}.",
        *_impairments(points, "forward", "On the forward path"),
        _way_back(points, names),
        *_impairments(points, "reverse", "On the reverse path"),
        *_hosts(points),
    ]
    return [sentence for sentence in sentences if sentence]


def flow_sentences(plan: PlanDocument) -> list[tuple[str, str]]:
    """Describe each flow: its name and its traffic."""
    points = _points(plan)
    names = list(dict.fromkeys(flow["name"] for point in points for flow in point["flows"]))
    return [(name, _flow(points, name)) for name in names]


def traffic_sentences(plan: PlanDocument) -> list[str]:
    """Describe the background traffic, the jitter of connections' starts, and the end of an experiment."""
    points = _points(plan)
    background = _background(points)
    jitter = optional([e["start_jitter_ns"] for e in points], _time, lambda text: f"by a random time of up to {text}")
    ends = optional([e["duration_ns"] for e in points], _time, lambda text: f", or after {text}")
    return [
        sentence
        for sentence in (
            f"Background UDP traffic: {background}." if background else "",
            f"Each connection's start is shifted {jitter}." if jitter else "",
            f"An experiment ends once every flow has finished{ends}.",
        )
        if sentence
    ]


def _points(plan: PlanDocument) -> list[ExperimentDocument]:
    first = {entry["experiment"]: entry for entry in reversed(plan["experiments"])}
    return [first[number] for number in sorted(first)]


def _time(ns: float) -> str:
    return amount(ns / NS, "s")


def _capacities(points: Sequence[ExperimentDocument], direction: LinkName, names: Mapping[str, str]) -> str:
    capacities = [point[direction]["capacity"] for point in points]
    if all(capacity["kind"] == "steps" and len(capacity["steps"]) == 1 for capacity in capacities):
        return amounts([capacity["steps"][0]["rate_bps"] for capacity in capacities], _bitrate)
    return texts(_capacity(capacity, names) for capacity in capacities)


def _bitrate(bps: float) -> str:
    return amount(bps, "bit/s")


def _bytes(size: float) -> str:
    return amount(size, "B")


def _capacity(capacity: CapacityDocument, names: Mapping[str, str]) -> str:
    if capacity["kind"] == "unlimited":
        return "any rate"
    if capacity["kind"] == "trace":
        return f"what the trace {names.get(capacity['trace'], capacity['trace'])} allows"
    if capacity["kind"] == "profile":
        return "the rates of its trace"
    first, *later = capacity["steps"]
    changes = "".join(f", from {_time(step['at_ns'])} on {_bitrate(step['rate_bps'])}" for step in later)
    return _bitrate(first["rate_bps"]) + changes


def _discipline(link: LinkDocument) -> str:
    kind = str(link["queue"]["kind"])
    return "first in, first out (drop-tail)" if kind == "fifo" else kind


def _room(experiment: ExperimentDocument, direction: LinkName) -> str:
    buffer = experiment[direction]["buffer"]
    if buffer["kind"] == "packets":
        return f"{buffer['packets']} packets"
    if buffer["bytes"] >= NO_LIMIT_BYTES:
        return "everything"
    text = amount(buffer["bytes"], "B")
    capacity = experiment[direction]["capacity"]
    if capacity["kind"] == "steps" and capacity["steps"][0]["rate_bps"]:
        bdp = capacity["steps"][0]["rate_bps"] * experiment["rtt_ns"] / NS / 8
        text += f" ({buffer['bytes'] / bdp:.3g} BDP)"
    return text


def _way_back(points: Sequence[ExperimentDocument], names: Mapping[str, str]) -> str:
    if all(point["reverse"]["capacity"]["kind"] == "unlimited" for point in points):
        return "The reverse path has no rate limit."
    has_up = any(traffic.get("up") for point in points for traffic in (*point["flows"], *point["background"]))
    room = f", and its queue holds {texts(_room(e, 'reverse') for e in points)}" if has_up else ""
    return f"The reverse path carries {_capacities(points, 'reverse', names)}{room}."


def _order(links: Sequence[LinkDocument]) -> str:
    allowed = {bool(link.get("allow_reordering")) for link in links if link["jitter_ns"]}
    if allowed == {True}:
        return "and may overtake one another"
    return "in order at some points and not at others" if len(allowed) > 1 else "in order"


def _impairments(points: Sequence[ExperimentDocument], direction: LinkName, place_text: str) -> list[str]:
    links = [point[direction] for point in points]
    delays = [link["reorder_delay_ns"] for link in links if link["reorder"]]
    order = _order(links)
    delay_phrase = f"are held back by {amounts(delays, _time)}" if delays else ""
    phrases = [
        _losses([link["loss"] for link in links]),
        optional(
            [link["jitter_ns"] for link in links],
            _time,
            lambda text: f"packets wait a random time of up to {text}, {order}",
        ),
        _ratios([link["reorder"] for link in links], delay_phrase),
        _ratios([link["duplicate"] for link in links], "arrive twice"),
        _policers(links),
        _aggregations(links),
        optional(
            [_thinning(link) for link in links], "{:g}".format, lambda text: f"one in {text} ACKs passes", "or all"
        ),
        _either([link.get("offloads", False) for link in links], "segments that arrive back to back are merged"),
        _at_points("delay or loss change over time", sum(bool(link.get("profile")) for link in links), len(links)),
    ]
    text = _listed([phrase for phrase in phrases if phrase])
    return [f"{place_text}, {text}."] if text else []


def _policers(links: Sequence[LinkDocument]) -> str:
    policers = [policer for link in links if (policer := link.get("policer"))]
    rates = amounts([policer["rate_bps"] for policer in policers], _bitrate)
    bursts = amounts([policer["burst_bytes"] for policer in policers], _bytes)
    text = f"a policer drops what exceeds {rates} after a burst of {bursts}"
    return _at_points(text, len(policers), len(links))


def _aggregations(links: Sequence[LinkDocument]) -> str:
    aggregations = [aggregation for link in links if (aggregation := link.get("aggregation"))]
    intervals = amounts([aggregation["interval_ns"] for aggregation in aggregations], _time)
    return _at_points(f"packets of {intervals} leave together", len(aggregations), len(links))


def _thinning(link: LinkDocument) -> int | None:
    """Return the number of ACKs of which one passes; None: all pass."""
    acks = link.get("ack_thinning") or 1
    return acks if acks > 1 else None


def _at_points(text: str, count: int, points: int) -> str:
    """Return a phrase with the number of points at which it is true; empty without such a point."""
    return "" if not count else text if count == points else f"{text} at {count} of {points} points"


def _ratios(ratios: Sequence[float], effect: str) -> str:
    return amounts(ratios, per_cent, lambda text: f"{text} of the packets {effect}") if any(ratios) else ""


def _losses(losses: Sequence[LossDocument]) -> str:
    at_random = [loss["ratio"] for loss in losses if loss["kind"] == "bernoulli"]
    bursts = [mean_loss(loss) for loss in losses if loss["kind"] == "gilbert_elliott"]
    ways = [_ratios(at_random, "are lost at random")]
    if bursts:
        ways.append(
            amounts(
                bursts, per_cent, lambda text: f"packets are lost in bursts (Gilbert-Elliott, {text} in the long run)"
            )
        )
        if at_random and not any(at_random):
            ways.append("no packets are lost")
    return ", or ".join(loss_phrase for loss_phrase in ways if loss_phrase)


def _listed(parts: Sequence[str]) -> str:
    return "; ".join(parts) if len(parts) > 1 and any(", " in part for part in parts) else joined(list(parts))


def _hosts(points: Sequence[ExperimentDocument]) -> list[str]:
    sentences = []
    for name in dict.fromkeys(name for point in points for name in point["hosts"]):
        hosts = [point["hosts"][name] for point in points if name in point["hosts"]]
        limits = []
        for key, buffer_name in SOCKET_BUFFERS:
            sizes = [host[key] if host[key] < NO_LIMIT_BYTES else None for host in hosts]
            if text := optional(sizes, _bytes, str, "or of any size"):
                limits.append(f"{buffer_name} buffers of up to {text}")
        limits.append(
            optional(
                [host["delay_jitter_ns"] for host in hosts],
                _time,
                lambda text: f"a random delay of up to {text} per packet",
                "or none",
            )
        )
        limits += _processors(hosts)
        limits.append(_either([host.get("offloads", False) for host in hosts], "receive offload"))
        limits.append(
            optional(
                [host.get("interrupt_coalescing_ns", 0) for host in hosts],
                _time,
                lambda text: f"a network card that collects packets for {text}",
                "or one that does not",
            )
        )
        qdiscs = [host.get("qdisc") for host in hosts]
        if any(qdiscs):
            qdisc_names = texts(qdisc for qdisc in qdiscs if qdisc)
            limits.append(f"the queue discipline {qdisc_names}" + ("" if all(qdiscs) else ", or the one of its kernel"))
        if text := _listed([limit for limit in limits if limit]):
            sentences.append(f"The host {name} has {text}.")
    return sentences


def _either(settings: Sequence[bool], phrase: str) -> str:
    """Describe a setting that is on at all points or at some; empty if it is off."""
    return phrase + ("" if all(settings) else ", or not") if any(settings) else ""


def _processors(hosts: Sequence[HostDocument]) -> list[str]:
    cpus = [cpu for host in hosts if (cpu := host.get("cpu"))]
    phrases = []
    if cpus:
        slices, periods = (amounts([cpu[key] for cpu in cpus], _time) for key in ("slice_ns", "period_ns"))
        phrases.append(
            f"a CPU for {slices} out of every {periods}"
            + ("" if len(cpus) == len(hosts) else ", or whenever it needs one")
        )
    tenants = [host.get("co_tenants", 0) for host in hosts]
    if any(tenants):
        phrases.append(amounts(tenants, str, lambda text: f"{text} co-tenant{'' if text == '1' else 's'} on its CPU"))
    return phrases


def _flow(points: Sequence[ExperimentDocument], name: str) -> str:
    flows = [flow for point in points for flow in point["flows"] if flow["name"] == name]
    counts = [flow["count"] for flow in flows]
    paced = {bool(flow.get("paced")) for flow in flows}
    directions = {bool(flow.get("up")) for flow in flows}
    hosts = [flow["host"] for flow in flows]
    parts = [
        texts(flow["cc"] + _parameters(flow) for flow in flows),
        "" if set(counts) == {1} else amounts(counts, str, lambda text: f"{text} parallel copies"),
        "paced or not" if len(paced) > 1 else "paced" if True in paced else "",
        _loads([flow["load"] for flow in flows]),
        amounts([flow["start_ns"] for flow in flows], _time, lambda text: f"starts at {text}"),
        _repeats([flow["repeat"] for flow in flows]),
        optional([flow["stop_ns"] for flow in flows], _time, lambda text: f"stops at {text}"),
        _more_rtt([flow["extra_rtt_ns"] for flow in flows]),
        "goes up, on the reverse path, or down"
        if len(directions) > 1
        else "goes up, on the reverse path"
        if True in directions
        else "",
        "" if set(hosts) == {"sender"} else f"{'to' if True in directions else 'sent by'} the host {texts(hosts)}",
    ]
    return "; ".join(part for part in parts if part) + "."


def _more_rtt(extra_ns: Sequence[int]) -> str:
    return amounts(extra_ns, _time, lambda text: f"{text} more round-trip time") if any(extra_ns) else ""


def _parameters(flow: FlowDocument) -> str:
    parameters = ", ".join(f"{name} = {value:g}" for name, value in flow["cc_params"].items())
    return f" ({parameters})" if parameters else ""


def _loads(loads: Sequence[LoadDocument]) -> str:
    if all(load["kind"] == "sizes" and len(load["sizes_bytes"]) == 1 for load in loads):
        return amounts([load["sizes_bytes"][0] for load in loads], _bytes, lambda text: f"{text} per connection")
    if all(load["kind"] == "requests" for load in loads):
        return _requests(loads)
    return texts(map(_load, loads))


def _load(load: LoadDocument) -> str:
    if load["kind"] == "unlimited":
        return "unlimited data"
    if load["kind"] == "sizes":
        return f"{joined([_bytes(size) for size in load['sizes_bytes']], 'or')} per connection"
    if load["kind"] == "app":
        return f"the application {load['app']['kind']}"
    return _requests([load])


def _requests(loads: Sequence[LoadDocument]) -> str:
    counts = [load["count"] for load in loads]
    times = optional(counts, str, lambda text: f"{text} times", "or until the flow stops") or "until the flow stops"
    pause = optional(
        [load["think_ns"] for load in loads], _time, lambda text: f" with pauses of {text}", "or without pauses"
    )
    sizes = amounts([load["size_bytes"] for load in loads], _bytes)
    return f"{sizes} repeatedly on one connection, {times}{pause}"


def _repeats(repeats: Sequence[RepeatDocument]) -> str:
    if {repeat["kind"] for repeat in repeats} == {"once"}:
        return ""
    ends = texts(map(_end, repeats)) if all(map(_end, repeats)) else ""
    if all(repeat["kind"] == "gap" for repeat in repeats):
        gaps = [repeat["gap_ns"] for repeat in repeats]
        text = amounts(gaps, _time, lambda text: f"the next connection opens {text} after the one before has finished")
    elif all(repeat["kind"] == "poisson" for repeat in repeats):
        gaps = [repeat["mean_gap_ns"] for repeat in repeats]
        text = amounts(gaps, _time, lambda text: f"connections arrive at random, {text} apart on average (Poisson)")
    else:
        return texts(_repeats([repeat]) or "one connection" for repeat in repeats)
    return f"{text}, {ends}" if ends else text


def _end(repeat: RepeatDocument) -> str:
    until = [f"until {repeat['until']} has finished"] if repeat["until"] else []
    return joined(until + ([f"{repeat['count']} in all"] if repeat["count"] else []))


def _background(points: Sequence[ExperimentDocument]) -> str:
    """Describe each UDP flow; every point has the same number of them."""
    phrases = []
    for same in zip(*(point["background"] for point in points), strict=True):
        rates = amounts([udp_flow["rate_bps"] for udp_flow in same], _bitrate)
        starts = amounts([udp_flow["start_ns"] for udp_flow in same], _time)
        stops = optional([udp_flow["stop_ns"] for udp_flow in same], _time, lambda text: f" to {text}", "or to the end")
        directions = {bool(udp_flow.get("up")) for udp_flow in same}
        direction_phrase = (
            " on the reverse path, or not"
            if len(directions) > 1
            else " on the reverse path"
            if True in directions
            else ""
        )
        phrases.append(f"{rates} from {starts}{stops or ' on'}{direction_phrase}")
    return _listed(phrases)
