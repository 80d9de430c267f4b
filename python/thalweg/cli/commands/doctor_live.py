"""`thalweg doctor --live`: does the machine at work get its CPUs, and which connections are slower if it does not?"""

import os
from collections.abc import Iterator, Mapping, Sequence

from thalweg import engine
from thalweg.cli.printing import output
from thalweg.engine_output import Live, LiveConnection, LiveMachine, LiveMissed, LiveNamespace
from thalweg.errors import Exit

SECONDS = 5
"""Long enough for some hundred looks at each connection, short enough to wait for."""

SHOWN = 20
"""A server has thousands of connections; those that matter come first, and are counted."""

NAMED = 8
"""Network namespaces that are named in a line; the others are counted."""

STATES: Mapping[str, str] = {
    "short-of-cpu": "short of CPU",
    "cured": "ok: bbr_cpu",
    "held-back": "ok: little to send",
    "not-bbr": "ok: not BBR",
    "fine": "ok",
}
"""What each verdict of the engine is called."""


def look(seconds: int, *, as_json: bool) -> Exit:
    """Monitor the machine for `seconds`, and report the findings with remedies."""
    seen = engine.live(seconds)
    if as_json:
        output.data_json(seen)
    else:
        for line in _lines(seen):
            output.data(line)
    return Exit.FAILED if _short(seen) else Exit.FINE


def _short(seen: Live) -> Sequence[LiveConnection]:
    return [one for one in seen["connections"] if one["verdict"] == "short-of-cpu"]


def _lines(seen: Live) -> Iterator[str]:
    yield from _machine(seen["machine"], seen["lasted_ms"] / 1000)
    connections = sorted(seen["connections"], key=lambda one: one["verdict"] != "short-of-cpu")
    if connections:
        yield ""
        headings = ["state", "connection", "cc", "goodput", "BBR's bandwidth", "rtt", "min rtt", "under 1 BDP"]
        own = {one["netns"] for one in seen["namespaces"] if one["own"]}
        rows = [
            [*_row(one), "own" if one["netns"] in own else _namespace(one["netns_name"], one["netns"])]
            for one in connections[:SHOWN]
        ]
        yield from output.table([*headings, "network namespace"], rows, numbers=range(3, 8)).splitlines()
    if len(connections) > SHOWN:
        yield f"... and {len(connections) - SHOWN} more (--json shows all)"
    yield ""
    yield from _namespaces(seen["namespaces"], seen["missed"])
    yield from _conclusion(seen)


def _machine(machine: LiveMachine, lasted_s: float) -> Iterator[str]:
    cpus = machine["cpus"]
    stalled = f"{machine['stalled_percent']:.1f} % of the time, for {machine['longest_stall_us'] / 1000:.1f} ms at most"
    yield f"looked for {lasted_s:.1f} s at {cpus} CPU{'s' if cpus > 1 else ''}"
    yield f"  taken by the hypervisor, as it says  {_percent(machine['steal_percent'], none='it says nothing')}"
    yield f"  not run although there was work      {stalled}"
    yield f"  some task waited for another         {_percent(machine['pressure_percent'], none='unknown')}"
    if not machine["is_realtime"]:
        yield "  (without root, work that was not run may have waited for other tasks here: it does not count)"


def _row(one: LiveConnection) -> list[str]:
    return [
        STATES.get(one["verdict"], one["verdict"]),
        f"{one['local']} > {one['remote']}",
        one["algorithm"],
        _rate(one["goodput_bps"]),
        _rate(one["bw_bps"]),
        _milliseconds(one["srtt_us"]),
        _milliseconds(one["min_rtt_us"]),
        _percent(one["short_percent"], none="-"),
    ]


def _namespace(name: str | None, netns: int) -> str:
    return name or str(netns)


def _namespaces(sampled: Sequence[LiveNamespace], missed: LiveMissed) -> Iterator[str]:
    """Yield which network namespaces were sampled, and which could not be."""
    others = sorted((one for one in sampled if not one["own"]), key=lambda one: -one["established"])
    named = [f"{_namespace(one['name'], one['netns'])} ({one['established']} established)" for one in others]
    beside = f" and {_count(len(others), 'other', 'others')}: {_some(named)}" if others else ""
    yield f"connections of this network namespace{beside}"
    unseen = missed["namespaces"]
    if unseen:
        count = _count(len(unseen), "network namespace", "network namespaces")
        yield f"  not seen: {count} that cannot be entered: {_some(unseen)}"
    if missed["hidden_processes"]:
        hidden = _count(missed["hidden_processes"], "process", "processes")
        yield f"  not seen: the network namespace of {hidden} that this user may not inspect"
    if (unseen or missed["hidden_processes"]) and os.geteuid() != 0:
        yield "  do: sudo thalweg doctor --live"


def _count(number: int, one: str, several: str) -> str:
    return f"{number} {one if number == 1 else several}"


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED} more (--json shows all)" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more


def _conclusion(seen: Live) -> Iterator[str]:
    short = len(_short(seen))
    if not short:
        established = seen["established"]
        yield f"no BBR connection looks short of CPU ({established} established, {len(seen['connections'])} sending)"
        return
    looks = "connections look" if short > 1 else "connection looks"
    yield f"{short} BBR {looks} short of CPU: BBR does not make up for what it could not send while this machine was"
    yield "off CPU; bbr_cpu does. Connections that are open keep what they have, new ones get it."
    yield "  do: sudo thalweg-agent cc load bbr_cpu"
    yield "  do: sudo sysctl net.ipv4.tcp_congestion_control=bbr_cpu"
    yield "  or give this machine more CPU"


def _rate(bps: float | None) -> str:
    return "-" if bps is None else f"{bps / 1e6:.1f} Mbit/s"


def _milliseconds(us: int | None) -> str:
    return "-" if us is None else f"{us / 1000:.1f} ms"


def _percent(percent: float | None, *, none: str) -> str:
    return none if percent is None else f"{percent:.1f} %"
