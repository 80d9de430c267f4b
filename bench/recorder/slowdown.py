"""Slowdown of short connections by recording, on a machine with an idle CPU, and on a fully busy one.

A connection of nginx with TLS is a visitor's first one: a handshake with a signature, a page from a file, a line in the
log. A returning visitor presents a session ticket, and the server needs no signature. A connection without TLS has no
handshake. A connection of the bare server is one read and one write, the worst case for a recorder.

On each busy CPU a client sends requests to two servers, alternating every few milliseconds. One of the two is in the
recorded cgroup. Other load of the machine affects both equally; comparing minutes with and without a recorder would
take hours on a virtual machine with varying load. The client and both servers are pinned to their CPU, because sharing
a CPU has a larger effect than the recorder.

With an idle CPU, the measure is wall-clock time: the relative increase of a connection's duration. The recorder's
process can then run on the idle CPU, as on a server with spare capacity.

With all CPUs busy, the measure is CPU time: of both ends, of the kernel's work for them, and of the recorder's process.
On a saturated machine, connections per second are the available CPU time divided by the CPU time per connection. The
cost of the eBPF programs is the difference between the two servers' connections. The cost of the process is its own CPU
time, including the merging and writing of files after the connections.

A hypervisor that runs other guests may not report the stolen time, which then counts as CPU time of the running
process. Groups of four batches (recorded, not, not, recorded) in which one batch takes at least twice the median CPU
time are excluded and counted, because a recorder does not delay a process by milliseconds.

Limitations: the measurement does not include the kernel's check whether a program is attached to a connection, nor
cache misses that the recorder's process causes for both servers.
"""

import math
import os
import statistics
import subprocess
import sys
import time
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import scipy.stats

from .machine import PORT, Agent, Machine

WINDOWS = 40
WINDOW_S = 2.0
TURN = 32
"""Number of connections in a batch, and the order of batches, as in connections.c."""
ORDER = (0, 1, 1, 0)
PAUSE = 2.0
"""Multiple of the median CPU time from which on a batch counts as interrupted."""
MERGES = ("--rotate-size", "8MB")
"""Agent options with which files are merged several times during the measurement."""


KINDS = {
    "nginx-tls": ("nginx-tls", ("tls",)),
    "nginx-tls-again": ("nginx-tls", ("tls-again",)),
    "nginx": ("nginx", ()),
    "bare": ("bare", ()),
}
"""Request types: a server, and the last arguments of connections.c."""


@dataclass(frozen=True)
class Load:
    """The load: the request type, and the number of busy CPUs."""

    name: str
    kind: str
    """One of `KINDS`."""
    spare: bool
    """Whether the machine has an idle CPU, so that wall-clock time is measured."""
    options: tuple[str, ...] = ()
    """Further options of the agent."""

    def cpus(self) -> list[int]:
        """Return the busy CPUs."""
        return sorted(os.sched_getaffinity(0))[self.spare :]


LOADS = (
    *(
        Load(f"slowdown_{kind}_{'spare' if spare else 'busy'}", kind, spare)
        for kind in KINDS
        for spare in (True, False)
    ),
    Load("slowdown_nginx_busy_low", "nginx", spare=False, options=("--detail", "low")),
)
GOALS = {"slowdown_nginx_busy": 0.04, "slowdown_nginx_busy_low": 0.03}
"""Largest share of connections per second that recording may cost."""


@dataclass(frozen=True)
class Side:
    """All recorded servers or all others, with their clients."""

    answered: int
    clients_ns: int
    servers_ns: int
    clock_ns: int
    """Total waiting time of the clients."""

    def cpu_us(self) -> float:
        """Return the CPU time per connection, of both ends."""
        return (self.clients_ns + self.servers_ns) / self.answered / 1e3


@dataclass(frozen=True)
class Window:
    """Measurements of one window of time."""

    recorded: Side
    other: Side
    left_out: float
    """Fraction of excluded batches."""
    connections: int
    """Number of recorded connections, including those in excluded batches."""
    process_ns: int
    """CPU time of the recorder's process."""
    idle: float
    """Idle fraction of the CPU time of all CPUs."""
    stolen: float
    """Fraction of the CPU time of all CPUs that the hypervisor has stolen."""

    def process_us(self) -> float:
        """Return the process's CPU time per connection."""
        return self.process_ns / self.connections / 1e3

    def slowdown(self) -> float:
        """Return the relative decrease of connections per second."""
        return 1 - self.other.cpu_us() / (self.recorded.cpu_us() + self.process_us())

    def in_kernel(self) -> float:
        """Return the part of the slowdown that is due to eBPF programs."""
        return 1 - self.other.cpu_us() / self.recorded.cpu_us()

    def by_the_clock(self) -> float:
        """Return the relative increase of a connection's duration for its client."""
        waited = [side.clock_ns / side.answered for side in (self.recorded, self.other)]
        return waited[0] / waited[1] - 1


def bound(values: list[float]) -> tuple[float, float]:
    """Return the mean, and the upper end of its 95 % confidence interval (Student's t)."""
    mean = statistics.fmean(values)
    if len(values) < 2:
        return mean, math.inf
    error = statistics.stdev(values) / math.sqrt(len(values))
    return mean, mean + float(scipy.stats.t.ppf(0.975, len(values) - 1)) * error


