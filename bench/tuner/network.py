"""A server and a client, a path between them with loss, delay or a small buffer, and programs at both ends.

    server ──cable── middle ──cable── client

The middle is a bridge, or delays packets (bench/agent/delay.c).
"""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import polars as pl
from recorder.machine import AGENT, SOURCES, cgroup, ended, namespace, run

HERE = Path(__file__).resolve().parent
SERVER, CLIENT = "198.51.100.1", "198.51.100.2"
PORT = 8080
DEFAULT = "reno"


@dataclass(frozen=True)
class Road:
    """Impairments of a path; loss, rate and buffer apply to packets from the server."""

    loss: float = 0.0
    """Random loss ratio of the server's packets of more than 1000 bytes."""
    delay_ms: float = 0.0
    """Delay of both directions together."""
    rate_mbps: int = 0
    """Rate limit; 0: unlimited."""
    buffer_bytes: int = 0


@dataclass(frozen=True)
class Fetched:
    """Result of one connection."""

    port: int
    cc: str
    goodput_bps: float


class Network:
    """The two hosts, with reno as default algorithm, and the path."""

    def __init__(self, folder: Path, stack: ExitStack, road: Road) -> None:
        self.folder = folder
        self.tuned = stack.enter_context(cgroup("tuned"))
        self.server, self.middle, self.client = (stack.enter_context(namespace()) for _ in range(3))
        for host, name, address in ((self.server, "first", SERVER), (self.client, "second", CLIENT)):
            ends = ("netns", str(host), "type", "veth", "peer", name, "netns", str(self.middle))
            run("ip", "link", "add", "cable", *ends)
            self.inside(host, "ip", "addr", "add", f"{address}/24", "dev", "cable")
            self.inside(host, "ip", "link", "set", "cable", "up")
            self.inside(self.middle, "ip", "link", "set", name, "up")
            # Offloads are disabled, so that there are single packets with checksums, as on a network.
            offloads = [word for kind in ("gso", "tso", "gro", "tx") for word in (kind, "off")]
            self.inside(host, "ethtool", "-K", "cable", *offloads)
            self.inside(self.middle, "ethtool", "-K", name, *offloads)
            self.inside(host, "sysctl", "-qw", f"net.ipv4.tcp_congestion_control={DEFAULT}")
            # Metrics of earlier connections are not cached, so that connections are independent.
            self.inside(host, "sysctl", "-qw", "net.ipv4.tcp_no_metrics_save=1")
        if road.delay_ms:
            stack.enter_context(self._delayed(road.delay_ms))
        else:
            self.inside(self.middle, "ip", "link", "add", "bridge", "type", "bridge")
            for port in ("first", "second"):
                self.inside(self.middle, "ip", "link", "set", port, "master", "bridge")
            self.inside(self.middle, "ip", "link", "set", "bridge", "up")
        if road.rate_mbps:
            shape = ("tbf", "rate", f"{road.rate_mbps}mbit", "burst", "5kb", "limit", str(road.buffer_bytes))
            self.inside(self.middle, "tc", "qdisc", "add", "dev", "second", "root", *shape)
        self.lose(road.loss)

    def lose(self, share: float) -> None:
        """Set the loss ratio."""
        self.inside(self.client, "nft", "add", "table", "ip", "lossy")
        self.inside(self.client, "nft", "flush", "table", "ip", "lossy")
        self.inside(self.client, "nft", "add", "chain", "ip", "lossy", "in", "{ type filter hook input priority 0 ; }")
        if share:
            rule = f"ip saddr {SERVER} meta length > 1000 numgen random mod 1000 < {round(1000 * share)} drop"
            self.inside(self.client, "nft", "add", "rule", "ip", "lossy", "in", *rule.split())

    @contextmanager
    def _delayed(self, delay_ms: float) -> Iterator[None]:
        built = self.folder / "delay"
        run("cc", "-O2", "-Wall", "-o", str(built), str(SOURCES / "delay.c"))
        line = self.command(self.middle, built, "first", "second", round(500 * delay_ms))
        with ended(subprocess.Popen(line, stdout=subprocess.PIPE, text=True)) as process:
            assert process.stdout is not None
            if process.stdout.readline() != "ready\n":
                raise SystemExit("bench: the delay cannot be started")
            yield

    def command(self, place: int, *words: object) -> list[str]:
        """Return a command that runs in a namespace."""
        return ["nsenter", "--target", str(place), "--net", *map(str, words)]

    def inside(self, place: int, *words: object) -> str:
        """Run a command in a namespace, and return its output."""
        return run(*self.command(place, *words))

    @contextmanager
    def programs(self, size: int) -> Iterator["Programs"]:
        """Run a server in the tuned cgroup that sends `size` bytes per connection, and a client outside of it."""
        enter = ["sh", "-c", f'echo $$ > {self.tuned}/cgroup.procs && exec "$@"', "sh"]
        serve = enter + self.command(self.server, sys.executable, HERE / "serve.py", SERVER, PORT, size)
        fetch = self.command(self.client, sys.executable, HERE / "fetch.py", SERVER, PORT)
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        with (
            ended(subprocess.Popen(serve, stdout=subprocess.PIPE, text=True)) as server,
            ended(subprocess.Popen(fetch, **pipes, text=True)) as client,  # type: ignore[call-overload]
        ):
            assert server.stdout is not None
            assert client.stdin is not None
            assert client.stdout is not None
            server.stdout.readline()
            yield Programs(server.stdout, client.stdin, client.stdout)

    @contextmanager
    def only(self, arms: str, name: str) -> Iterator[None]:
        """Run the agent with a single algorithm for all connections."""
        settings = self.folder / "only.toml"
        settings.write_text(f'policy = "static"\nholdout = 0.0\n[static]\n{name} = 1.0\n')
        with self.tuning(arms, "--config", str(settings)):
            yield

    @contextmanager
    def tuning(self, arms: str, *options: str) -> Iterator["Tuner"]:
        """Run the agent to tune the server's connections."""
        with ExitStack() as stack:
            yield Tuner(self, stack, arms, options)


