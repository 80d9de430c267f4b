#!/usr/bin/env python3
"""Measures the choices of `thalweg-agent tune` among cubic, bbr, htcp and dctcp, compared with bpftune's policy.

    .venv/bin/python bench/tuning_guest.py             some minutes; no root, no KVM
    .venv/bin/python bench/tuning_guest.py --quick     a smoke test
    ... --out FILE                                    all measurements, for programs

bpftune-tcp-conn(8) shows two tables with the choices of its tuner for connections between two network namespaces, with
10 % loss (netem) and without. The measurement runs in a guest with a kernel from `thalweg kernel fetch`, which has all
four algorithms. Its default is cubic, and the application does not set an algorithm. Each table is measured with three
policies: `bayes`, the agent's default; `bpftune`, which implements bpftune's policy; and `bpftune` without the rule
that switches connections with losses above 1/64 to BBR immediately, so that it has to learn.

The path is declared as a data centre, because elsewhere the agent does not choose dctcp.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import polars as pl
from recorder.machine import AGENT
from thalweg.kernel import guests
from thalweg.kernel.guests import GuestKernel
from tuner import guest

ARMS = ("cubic", "bbr", "htcp", "dctcp")
CONDITIONS = {"10 % loss": "loss 10%", "no loss": ""}
POLICIES = {
    "bayes": ("bayes", ""),
    "bpftune": ("bpftune", ""),
    "bpftune's learning alone": ("bpftune", "[bpftune]\nhas_loss_rule = false\n"),
}
"""Names and settings of the policies."""
QUICK = ("bayes", "bpftune")
SENDER, RECEIVER = "198.51.100.1", "198.51.100.2"
PORT = 8080
PAUSE_MS = 300
"""Pause between connections: longer than the delay of a fifth of a second until the row of a closed connection is
written.
"""
MODULES = (
    *("drivers/net/veth.ko", "net/sched/sch_netem.ko"),
    *("net/ipv4/tcp_bbr.ko", "net/ipv4/tcp_htcp.ko", "net/ipv4/tcp_dctcp.ko"),
)
SETTINGS = f"""\
arms = ["{'", "'.join(ARMS)}"]
[[override]]
prefix = "{RECEIVER}/32"
data_center = true
[[override]]
prefix = "{SENDER}/32"
data_center = true
"""
SCRIPT = """\
sysctl -qw net.ipv4.tcp_congestion_control=cubic
ip netns add there
ip link add cable type veth peer name cable netns there
ip addr add @SENDER@/24 dev cable
ip -n there addr add @RECEIVER@/24 dev cable
for place in "" "ip netns exec there"; do
    $place ip link set cable up
    $place ethtool -K cable gso off tso off gro off
    $place sysctl -qw net.ipv4.tcp_no_metrics_save=1
done
test -z "@NETEM@" || tc qdisc add dev cable root netem @NETEM@ limit 100000
ip netns exec there pushes sink @RECEIVER@ @PORT@ >/tmp/sink &
until grep -q ready /tmp/sink; do sleep 0.1; done
pushes push @RECEIVER@ @PORT@ @UNTUNED@ @BYTES@ @PAUSE_MS@ >/results/untuned
thalweg-agent tune --config /settings.toml --policy @POLICY@ --out /results/records --state /tmp/tune.json \
    --socket /tmp/agent.sock --addresses whole --no-metrics --grace 0s >/results/said &
