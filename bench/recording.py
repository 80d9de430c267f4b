#!/usr/bin/env python3
"""Measure what `thalweg-agent record` costs: thousands of short connections a second, and very many that are open.

    make bench                                         with the simulator's: some minutes, as root
    .venv/bin/python bench/recording.py --quick        a smoke test
    ... --only kernel                                  half a minute: what the program in the kernel costs
    ... --only memory                                  half a minute: 100,000 open connections
    ... --only slowdown --pairs 12                     two minutes
    ... --json FILE                                    everything that was measured, for programs

Connections run between two network namespaces over veth, one after the other, as fast as this machine can: 200 bytes
ask, 4 kB answer, the server closes. The server's end is recorded: the other one is another machine's. With and without
the recorder take turns, so that what else the machine does hits both.

What the kernel says that a program costs holds the reading of two clocks at each call. So a program that does nothing
is called beside the recorder, for the same: the difference is what is net. That program comes second, and finds in the
caches what the first has brought there.
"""

import argparse
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import scipy.stats

PAIRS = 12
WINDOW_S = 5.0
OPEN = 100_000
"""Connections that are open at once."""
PER_PROCESS = 15_000
"""Connections that a process holds: a usual limit is 20,000 files."""
PORT = 8080
WINDOWS = 5
"""How often the kernel's account is read: the median counts."""
CLANGS = ("clang", "clang-19", "clang-18", "clang-17", "clang-16")
PARTS = ("slowdown", "kernel", "memory")
AGENT = Path(os.environ.get("THALWEG_AGENT", str(Path(sys.executable).with_name("thalweg-agent"))))
STATS = Path("/proc/sys/kernel/bpf_stats_enabled")


@dataclass(frozen=True)
class Pairs:
    """Connections per second without and with the recorder, in turns."""

    without_per_s: list[float]
    with_per_s: list[float]

    def slowdown(self) -> tuple[float, float]:
        """The mean of the pairs' slowdowns, and the upper end of its 95 % confidence interval (Student's t)."""
        slowdowns = [1 - on / off for off, on in zip(self.without_per_s, self.with_per_s, strict=True)]
        mean = statistics.fmean(slowdowns)
        if len(slowdowns) < 2:
            return mean, math.inf
        error = statistics.stdev(slowdowns) / math.sqrt(len(slowdowns))
        return mean, mean + float(scipy.stats.t.ppf(0.975, len(slowdowns) - 1)) * error


