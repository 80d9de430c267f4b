"""Run directories with synthetic content, for tests of analysis and report.

`SyntheticRun` writes rows as a directory in the documented format. `large_and_medium` is a complete study (four mixes,
five buffers) with plausible curves and known results.
"""

import json
import math
import random
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
from thalweg.results.columns import TABLES
from thalweg.results.tables import DTYPES

MS = 1_000_000
"""Nanoseconds in a millisecond."""

BUFFERS = ["0.5bdp", "1bdp", "2bdp", "4bdp", "8bdp"]


def link(rate_bps: int | None = 40_000_000, buffer_bytes: int = 225_000, **changes: Any) -> dict[str, Any]:
    """Return a link of a plan; without a rate, an unlimited one."""
    steps = [{"at_ns": 0, "rate_bps": rate_bps}]
    return {
        "capacity": {"kind": "steps", "steps": steps} if rate_bps else {"kind": "unlimited"},
        "buffer": {"kind": "bytes", "bytes": buffer_bytes},
        "queue": {"kind": "fifo"},
        "loss": {"kind": "bernoulli", "ratio": 0.0},
        "duplicate": 0.0,
        "delay_ns": 22_500_000,
        "jitter_ns": 0,
        "reorder": 0.0,
        "reorder_delay_ns": 0,
    } | changes


def flow(name: str = "large", cc: str = "cubic", size_bytes: int | None = 30_000_000, **changes: Any) -> dict[str, Any]:
    """Return a flow of a plan; without a size, an unlimited one."""
    return {
        "name": name,
        "cc": cc,
        "cc_params": {},
        "start_ns": 0,
        "stop_ns": None,
        "load": {"kind": "sizes", "sizes_bytes": [size_bytes]} if size_bytes else {"kind": "unlimited"},
        "repeat": {"kind": "once"},
        "count": 1,
        "extra_rtt_ns": 0,
        "host": "sender",
    } | changes


def experiment(number: int = 0, repetition: int = 0, **changes: Any) -> dict[str, Any]:
    """Return an experiment of a plan."""
    host = {"sndbuf_max_bytes": 2**40, "rcvbuf_max_bytes": 2**40, "delay_jitter_ns": 0}
    return {
        "experiment": number,
        "repetition": repetition,
        "sweep": {},
        "seed": 1000 * number + repetition,
        "duration_ns": None,
        "sample_interval_ns": 10 * MS,
        "start_jitter_ns": 45 * MS,
        "rtt_ns": 45 * MS,
        "forward": link(),
        "reverse": link(None),
        "hosts": {"sender": host, "receiver": host},
        "flows": [flow()],
        "background": [],
        "engine": {"link": "auto", "traffic": "builtin", "offloads": False, "record": False},
    } | changes