agent=$!
until grep -q tuning /results/said; do sleep 0.1; done
pushes push @RECEIVER@ @PORT@ @COUNT@ @BYTES@ @PAUSE_MS@ >/results/tuned
thalweg-agent tune status --json --socket /tmp/agent.sock >/results/status.json
kill $agent
wait $agent
"""


@dataclass(frozen=True)
class Pushed:
    """Result of one connection."""

    cc: str
    assignment: str
    goodput_bps: float


@dataclass(frozen=True)
class Row:
    """A row of a table."""

    cc: str
    metric: str
    count: int
    greedy: int
    min_rtt_us: int
    max_rate_mb_s: float
    share: float
    mean_bps: float


@dataclass(frozen=True)
class Found:
    """A table, and the data behind it."""

    untuned_bps: float
    untuned_ccs: list[str]
    rows: list[Row]
    mean_bps: float
    connections: list[Pushed]


def pushed(file: Path, size: int, assignments: dict[int, str]) -> list[Pushed]:
    """Parse the output of the program that makes connections."""
    words = [line.split() for line in file.read_text().splitlines()]
    return [Pushed(cc, assignments.get(int(port), ""), 8 * size / float(took)) for port, cc, took in words]


def measure(kernel: GuestKernel, policy: tuple[str, str], netem: str, count: int, size: int) -> Found:
    """Boot a guest, and run connections with a policy in it."""
    name, settings = policy
    with tempfile.TemporaryDirectory(prefix="thalweg-bench-") as folder:
        place = Path(folder)
        source = Path(__file__).resolve().parent / "tuner" / "pushes.c"
        subprocess.run(["cc", "-O2", "-Wall", "-o", place / "pushes", source], check=True)
        (place / "settings").write_text(SETTINGS + settings)
        files = {"bin/thalweg-agent": AGENT, "bin/pushes": place / "pushes", "settings.toml": place / "settings"}
        script = SCRIPT
        variables = {"SENDER": SENDER, "RECEIVER": RECEIVER, "PORT": PORT, "NETEM": netem, "POLICY": name}
        variables |= {"COUNT": count, "UNTUNED": max(count // 8, 3), "BYTES": size, "PAUSE_MS": PAUSE_MS}
        for word, value in variables.items():
            script = script.replace(f"@{word}@", str(value))
        results = guest.run(place, kernel, MODULES, files, script)
        return read(results, size)


def read(results: Path, size: int) -> Found:
    """Return the table of a guest's results."""
    closed = pl.scan_parquet(results / "records" / "*.parquet").filter(
        pl.col("kind") == "close", pl.col("direction") == "out"
    )
    ports = closed.select("local_port", "assignment").collect()
    untuned = pushed(results / "untuned", size, {})
    all_of_them = pushed(results / "tuned", size, dict(ports.iter_rows()))
    chosen = [one for one in all_of_them if one.assignment == "treated"]
    status = json.loads((results / "status.json").read_text())
    (own,) = (one["netns"] for one in status["namespaces"] if one["own"])
    (destination,) = (one for one in status["destinations"] if one["netns"] == own)
    rows = []
    for arm in destination["arms"]:
        mine = [one.goodput_bps for one in chosen if one.cc == arm["cc"]]
        gain = arm["gain"]["mean"] if arm["gain"] else 0.0
        rows.append(
            Row(
                cc=arm["cc"],
                metric=f"{arm['cost']:.0f}" if arm["cost"] is not None else f"{gain:+.2f}",
                count=len(mine),
                greedy=arm["greedy"],
                min_rtt_us=arm["rtt_min_us"] or 0,
                max_rate_mb_s=(arm["delivery_rate_max_bps"] or 0) / 8e6,
                share=len(mine) / len(chosen),
                mean_bps=statistics.fmean(mine) if mine else 0.0,
            )
        )
    return Found(
        untuned_bps=statistics.fmean(one.goodput_bps for one in untuned),
        untuned_ccs=sorted({one.cc for one in untuned}),
        rows=rows,
        mean_bps=statistics.fmean(one.goodput_bps for one in chosen),
        connections=all_of_them,
    )


def report(condition: str, policy: str, result: Found) -> None:
    """Print a table in the format of the manual page, with two additional columns."""
    held_out = sum(one.assignment == "held_out" for one in result.connections)
    print(
        f"{condition}, {policy}: {result.mean_bps / 1e6:.1f} Mbit/s, mean of all connections with a chosen algorithm, ",
        end="",
    )
    print(f"{result.untuned_bps / 1e6:.1f} with cubic alone; {held_out} of {len(result.connections)} held out")
    print("    IPAddress     CongAlg     Metric    Count   Greedy   MinRtt MaxRtDlvr    Share   Mbit/s")
    for row in result.rows:
        print(f"    {RECEIVER}  {row.cc:>7}{row.metric:>11}{row.count:>9}{row.greedy:>9}{row.min_rtt_us:>9}", end="")
        print(f"{row.max_rate_mb_s:>10.1f}{100 * row.share:>7.0f} %{row.mean_bps / 1e6:>9.1f}")
    sys.stdout.flush()


def why_not(kernel: GuestKernel | None) -> str | None:
    """Return the missing requirement for running guests, as text; None if nothing is missing."""
    return guest.why_not(kernel) or (None if AGENT.exists() else "thalweg-agent is missing: make agent")


def main() -> None:
    """Run the requested measurements."""
    parser = argparse.ArgumentParser(description="Measure how `thalweg-agent tune` chooses among four algorithms.")
    parser.add_argument("--quick", action="store_true", help="quick test: two tables of few small connections")
    parser.add_argument("--connections", type=int, default=80, help="connections in each table (default: %(default)s)")
    parser.add_argument("--out", type=Path, metavar="FILE", help="JSON file for all measurements")
    chosen = parser.parse_args()
    kernel = guests.current()
    if reason := why_not(kernel):
        print(f"bench: tuning in a guest is left out: {reason}", file=sys.stderr)
        return
    assert kernel is not None
    count, size = (24, 200_000) if chosen.quick else (chosen.connections, 3_000_000)
    print(f"Linux {kernel.release} in a guest with virtual time; {size / 1e6:g} MB per connection, one after another")
    document: dict[str, Any] = {"kernel": kernel.release}
    for condition in list(CONDITIONS)[: 1 if chosen.quick else None]:
        document[condition] = {}
        for policy in QUICK if chosen.quick else POLICIES:
            result = measure(kernel, POLICIES[policy], CONDITIONS[condition], count, size)
            report(condition, policy, result)
            document[condition][policy] = asdict(result)
    if chosen.out:
        chosen.out.write_text(json.dumps(document, indent=2) + "\n")


if __name__ == "__main__":
    main()
