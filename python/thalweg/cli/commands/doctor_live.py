"""`thalweg doctor --live`: checks whether the machine lacks CPU time, and finds connections that are slower for it."""

import os
from collections.abc import Iterator, Mapping, Sequence

from thalweg import engine
from thalweg.cli.printing import output
from thalweg.engine_output import Live, LiveConnection, LiveMachine, LiveMissed, LiveNamespace
from thalweg.errors import Exit

SECONDS = 5
"""Default duration of the measurement."""

SHOWN = 20

NAMED = 8

STATES: Mapping[str, str] = {
    "short-of-cpu": "short of CPU",
    "cured": "ok: bbr_cpu",
    "held-back": "ok: little to send",
    "not-bbr": "ok: not BBR",
    "fine": "ok",
}


def monitor(seconds: int, *, as_json: bool) -> Exit:
    """Monitor the machine for `seconds`, and report the findings; return FAILED if a connection is short of CPU."""
    sample = engine.live(seconds)
    if as_json:
        output.data_json(sample)
    else:
        for line in _lines(sample):
            output.data(line)
    return Exit.FAILED if _short(sample) else Exit.FINE


def _short(sample: Live) -> Sequence[LiveConnection]:
    return [connection for connection in sample["connections"] if connection["verdict"] == "short-of-cpu"]


def _lines(sample: Live) -> Iterator[str]:
    yield from _machine(sample["machine"], sample["lasted_ms"] / 1000)
    connections = sorted(sample["connections"], key=lambda connection: connection["verdict"] != "short-of-cpu")
    if connections:
        yield ""
        headings = ["state", "connection", "cc", "goodput", "BBR's bandwidth", "rtt", "min rtt", "under 1 BDP"]
        own_ids = {namespace["netns"] for namespace in sample["namespaces"] if namespace["own"]}
        rows = [
            [
                *_row(connection),
                "own" if connection["netns"] in own_ids else _namespace(connection["netns_name"], connection["netns"]),
            ]
            for connection in connections[:SHOWN]
        ]
        yield from output.table([*headings, "network namespace"], rows, numbers=range(3, 8)).splitlines()
    if len(connections) > SHOWN:
        yield f"... and {len(connections) - SHOWN} more (--json shows all)"
    yield ""
    yield from _namespaces(sample["namespaces"], sample["missed"])
    yield from _conclusion(sample)


def _machine(machine: LiveMachine, lasted_s: float) -> Iterator[str]:
    cpus = machine["cpus"]
    longest_ms = machine["longest_stall_us"] / 1000
    stalled = f"{machine['stalled_percent']:.1f} % of the time, at most {longest_ms:.1f} ms at once"
    yield f"monitored {cpus} CPU{'s' if cpus > 1 else ''} for {lasted_s:.1f} s"
    yield f"  steal time that the hypervisor reports  {_percent(machine['steal_percent'], missing='not reported')}"
    yield f"  runnable, but not run                   {stalled}"
    yield f"  tasks that waited for other tasks       {_percent(machine['pressure_percent'], missing='unknown')}"
    if not machine["is_realtime"]:
        yield "  (without root, 'runnable, but not run' may include waiting for other tasks, so it is not counted)"


def _row(connection: LiveConnection) -> list[str]:
    return [
        STATES.get(connection["verdict"], connection["verdict"]),
        f"{connection['local']} > {connection['remote']}",
        connection["algorithm"],
        _rate(connection["goodput_bps"]),
        _rate(connection["bw_bps"]),
        _milliseconds(connection["srtt_us"]),
        _milliseconds(connection["min_rtt_us"]),
        _percent(connection["short_percent"], missing="-"),
    ]


def _namespace(name: str | None, netns: int) -> str:
    return name or str(netns)


def _namespaces(sampled: Sequence[LiveNamespace], missed: LiveMissed) -> Iterator[str]:
    others = sorted(
        (namespace for namespace in sampled if not namespace["own"]), key=lambda namespace: -namespace["established"]
    )
    labels = [
        f"{_namespace(namespace['name'], namespace['netns'])} ({namespace['established']} established)"
        for namespace in others
    ]
    suffix = f" and {_count(len(others), 'other', 'others')}: {_first_names(labels)}" if others else ""
    yield f"connections of this network namespace{suffix}"
    unseen = missed["namespaces"]
    if unseen:
        count = _count(len(unseen), "network namespace", "network namespaces")
        yield f"  not checked: {count} that cannot be entered: {_first_names(unseen)}"
    if missed["hidden_processes"]:
        hidden = _count(missed["hidden_processes"], "process", "processes")
        yield f"  not checked: the network namespace of {hidden} that this user may not inspect"
    if (unseen or missed["hidden_processes"]) and os.geteuid() != 0:
        yield "  do: sudo thalweg doctor --live"


def _count(number: int, singular: str, plural: str) -> str:
    return f"{number} {singular if number == 1 else plural}"


def _first_names(names: Sequence[str]) -> str:
    suffix = f" and {len(names) - NAMED} more (--json shows all)" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + suffix


def _conclusion(sample: Live) -> Iterator[str]:
    short = len(_short(sample))
    if not short:
        established = sample["established"]
        yield f"no BBR connection is short of CPU ({established} established, {len(sample['connections'])} sending)"
        return
    subject = "connections are" if short > 1 else "connection is"
    yield f"{short} BBR {subject} short of CPU: BBR does not compensate for the data that it could not send while this"
    yield "machine was off CPU; bbr_cpu does. Open connections keep their algorithm; new ones use the new default."
    yield "  do: sudo thalweg-agent cc load bbr_cpu"
    yield "  do: sudo sysctl net.ipv4.tcp_congestion_control=bbr_cpu"
    yield "  or give this machine more CPU"


def _rate(bps: float | None) -> str:
    return "-" if bps is None else f"{bps / 1e6:.1f} Mbit/s"


def _milliseconds(us: int | None) -> str:
    return "-" if us is None else f"{us / 1000:.1f} ms"


def _percent(percent: float | None, *, missing: str) -> str:
    return missing if percent is None else f"{percent:.1f} %"