class SyntheticRun:
    """A run directory under construction."""

    def __init__(
        self, directory: Path, experiments: Sequence[dict[str, Any]], engine: str = "sim", **plan: Any
    ) -> None:
        self.directory = directory
        self.plan = {
            "format": 1,
            "engine": engine,
            "name": "synthetic",
            "about": "",
            "source": "",
            "scenario_toml": 'name = "synthetic"\n',
            "traces": {},
            "experiments": list(experiments),
        } | plan
        self.meta: dict[str, Any] = {
            "format": 1,
            "engine": engine,
            "engine_version": "0.1.0",
            "result_version": "2",
            "host": {"os": "Debian GNU/Linux 12", "kernel": "6.1.0", "cpu": "A CPU", "cores": 2},
            "created": "2031-05-04T03:02:01Z",
        }
        self.events: list[dict[str, Any]] = []
        self._rows: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)

    def transfer(self, number: int, repetition: int, name: str = "large", **values: Any) -> None:
        """Add a transfer; an omitted size, completion time or goodput is derived from the other values."""
        row = {
            "experiment": number, "repetition": repetition, "flow": name,
            "copy": 0, "connection": 0, "transfer": 0, "cc": "cubic", "host": "sender",
            "start_us": 0, "end_us": 1_000_000, "acked_bytes": 1_000_000, "completed": True, "segments": 1000,
            "retransmits": 0, "timeouts": 0, "recoveries": 0, "undos": 0,
            "rtt_min_us": 45_000.0, "rtt_mean_us": 50_000.0,
            "rtt_p50_us": 50_000.0, "rtt_p95_us": 60_000.0, "rtt_p99_us": 70_000.0,
        } | values  # fmt: skip
        took = row["end_us"] - row["start_us"]
        row.setdefault("size_bytes", row["acked_bytes"])
        row.setdefault("fct_us", took if row["completed"] else None)
        row.setdefault("goodput_bps", row["acked_bytes"] * 8e6 / took if took else 0.0)
        self._add("flows", number, repetition, row)

    def sample(self, number: int, repetition: int, t_us: int, name: str = "large", **values: Any) -> None:
        """Add a sample of a connection."""
        row = {
            "experiment": number, "repetition": repetition, "flow": name,
            "copy": 0, "connection": 0, "t_us": t_us, "cwnd_packets": 10, "inflight_packets": 10,
            "srtt_us": 50_000, "acked_bytes": 0, "segments": 0, "retransmits": 0, "ca_state": "open",
        } | values  # fmt: skip
        self._add("samples", number, repetition, row)

    def state(self, number: int, repetition: int, t_us: int, key: str, value: float, name: str = "large") -> None:
        """Add a value of an algorithm's state."""
        row = {
            "experiment": number, "repetition": repetition, "flow": name,
            "copy": 0, "connection": 0, "t_us": t_us, "key": key, "value": float(value),
        }  # fmt: skip
        self._add("state", number, repetition, row)

    def queue(self, number: int, repetition: int, t_us: int, **values: Any) -> None:
        """Add a sample of the bottleneck."""
        row = {
            "experiment": number, "repetition": repetition, "link": "forward", "t_us": t_us,
            "backlog_bytes": 0, "backlog_packets": 0, "dropped_packets": 0, "lost_packets": 0, "marked_packets": 0,
            "sent_packets": 0, "sent_bytes": 0, "capacity_bytes": t_us * 5,
        } | values  # fmt: skip
        self._add("queue", number, repetition, row)

    def write(self) -> Path:
        """Write the directory; experiments without a transfer are incomplete."""
        self.directory.mkdir(parents=True, exist_ok=True)
        ids = [
            {
                "id": an_id(e["experiment"], e["repetition"]),
                "experiment": e["experiment"],
                "repetition": e["repetition"],
            }
            for e in self.plan["experiments"]
        ]
        meta = self.meta | {"plan": self.plan, "experiments": ids}
        (self.directory / "run.json").write_text(json.dumps(meta))
        (self.directory / "events.jsonl").write_text("".join(json.dumps(event) + "\n" for event in self.events))
        for (table, name), rows in self._rows.items():
            schema = {column.name: DTYPES[column.kind] for column in TABLES[table].columns}
            (self.directory / table).mkdir(exist_ok=True)
            pl.DataFrame(rows, schema=schema).write_parquet(self.directory / table / f"{name}.parquet")
        return self.directory

    def _add(self, table: str, number: int, repetition: int, row: dict[str, Any]) -> None:
        self._rows[table, an_id(number, repetition)].append(row)


def an_id(number: int, repetition: int) -> str:
    """Return an id in the format of engines."""
    return f"{number:08x}{repetition:08x}"


