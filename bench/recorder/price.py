"""What the program in the kernel costs, by the kernel's own account, and what the process does.

The kernel's account holds the reading of two clocks at each call. So a program that does nothing is called beside the
recorder, for the same: the difference is what is net. That program comes second, and finds in the caches what the first
has brought there.
"""

import json
import shutil
import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from .machine import SOURCES, Agent, Machine, run

WINDOWS = 5
"""How often the kernel's account is read: the median counts."""
WINDOW_S = 5.0
CLANGS = ("clang", "clang-19", "clang-18", "clang-17", "clang-16")
STATS = Path("/proc/sys/kernel/bpf_stats_enabled")


@dataclass(frozen=True)
class Account:
    """What a program has cost so far."""

    runs: int
    run_ns: int


@dataclass(frozen=True)
class Price:
    """What is measured."""

    calls_per_connection: float
    ns_per_call: float
    measuring_ns_per_call: float | None
    """What a program costs by that account that does nothing."""
    lost_events: int
    cpu_us_per_connection: float

    def net_ns_per_call(self) -> float | None:
        """Return what is left without the measuring."""
        return None if self.measuring_ns_per_call is None else self.ns_per_call - self.measuring_ns_per_call

    def report(self) -> dict[str, Any]:
        """Print it, and return it."""
        calls, call, net = self.calls_per_connection, self.ns_per_call, self.net_ns_per_call()
        print(f"  kernel    {call:.0f} ns a call, {call * calls:.0f} ns for each connection of {calls:.1f} calls")
        if net is not None:
            print(
                f"  net       {net:.0f} ns a call, {net * calls:.0f} ns for each connection: the rest is the measuring"
            )
        print(f"  process   {self.cpu_us_per_connection:.1f} us of CPU for each connection")
        print(f"  lost      {self.lost_events} events")
        return asdict(self) | {"net_ns_per_call": net}


def measure(
    machine: Machine, windows: int, window_s: float, command: str = "record", options: Sequence[str] = ()
) -> Price:
    """Measure it: medians of some windows of time."""
    gross: list[float] = []
    own: list[float] = []
    calls: list[float] = []
    with accounts(), machine.serving("serve"):
        agent = Agent(machine, *options, command=command)
        with nothing(machine) as account:
            machine.ask(min(window_s, 1.0))
            first = before = agent.status()
            for _ in range(windows):
                idle = account() if account else None
                machine.ask(window_s)
                after = agent.status()
                runs, run_ns = (recorder(after)[key] - recorder(before)[key] for key in ("runs", "run_ns"))
                gross.append(run_ns / runs)
                calls.append(runs / (after["counters"]["opened"] - before["counters"]["opened"]))
                if account and idle:
                    now = account()
                    own.append((now.run_ns - idle.run_ns) / (now.runs - idle.runs))
                before = after
        agent.end()
    opened = before["counters"]["opened"] - first["counters"]["opened"]
    return Price(
        calls_per_connection=statistics.median(calls),
        ns_per_call=statistics.median(gross),
        measuring_ns_per_call=statistics.median(own) if own else None,
        lost_events=before["counters"]["lost_events"],
        cpu_us_per_connection=(before["usage"]["cpu_us"] - first["usage"]["cpu_us"]) / opened,
    )


def recorder(status: dict[str, Any]) -> dict[str, int]:
    """Return the account of the program that the kernel calls for connections."""
    (program,) = (one for one in status["programs"] if one["name"] == "record_flows")
    return dict(program)


@contextmanager
def accounts() -> Iterator[None]:
    """Have the kernel keep account of what eBPF programs cost."""
    kept = STATS.read_text()
    STATS.write_text("1")
    try:
        yield
    finally:
        STATS.write_text(kept)


@contextmanager
def nothing(machine: Machine) -> Iterator[Callable[[], Account] | None]:
    """Have a program called that does nothing, behind the recorder; None where nothing compiles or loads it."""
    clang = next(filter(None, map(shutil.which, CLANGS)), None)
    if clang is None or shutil.which("bpftool") is None:
        yield None
        return
    source, built = SOURCES / "nothing.bpf.c", machine.folder / "nothing.bpf.o"
    run(clang, "-O2", "-target", "bpf", "-c", str(source), "-o", str(built))
    pins = machine.folder / "pins"
    pin = str(pins / "nothing")
    pins.mkdir(exist_ok=True)
    run("mount", "-t", "bpf", "bpf", str(pins))
    try:
        run("bpftool", "prog", "load", str(built), pin)
        run("bpftool", "cgroup", "attach", str(machine.recorded), "sock_ops", "pinned", pin, "multi")
        try:
            yield lambda: account_of(pin)
        finally:
            run("bpftool", "cgroup", "detach", str(machine.recorded), "sock_ops", "pinned", pin)
    finally:
        run("umount", str(pins))


def account_of(pin: str) -> Account:
    """Return what the kernel says that a pinned program has cost."""
    shown = json.loads(run("bpftool", "--json", "prog", "show", "pinned", pin))
    return Account(shown.get("run_cnt", 0), shown.get("run_time_ns", 0))
