"""Slowdown of short connections by recording, on a machine with an idle CPU, and on a fully busy one.

A connection of nginx with TLS is the first one of a visitor of a web server: a handshake with its signature, a page
from a file, a line in the log. A returning visitor presents a ticket, and no signature is made. A connection without
TLS has no handshake. A connection of the bare server is one read and one write, the worst case for a recorder.

On each busy CPU a client sends requests to two servers, alternating every few milliseconds. One of the two is in the
recorded cgroup. Nothing starts or stops meanwhile, and other load of the machine affects both: comparing minutes with a
recorder to minutes without one would take hours on a virtual machine, whose neighbours vary. All three stay on their
CPU: whether two processes share one makes more of a difference than that.

With a CPU to spare the measure is the clock: by how much longer connections last, and so how many fewer a client has
answered one after the other. The recorder's process is on the other CPU then, as it is on a server that is not full.

With all CPUs busy the measure is CPU time, that of both ends, of all that the kernel does for them, and of the
recorder's process: on a machine that has nothing to spare, connections per second are CPU seconds per second divided by
what each takes. What the programs in the kernel cost is the difference between the two servers' connections. What the
process costs is its own CPU time, its files merged and written included, however long after the connections that comes.

A hypervisor that runs other guests may not report the stolen time, which then counts as CPU time of the running
process. Groups of four turns (recorded, not, not, recorded) in which one turn takes more than twice the usual time are
left out and counted: a recorder does not delay a process by milliseconds.

Not in it: what the kernel does before it finds that no program wants to hear of a connection (some tens of ns for each
of four calls), and what the process's work displaces from the caches of others, which hits both servers alike.
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
"""Connections in a turn, and the order of turns: as in connections.c."""
ORDER = (0, 1, 1, 0)
PAUSE = 2.0
"""A turn that takes more than this multiple of the median was interrupted."""
MERGES = ("--rotate-size", "8MB")
"""Files are merged several times in the time that is measured."""


KINDS = {
    "nginx-tls": ("nginx-tls", ("tls",)),
    "nginx-tls-again": ("nginx-tls", ("tls-again",)),
    "nginx": ("nginx", ()),
    "bare": ("bare", ()),
}
"""Request types: a server, and the last arguments for connections.c."""


@dataclass(frozen=True)
class Load:
    """The servers under load, and the amount of load."""

    name: str
    kind: str
    """One of `KINDS`."""
    spare: bool
    """Whether the machine has an idle CPU: then the clock counts."""

    def cpus(self) -> list[int]:
        """Return the busy CPUs."""
        return sorted(os.sched_getaffinity(0))[self.spare :]


LOADS = tuple(
    Load(f"slowdown_{kind}_{'spare' if spare else 'busy'}", kind, spare) for kind in KINDS for spare in (True, False)
)


@dataclass(frozen=True)
class Side:
    """One of the servers, with its clients."""

    answered: int
    clients_ns: int
    servers_ns: int
    clock_ns: int
    """Waiting time of the clients, by the clock."""

    def cpu_us(self) -> float:
        """Return the CPU time of a connection, of both ends."""
        return (self.clients_ns + self.servers_ns) / self.answered / 1e3


@dataclass(frozen=True)
class Window:
    """Measurements of some seconds."""

    recorded: Side
    other: Side
    left_out: float
    """Share of excluded turns."""
    connections: int
    """Recorded connections, including those in excluded turns."""
    process_ns: int
    """CPU time of the recorder's process for them."""
    idle: float
    """Share of the time in which a CPU had nothing to do."""
    stolen: float
    """Share of time stolen by the hypervisor."""

    def process_us(self) -> float:
        """Return the process's CPU time per connection."""
        return self.process_ns / self.connections / 1e3

    def slowdown(self) -> float:
        """Return the part of the connections a second that is lost."""
        return 1 - self.other.cpu_us() / (self.recorded.cpu_us() + self.process_us())

    def in_kernel(self) -> float:
        """Return the part of the slowdown that is spent in the kernel."""
        return 1 - self.other.cpu_us() / self.recorded.cpu_us()

    def by_the_clock(self) -> float:
        """Return the additional duration of a connection for its client."""
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
    """Load two servers of a kind in turns, while a recorder runs."""
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
        agent = Agent(machine, *MERGES)
        # Rows pending at the end of a window belong to the next one, as at the end of the last one.
        for number in range(windows + 1):
            if number:
                print(f"bench: recording, window {number} of {windows}", file=sys.stderr)
            measured = window(places, agent)
            windows_ += [measured] if number else []
        agent.end()
    return windows_


def window(places: list[list[str]], agent: Agent) -> Window:
    """Measure for some seconds, while these commands make connections."""
    before = Clocks(agent)
    clients = [subprocess.Popen(place, stdout=subprocess.PIPE, text=True) for place in places]
    outputs = [client.communicate()[0] for client in clients]
    if any(client.returncode for client in clients):
        raise SystemExit("bench: connections could not be made")
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
    """CPU time used so far."""

    def __init__(self, agent: Agent) -> None:
        self.process_ns = cpu_ns(agent.process.pid)
        # proc_stat(5): user, nice, system, idle, iowait, irq, softirq, steal.
        ticks = [int(word) for word in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
        idle, stolen = ticks[3] + ticks[4], ticks[7]
        self.machine = {"idle": idle, "stolen": stolen, "busy": sum(ticks) - idle - stolen}


def cpu_ns(pid: int) -> int:
    """Return the CPU time of a process: its clock has the number that clock_getcpuclockid(3) makes of it."""
    return time.clock_gettime_ns(~pid << 3 | 2)


def report(windows: list[Window], load: Load, window_s: float) -> dict[str, Any]:
    """Print the losses, and return them."""
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
    print(f"  {load.kind}, {'a CPU to spare' if load.spare else 'all CPUs busy'}: {per_s:.0f} connections a second")
    if load.spare:
        print(f"    slowdown  connections last {percent(longer)} longer, at most {percent(longer_at_most)}")
    else:
        print(f"    slowdown  {percent(lost)} of the connections a second, at most {percent(at_most)}")
        print(f"              {percent(in_kernel)} in the kernel, at most {percent(in_kernel_at_most)}")
    print(f"    a connection takes {cpu_us:.0f} us of CPU for both ends, of the process {process_us:.2f} us")
    print(f"    95 %, {len(windows)} windows of {window_s:.0f} s; CPUs idle {percent(idle)}, stolen {percent(stolen)}")
    print(f"    {percent(left_out)} of the turns were interrupted, and are left out")
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