class Machine:
    """Two network namespaces with a cable between, and the program that makes connections."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder = folder
        self.cgroup = stack.enter_context(cgroup())
        self.program = folder / "connections"
        source = Path(__file__).parent / "agent" / "connections.c"
        subprocess.run(["cc", "-O2", "-Wall", "-o", self.program, source], check=True)
        self.server, self.client = (stack.enter_context(namespace()) for _ in range(2))
        here, there = str(self.server), str(self.client)
        run("ip", "link", "add", "cable", "netns", here, "type", "veth", "peer", "cable", "netns", there)
        for place, end in ((self.server, 1), (self.client, 2)):
            # Addresses enough for more connections than there are ports.
            for more in range(8):
                self.inside(place, "ip", "addr", "add", f"10.9.{more}.{end}/24", "dev", "cable")
            self.inside(place, "ip", "link", "set", "cable", "up")
            self.inside(place, "sysctl", "-qw", "net.ipv4.ip_local_port_range=1024 65535")

    def command(self, place: int, *words: object) -> list[str]:
        """Return a command that runs in a namespace."""
        return ["nsenter", "--target", str(place), "--net", *map(str, words)]

    def inside(self, place: int, *words: object) -> str:
        """Run a command in a namespace, and return what it says."""
        return run(*self.command(place, *words))

    @contextmanager
    def serving(self, how: str, address: str = "10.9.0.1") -> Iterator[None]:
        """Have a server that answers (`serve`), or keeps connections open (`keep`), in the cgroup that is recorded."""
        enter = ["sh", "-c", f'echo $$ > {self.cgroup}/cgroup.procs && exec "$@"', "sh"]
        line = enter + self.command(self.server, self.program, how, address, PORT)
        with ended(subprocess.Popen(line, stdin=subprocess.DEVNULL)):
            while ":8080" not in self.inside(self.server, "ss", "-Hltn", "src", address):
                time.sleep(0.01)
            yield

    def rate(self, seconds: float) -> float:
        """Make connections for so long, and return how many a second."""
        return float(self.inside(self.client, self.program, "ask", "10.9.0.1", PORT, seconds)) / seconds


class Agent:
    """A recorder at work."""

    def __init__(self, folder: Path, flush_s: float, cgroup: Path | None) -> None:
        self.at = ["--socket", str(folder / "agent.sock")]
        line = [str(AGENT), "record", "--out", str(folder / "records"), "--listen", "127.0.0.1:0", *self.at]
        line += ["--flush", f"{max(flush_s, 1.0):.0f}s", *(["--cgroup", str(cgroup)] if cgroup else [])]
        self.process = subprocess.Popen(line, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        if not self.process.stdout.readline().startswith("recording"):
            raise SystemExit("bench: the recorder does not start")

    def status(self) -> dict[str, Any]:
        """Return what it says of itself."""
        return dict(json.loads(run(str(AGENT), "status", "--json", *self.at)))

    def end(self) -> None:
        """End it as an administrator does."""
        self.process.terminate()
        self.process.communicate()
        if self.process.returncode != 0:
            raise SystemExit(f"bench: the recorder ended with {self.process.returncode}")


def run(*words: str) -> str:
    """Run a command to its end, and return what it says."""
    return subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout


@contextmanager
def ended(process: "subprocess.Popen[Any]") -> Iterator["subprocess.Popen[Any]"]:
    """End a process when it is no longer needed."""
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@contextmanager
def namespace() -> Iterator[int]:
    """Have a network namespace, by the process that keeps it."""
    with ended(subprocess.Popen(["unshare", "--net", "cat"], stdin=subprocess.PIPE)) as keeper:
        ours, theirs = Path("/proc/self/ns/net"), Path(f"/proc/{keeper.pid}/ns/net")
        while theirs.readlink() == ours.readlink():
            time.sleep(0.01)
        yield keeper.pid


@contextmanager
def cgroup() -> Iterator[Path]:
    """Have a cgroup of version 2."""
    mounts = (line.split() for line in Path("/proc/self/mounts").read_text().splitlines())
    path = next(Path(words[1]) for words in mounts if words[2] == "cgroup2") / f"thalweg-bench-{os.getpid()}"
    path.mkdir()
    try:
        yield path
    finally:
        while (path / "cgroup.procs").read_text():
            time.sleep(0.01)
        path.rmdir()


@contextmanager
def accounts() -> Iterator[None]:
    """Have the kernel keep account of what eBPF programs cost."""
    kept = STATS.read_text()
    STATS.write_text("1")
    try:
        yield
    finally:
        STATS.write_text(kept)


def compare(machine: Machine, pairs: int, window_s: float) -> Pairs:
    """Make short connections with and without the recorder, in turns."""
    found = Pairs([], [])
    with machine.serving("serve"):
        machine.rate(min(window_s, 1.0))
        for pair in range(pairs):
            print(f"bench: recording, pair {pair + 1} of {pairs}", file=sys.stderr)
            # Whoever comes first has no advantage on average.
            for is_on in (pair % 2 == 0, pair % 2 == 1):
                if not is_on:
                    found.without_per_s.append(machine.rate(window_s))
                    continue
                agent = Agent(machine.folder, window_s, machine.cgroup)
                found.with_per_s.append(machine.rate(window_s))
                agent.end()
    return found


@dataclass(frozen=True)
class Account:
    """What a program has cost so far."""

    runs: int
    run_ns: int


@contextmanager
def nothing(machine: Machine) -> Iterator[Callable[[], Account] | None]:
    """Have a program called that does nothing, behind the recorder; None where nothing compiles or loads it."""
    clang = next(filter(None, map(shutil.which, CLANGS)), None)
    if clang is None or shutil.which("bpftool") is None:
        yield None
        return
    source, built = Path(__file__).parent / "agent" / "nothing.bpf.c", machine.folder / "nothing.bpf.o"
    run(clang, "-O2", "-target", "bpf", "-c", str(source), "-o", str(built))
    pins = machine.folder / "pins"
    pin = str(pins / "nothing")
    pins.mkdir(exist_ok=True)
    run("mount", "-t", "bpf", "bpf", str(pins))
    try:
        run("bpftool", "prog", "load", str(built), pin)
        run("bpftool", "cgroup", "attach", str(machine.cgroup), "sock_ops", "pinned", pin, "multi")
        try:
            yield lambda: account_of(pin)
        finally:
            run("bpftool", "cgroup", "detach", str(machine.cgroup), "sock_ops", "pinned", pin)
    finally:
        run("umount", str(pins))


def account_of(pin: str) -> Account:
    """Return what the kernel says that a pinned program has cost."""
    shown = json.loads(run("bpftool", "--json", "prog", "show", "pinned", pin))
    return Account(shown.get("run_cnt", 0), shown.get("run_time_ns", 0))


@dataclass(frozen=True)
class Price:
    """What the program in the kernel costs, by the kernel's own account, and what the process does."""

    calls_per_connection: float
    ns_per_call: float
    measuring_ns_per_call: float | None
    """What a program costs by that account that does nothing."""
    lost_events: int
    cpu_us_per_connection: float

    def net_ns_per_call(self) -> float | None:
        """Return what is left without the measuring."""
        return None if self.measuring_ns_per_call is None else self.ns_per_call - self.measuring_ns_per_call

    def show(self) -> None:
        """Print it."""
        calls, call, net = self.calls_per_connection, self.ns_per_call, self.net_ns_per_call()
        print(f"  kernel    {call:.0f} ns a call, {call * calls:.0f} ns for each connection of {calls:.1f} calls")
        if net is not None:
            print(
                f"  net       {net:.0f} ns a call, {net * calls:.0f} ns for each connection: the rest is the measuring"
            )
        print(f"  process   {self.cpu_us_per_connection:.1f} us of CPU for each connection")
        print(f"  lost      {self.lost_events} events")


