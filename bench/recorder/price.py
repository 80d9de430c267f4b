"""Measures the cost of the eBPF program, by the kernel's own statistics, and of the recorder process.

The kernel's statistics include two clock reads per call. An empty program is therefore called after the recorder for
the same events; the difference is the net cost. The empty program runs second and benefits from warm caches.

The server is pinned to a CPU. The client is either on the same CPU, as if packets were steered to the CPU of the
receiving process (RFS, or one worker per queue of the card), or on another CPU. Over veth, the sender's CPU also
processes the reception of a packet. With two CPUs, the socket and the program's state therefore move between caches
with each packet, and the statistics include these cache misses.
"""

import json
import os
import shutil
import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from .machine import PORT, SOURCES, Agent, Machine, cgroup, run

WINDOWS = 40
"""Number of windows, whose median is reported."""
WINDOW_S = 0.5
"""Length of a window: short, so that varying load of the machine affects all sides equally."""
CLANGS = ("clang", "clang-19", "clang-18", "clang-17", "clang-16")
STATS = Path("/proc/sys/kernel/bpf_stats_enabled")


@dataclass(frozen=True)
class Account:
    """Cumulative cost of a program."""

    runs: int
    run_ns: int


@dataclass(frozen=True)
class Price:
    """Measured costs of an agent."""

    calls_per_connection: float
    ns_per_call: float
    measuring_ns_per_call: float | None
    """Cost of an empty program per call; None if clang or bpftool is missing."""
    ns_per_connection: list[float]
    """Cost of the program per connection, in each window."""
    net_ns_per_connection: list[float] | None
    """Cost per connection without the measurement overhead, in each window."""
    lost_events: int
    cpu_us_per_connection: float

    def net_ns_per_call(self) -> float | None:
        """Return the cost per call without the measurement overhead."""
        return None if self.measuring_ns_per_call is None else self.ns_per_call - self.measuring_ns_per_call

    def quiet_ns(self) -> float | None:
        """Return the net cost per connection, in ns, below which a tenth of the windows are: those with the least
        disturbance. None without an empty program.
        """
        windows = sorted(self.net_ns_per_connection or [])
        return windows[len(windows) // 10] if windows else None

    def report(self) -> dict[str, Any]:
        """Print the costs and return them."""
        calls, call, net = self.calls_per_connection, self.ns_per_call, self.net_ns_per_call()
        print(f"  kernel    {call:.0f} ns per call, {call * calls:.0f} ns for each connection of {calls:.1f} calls")
        if net is not None:
            print(
                f"  net       {net:.0f} ns per call, {net * calls:.0f} ns per connection, without measurement overhead"
            )
            print(f"  quiet     {self.quiet_ns():.0f} ns net for each connection in the best tenth of the windows")
        print(f"  process   {self.cpu_us_per_connection:.1f} us of CPU for each connection")
        print(f"  lost      {self.lost_events} events")
        return asdict(self) | {"net_ns_per_call": net, "quiet_ns_per_connection": self.quiet_ns()}


@dataclass(frozen=True)
class Kind:
    """An agent whose cost is measured."""

    name: str
    command: str = "record"
    options: tuple[str, ...] = ()


@dataclass(frozen=True)
class Place:
    """CPUs of the two ends of connections."""

    name: str
    client: int
    """CPU of the client."""
    server: int


def places() -> list[Place]:
    """Return the placements to measure: on one CPU, and, if there are several, across two of them."""
    first, *others = sorted(os.sched_getaffinity(0))
    last = others[-1] if others else first
    apart = [Place("between two CPUs", first, last)] if others else []
    return [Place("on one CPU", last, last), *apart]


def measure(machine: Machine, place: Place, windows: int, window_s: float) -> Price:
    """Measure the cost of recording: medians of several windows of time."""
    (price,) = side_by_side(machine, [Kind("priced")], place, windows, window_s)
    return price


def side_by_side(machine: Machine, kinds: Sequence[Kind], place: Place, windows: int, window_s: float) -> list[Price]:
    """Measure several agents with separate servers, alternating, so that other load of the machine affects
    all of them.
    """
    with ExitStack() as stack:
        stack.enter_context(accounts())
        sides = [Side(machine, stack, kind, place, PORT + number) for number, kind in enumerate(kinds)]
        for side in sides:
            side.ask(min(window_s, 1.0))
            side.begin()
        for number in range(windows):
            for turn in range(len(sides)):
                sides[(turn + number) % len(sides)].look(window_s)
        return [side.end() for side in sides]


class Side:
    """An agent and its server, which is idle outside its windows."""

    def __init__(self, machine: Machine, stack: ExitStack, kind: Kind, place: Place, port: int) -> None:
        self.machine, self.place, self.port = machine, place, port
        watched = stack.enter_context(cgroup(kind.name))
        server = stack.enter_context(machine.serving("bare", port=port, cgroup=watched))
        os.sched_setaffinity(server, {place.server})
        self.agent = Agent(machine, *kind.options, command=kind.command, cgroup=watched)
        self.account = stack.enter_context(nothing(machine, watched))
        self.gross: list[float] = []
        self.own: list[float] = []
        self.calls: list[float] = []
        self.first = self.before = self.agent.status()

    def begin(self) -> None:
        """Reset the measurement; earlier costs are ignored."""
        self.first = self.before = self.agent.status()

    def ask(self, seconds: float) -> None:
        """Make connections for a number of seconds."""
        self.machine.ask(seconds, self.port, self.place.client)

    def look(self, window_s: float) -> None:
        """Make connections for one window, and record their cost."""
        idle = self.account() if self.account else None
        self.ask(window_s)
        before, after = self.before, self.agent.status()
        runs, run_ns = (recorder(after)[key] - recorder(before)[key] for key in ("runs", "run_ns"))
        self.gross.append(run_ns / runs)
        self.calls.append(runs / (after["counters"]["opened"] - before["counters"]["opened"]))
        if self.account and idle:
            now = self.account()
            self.own.append((now.run_ns - idle.run_ns) / (now.runs - idle.runs))
        self.before = after

    def end(self) -> Price:
        """Stop the agent and return its costs."""
        self.agent.end()
        first, last = self.first, self.before
        opened = last["counters"]["opened"] - first["counters"]["opened"]
        windows = zip(self.gross, self.own, self.calls, strict=True) if self.own else ()
        return Price(
            calls_per_connection=statistics.median(self.calls),
            ns_per_call=statistics.median(self.gross),
            measuring_ns_per_call=statistics.median(self.own) if self.own else None,
            ns_per_connection=[call * calls for call, calls in zip(self.gross, self.calls, strict=True)],
            net_ns_per_connection=[(call - own) * calls for call, own, calls in windows] or None,
            lost_events=last["counters"]["lost_events"],
            cpu_us_per_connection=(last["usage"]["cpu_us"] - first["usage"]["cpu_us"]) / opened,
        )


def recorder(status: dict[str, Any]) -> dict[str, int]:
    """Return the kernel's statistics of the recorder's program for connections."""
    (program,) = (one for one in status["programs"] if one["name"] == "record_flows")
    return dict(program)


@contextmanager
def accounts() -> Iterator[None]:
    """Enable the kernel's eBPF statistics for the duration of the context."""
    kept = STATS.read_text()
    STATS.write_text("1")
    try:
        yield
    finally:
        STATS.write_text(kept)


@contextmanager
def nothing(machine: Machine, watched: Path) -> Iterator[Callable[[], Account] | None]:
    """Attach an empty program after the recorder; yield None if clang or bpftool is missing."""
    clang = next(filter(None, map(shutil.which, CLANGS)), None)
    if clang is None or shutil.which("bpftool") is None:
        yield None
        return
    source, built = SOURCES / "nothing.bpf.c", machine.folder / "nothing.bpf.o"
    run(clang, "-O2", "-target", "bpf", "-c", str(source), "-o", str(built))
    pins = machine.folder / f"{watched.name}-pins"
    pin = str(pins / "nothing")
    pins.mkdir(exist_ok=True)
    run("mount", "-t", "bpf", "bpf", str(pins))
    try:
        run("bpftool", "prog", "load", str(built), pin)
        run("bpftool", "cgroup", "attach", str(watched), "sock_ops", "pinned", pin, "multi")
        try:
            yield lambda: account_of(pin)
        finally:
            run("bpftool", "cgroup", "detach", str(watched), "sock_ops", "pinned", pin)
    finally:
        run("umount", str(pins))


def account_of(pin: str) -> Account:
    """Return the kernel's statistics of a pinned program."""
    shown = json.loads(run("bpftool", "--json", "prog", "show", "pinned", pin))
    return Account(shown.get("run_cnt", 0), shown.get("run_time_ns", 0))