def measure(machine: Machine, load: Load, windows: int, window_s: float) -> list[Window]:
    """Load the recorded and the unrecorded server alternately while a recorder runs."""
    windows_ = []
    server, how = KINDS[load.kind]
    with ExitStack() as stack:
        places = []
        for number, cpu in enumerate(load.cpus()):
            port, pids = PORT + 2 * number, []
            for side, cgroup in enumerate((machine.recorded, machine.other)):
                pids.append(stack.enter_context(machine.serving(server, port=port + side, cgroup=cgroup)))
                os.sched_setaffinity(pids[side], {cpu})
            ask = machine.command(machine.client, machine.program, "turns", "10.9.0.1", port, window_s, *pids, *how)
            places.append(["taskset", "--cpu-list", str(cpu), *ask])
        agent = Agent(machine, *MERGES, *load.options)
        # The first window is discarded: rows that are pending at the end of a window count in the next one, so every
        # measured window begins and ends with pending rows.
        for number in range(windows + 1):
            if number:
                print(f"bench: recording, window {number} of {windows}", file=sys.stderr)
            measured = window(places, agent)
            windows_ += [measured] if number else []
        agent.end()
    return windows_


def window(places: list[list[str]], agent: Agent) -> Window:
    """Measure for some seconds while these commands make connections."""
    before = Clocks(agent)
    clients = [subprocess.Popen(place, stdout=subprocess.PIPE, text=True) for place in places]
    outputs = [client.communicate()[0] for client in clients]
    if any(client.returncode for client in clients):
        raise SystemExit("bench: connections could not be opened")
    after = Clocks(agent)
    turns = [[int(word) for word in line.split()] for text in outputs for line in text.splitlines()]
    rounds = [turns[start : start + len(ORDER)] for start in range(0, len(turns), len(ORDER))]
    usual = statistics.median(client_ns + server_ns for client_ns, server_ns, _ in turns)
    kept = [one for one in rounds if all(client_ns + server_ns < PAUSE * usual for client_ns, server_ns, _ in one)]
    both = []
    for side in range(2):
        own = [turn for one in kept for turn, which in zip(one, ORDER, strict=True) if which == side]
        clients_ns, servers_ns, clock_ns = (sum(column) for column in zip(*own, strict=True))
        both.append(Side(TURN * len(own), clients_ns, servers_ns, clock_ns))
    passed = {name: after.machine[name] - before.machine[name] for name in after.machine}
    total = sum(passed.values())
    return Window(
        recorded=both[0],
        other=both[1],
        left_out=1 - len(kept) / len(rounds),
        connections=TURN * ORDER.count(0) * len(rounds),
        process_ns=after.process_ns - before.process_ns,
        idle=passed["idle"] / total,
        stolen=passed["stolen"] / total,
    )


class Clocks:
    """CPU time used until now."""

    def __init__(self, agent: Agent) -> None:
        self.process_ns = cpu_ns(agent.process.pid)
        # proc_stat(5): user, nice, system, idle, iowait, irq, softirq, steal.
        ticks = [int(word) for word in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
        idle, stolen = ticks[3] + ticks[4], ticks[7]
        self.machine = {"idle": idle, "stolen": stolen, "busy": sum(ticks) - idle - stolen}


def cpu_ns(pid: int) -> int:
    """Return the CPU time of a process, from its CPU clock; clock_getcpuclockid(3) computes the clock's number."""
    return time.clock_gettime_ns(~pid << 3 | 2)


def report(windows: list[Window], load: Load, window_s: float) -> dict[str, Any]:
    """Print the slowdown and return it."""
    lost, at_most = bound([window.slowdown() for window in windows])
    in_kernel, in_kernel_at_most = bound([window.in_kernel() for window in windows])
    longer, longer_at_most = bound([window.by_the_clock() for window in windows])
    recorded = sum(window.connections for window in windows)
    process_us = sum(window.process_ns for window in windows) / recorded / 1e3
    cpu_us = statistics.median(window.other.cpu_us() for window in windows)
    per_s = statistics.median(2 * window.connections for window in windows) / window_s
    left_out = statistics.fmean(window.left_out for window in windows)
    idle = statistics.fmean(window.idle for window in windows)
    stolen = statistics.fmean(window.stolen for window in windows)
    how = " ".join(("a CPU to spare" if load.spare else "all CPUs busy", *load.options))
    print(f"  {load.kind}, {how}: {per_s:.0f} connections per second")
    if load.spare:
        print(f"    slowdown  connections last {percent(longer)} longer, at most {percent(longer_at_most)}")
    else:
        print(f"    slowdown  {percent(lost)} of the connections per second, at most {percent(at_most)}")
        print(f"              {percent(in_kernel)} in the kernel, at most {percent(in_kernel_at_most)}")
    if load.name in GOALS:
        print(f"    goal      {percent(GOALS[load.name])}")
    print(f"    a connection takes {cpu_us:.0f} us of CPU at both ends, and {process_us:.2f} us in the recorder")
    print(f"    95 %, {len(windows)} windows of {window_s:.0f} s; CPUs idle {percent(idle)}, stolen {percent(stolen)}")
    print(f"    {percent(left_out)} of the measurements were interrupted, and are left out")
    return {
        "slowdown": longer if load.spare else lost,
        "slowdown_at_most": longer_at_most if load.spare else at_most,
        "in_kernel": in_kernel,
        "in_kernel_at_most": in_kernel_at_most,
        "process_us_per_connection": process_us,
        "cpu_us_per_connection": cpu_us,
        "connections_per_s": per_s,
        "windows": [asdict(window) for window in windows],
    }


def percent(share: float) -> str:
    """Return a share as a percentage."""
    return f"{100 * share:.2f} %"