class Programs:
    """The running server and client."""

    def __init__(self, served: IO[str], ask: IO[str], fetched: IO[str]) -> None:
        self.served, self.ask, self.fetched = served, ask, fetched

    def fetch(self) -> Fetched:
        """Make a connection, and return its port, algorithm and goodput."""
        self.ask.write("\n")
        self.ask.flush()
        port, size, took = self.fetched.readline().split()
        served = self.served.readline().split()
        assert served[0] == port, (served, port)
        return Fetched(int(port), served[1], 8 * int(size) / float(took))


class Tuner:
    """The running agent."""

    def __init__(self, network: Network, stack: ExitStack, arms: str, options: tuple[str, ...]) -> None:
        folder = network.folder
        self.socket = str(folder / "agent.sock")
        line = [str(AGENT), "tune", "--socket", self.socket, "--cgroup", str(network.tuned), "--arms", arms]
        self.records = folder / f"records-{len(list(folder.iterdir()))}"
        line += ["--out", str(self.records), "--state", f"{self.records}.json", "--addresses", "whole", "--no-metrics"]
        line += options
        self.process = stack.enter_context(ended(subprocess.Popen(line, stdout=subprocess.PIPE, text=True)))
        assert self.process.stdout is not None
        if not self.process.stdout.readline().startswith("tuning"):
            raise SystemExit("bench: the agent cannot be started")
        stack.callback(self.end)

    def status(self) -> str:
        """Return the agent's status, with the learned estimates."""
        return run(str(AGENT), "tune", "status", "--socket", self.socket)

    def end(self) -> None:
        """Stop the agent with SIGTERM."""
        if self.process.returncode is None:
            self.process.terminate()
            self.process.communicate()

    def held_out(self) -> list[bool]:
        """Stop the agent, and return for each connection in order whether it was held out."""
        self.end()
        rows = pl.scan_parquet(self.records / "*.parquet").filter(
            pl.col("kind") == "close", pl.col("direction") == "in"
        )
        assignments = rows.sort("start_us").select("assignment", "remote_port").collect()
        return [assignment == "held_out" for assignment in assignments["assignment"]]