def price(machine: Machine, window_s: float, windows: int) -> Price:
    """Measure it: medians of some windows of time."""
    gross: list[float] = []
    own: list[float] = []
    calls: list[float] = []
    with accounts(), machine.serving("serve"):
        agent = Agent(machine.folder, window_s, machine.cgroup)
        with nothing(machine) as account:
            machine.rate(min(window_s, 1.0))
            first = before = agent.status()
            for _ in range(windows):
                idle = account() if account else None
                machine.rate(window_s)
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


def memory(machine: Machine, count: int) -> dict[str, float]:
    """Open very many connections, and return what the recorder then takes."""
    agent = Agent(machine.folder, 10.0, machine.cgroup)
    before = agent.status()["usage"]
    with ExitStack() as stack:
        rest = count
        for number in range(math.ceil(count / PER_PROCESS)):
            address = f"10.9.{number}.1"
            stack.enter_context(machine.serving("keep", address))
            here, rest = min(rest, PER_PROCESS), rest - min(rest, PER_PROCESS)
            line = machine.command(machine.client, machine.program, "hold", address, PORT, here)
            process = subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            holder = stack.enter_context(ended(process))
            assert holder.stdout is not None
            if holder.stdout.readline() != "open\n":
                raise SystemExit("bench: connections could not be opened")
        status = agent.status()
    agent.end()
    usage = status["usage"]
    return {
        "open": status["connections_open"],
        "process_bytes": usage["process_bytes"],
        "maps_bytes": usage["maps_bytes"],
        "process_bytes_before": before["process_bytes"],
    }


def show_memory(held: dict[str, float]) -> None:
    """Print what is taken."""
    process = held["process_bytes"]
    total = (process + held["maps_bytes"]) / 1e6
    print(
        f"  memory    {total:.1f} MB with {held['open']:.0f} connections open, {process / 1e6:.1f} of them the process"
    )


def main() -> None:
    """Measure what the arguments ask for."""
    parser = argparse.ArgumentParser(description="Measure what `thalweg-agent record` costs a server.")
    parser.add_argument("--quick", action="store_true", help="one pair of a second: does it work?")
    parser.add_argument("--only", choices=PARTS, help="measure this alone")
    parser.add_argument("--pairs", type=int, default=PAIRS, help=f"how often both take turns (default: {PAIRS})")
    parser.add_argument("--open", type=int, default=OPEN, help=f"connections for the memory (default: {OPEN})")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything that was measured")
    chosen = parser.parse_args()
    why_not = None if os.geteuid() == 0 else "root alone may record"
    why_not = why_not or (None if AGENT.exists() else "there is no thalweg-agent: make agent")
    if why_not:
        print(f"bench: recording is left out: {why_not}", file=sys.stderr)
        return
    window_s, pairs = (1.0, 1) if chosen.quick else (WINDOW_S, chosen.pairs)
    parts = [chosen.only] if chosen.only else PARTS
    found: dict[str, Any] = {}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="thalweg-bench-")))
        machine = Machine(folder, stack)
        print("recording:")
        if "slowdown" in parts:
            compared = compare(machine, pairs, window_s)
            mean, upper = compared.slowdown()
            found |= {"pairs": asdict(compared), "slowdown": mean, "slowdown_at_most": upper}
            rate = statistics.median(compared.with_per_s)
            print(
                f"  slowdown  {100 * mean:.2f} %, at most {100 * upper:.2f} % (95 %, {pairs} pairs of {window_s:.0f} s)"
            )
            print(f"            of {rate:.0f} short connections a second")
        if "kernel" in parts:
            cost = price(machine, window_s, 1 if chosen.quick else WINDOWS)
            found["cost"] = asdict(cost) | {"net_ns_per_call": cost.net_ns_per_call()}
            cost.show()
        if "memory" in parts:
            found["memory"] = memory(machine, 200 if chosen.quick else chosen.open)
            show_memory(found["memory"])
    if chosen.json:
        chosen.json.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