def grid(directory: Path, rates: int = 3, buffers: int = 3) -> SyntheticRun:
    """Return a sweep over rates and buffers with one flow, which takes twice as long at half the rate."""
    points = [(rate, buffer) for rate in range(1, rates + 1) for buffer in range(1, buffers + 1)]
    run = SyntheticRun(
        directory / "run",
        [
            experiment(number, sweep={"path.rate": f"{10 * rate}Mbps", "path.buffer": f"{buffer}bdp"}, flows=[flow()])
            for number, (rate, buffer) in enumerate(points)
        ],
    )
    for number, (rate, _) in enumerate(points):
        run.transfer(number, 0, end_us=6_000_000 // rate)
        for t_us in range(0, 1_000_001, 100_000):
            run.sample(number, 0, t_us, acked_bytes=t_us)
    return run


def large_and_medium(directory: Path, repetitions: int = 10, engine: str = "sim", slower: float = 1.0) -> SyntheticRun:
    """Create a study: a large flow and medium flows that arrive back to back, four mixes, five buffers.

    The large flow reaches 30 Mbit/s with cubic and 34 Mbit/s with bbr, less in small buffers with cubic; the medium
    flows take 0.4 s with bbr, and with cubic more the larger the buffer is. `slower` scales times.
    """
    points = [
        (large, medium, buffer) for large in ("bbr", "cubic") for medium in ("bbr", "cubic") for buffer in BUFFERS
    ]
    experiments = [
        experiment(
            number,
            repetition,
            sweep={"flow.large.cc": large, "flow.medium.cc": medium, "path.buffer": buffer},
            forward=link(buffer_bytes=int(float(buffer.removesuffix("bdp")) * 225_000)),
            flows=[
                flow("large", large),
                flow(
                    "medium",
                    medium,
                    1_000_000,
                    start_ns=500 * MS,
                    repeat={"kind": "gap", "gap_ns": 100 * MS, "until": "large", "count": None},
                ),
            ],
        )
        for number, (large, medium, buffer) in enumerate(points)
        for repetition in range(repetitions)
    ]
    run = SyntheticRun(
        directory,
        experiments,
        engine,
        name="large-and-medium",
        about="A 30 MB flow meets 1 MB flows that come back to back, in four mixes and five buffers.",
        source="Haile et al., ITC 30 (2018), sec. IV",
    )
    for number, (large, medium, buffer) in enumerate(points):
        for repetition in range(repetitions):
            _large_and_medium(run, number, repetition, large, medium, float(buffer.removesuffix("bdp")), slower)
    return run


def _large_and_medium(
    run: SyntheticRun, number: int, repetition: int, large: str, medium: str, bdp: float, slower: float
) -> None:
    chance = random.Random(1000 * number + repetition)
    goodput = (34e6 if large == "bbr" else 30e6 - (8e6 if bdp < 1 else 0)) * chance.uniform(0.97, 1.03) / slower
    end_us = int(30e6 * 8e6 / goodput)
    lost = 900 if large == "bbr" and bdp < 1 else 120
    run.transfer(
        number,
        repetition,
        "large",
        cc=large,
        end_us=end_us,
        acked_bytes=30_000_000,
        segments=21_000,
        retransmits=chance.randint(lost // 2, lost),
    )
    takes_s = (0.4 if medium == "bbr" else 0.5 + 0.15 * bdp) * slower
    connections = []
    start_us = 500_000 + chance.randint(0, 45_000)
    while start_us < end_us:
        took = int(takes_s * chance.uniform(0.9, 1.1) * 1e6)
        values = {
            "connection": len(connections),
            "cc": medium,
            "start_us": start_us,
            "end_us": start_us + took,
            "segments": 700,
        }
        run.transfer(number, repetition, "medium", retransmits=chance.randint(0, 20), **values)
        connections.append((start_us, start_us + took))
        start_us += took + 100_000
    last_us = max(end_us, connections[-1][1])
    sent = 0.0
    dropped = 0
    room = bdp * 225_000
    for t_us in range(0, last_us + 10_000, 10_000):
        wave = 0.5 + 0.5 * math.sin(t_us / 7e5)
        backlog = room * (wave if large == "cubic" else 0.3 + 0.1 * wave)
        dropped += 3 if wave > 0.995 else 0
        run.queue(
            number,
            repetition,
            t_us,
            backlog_bytes=int(backlog),
            backlog_packets=int(backlog / 1500),
            sent_bytes=int(sent),
            dropped_packets=dropped,
        )
        sent += 50_000 * (0.97 if large == "bbr" else 0.88 if bdp < 1 else 0.95)
        rtt_us = int(45_000 + backlog / 5)
        if t_us <= end_us:
            acked = int(30_000_000 * t_us / end_us)
            cwnd = 150 + 120 * ((t_us / 2e6) % 1) if large == "cubic" else 260
            run.sample(number, repetition, t_us, "large", cwnd_packets=int(cwnd), srtt_us=rtt_us, acked_bytes=acked)
        for index, (start, end) in enumerate(connections):
            if start <= t_us <= end:
                acked = int(1_000_000 * (t_us - start) / (end - start))
                cwnd = min(80, 10 + (t_us - start) / 4000)
                run.sample(
                    number,
                    repetition,
                    t_us,
                    "medium",
                    connection=index,
                    cwnd_packets=int(cwnd),
                    srtt_us=rtt_us,
                    acked_bytes=acked,
                )
