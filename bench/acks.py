#!/usr/bin/env python3
"""Measures the cost per ACK of `bbr_cpu`, `bbr3`, `bbr_tuned` and `bbr_auto`, with the kernel's own statistics.

    make bench                              with the others, as root
    .venv/bin/python bench/acks.py          a minute
    ... --transfers 2 --out FILE

A sender paces 400 Mbit/s over loopback in a separate network namespace. The algorithms alternate, a transfer each, so
that all run under the same load; medians are reported. All numbers except those of `bbr3` include the kernel's BBR, and
all include the two clock reads of the kernel's measurement. `bbr_tuned` with its defaults only calls the kernel's BBR,
so it is the reference for the others. "All hooks" adds the other programs of the algorithm.
"""

import argparse
import ctypes
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from recorder.machine import AGENT, ended, run
from recorder.price import accounts

ALGORITHMS = {
    "bbr_cpu schedule": ("bbr_cpu", "--set", "rule=schedule"),
    "bbr_cpu paper": ("bbr_cpu", "--set", "rule=paper"),
    "bbr3": ("bbr3",),
    "bbr3 schedule": ("bbr3", "--set", "rule=schedule"),
    "bbr_tuned": ("bbr_tuned",),
    "bbr_tuned changed": ("bbr_tuned", "--set", "probe_gain=1.3"),
    "bbr_auto": ("bbr_auto",),
}
"""Measured algorithms, and the arguments of `cc load`."""
TRANSFERS = 8
REFERENCE = "bbr_tuned"
"""Reference of the comparison, which only calls the kernel's BBR."""
SIZE = 50_000_000
RATE = 50_000_000
"""Pacing rate in bytes per second: 400 Mbit/s."""
SO_MAX_PACING_RATE = 47
CLONE_NEWNET = 0x40000000


def main() -> None:
    """Measure, print, and write a file if requested."""
    parser = argparse.ArgumentParser(description="Measure the cost per ACK of bbr_cpu, bbr3, bbr_tuned and bbr_auto.")
    parser.add_argument(
        "--transfers", type=int, default=TRANSFERS, help="number of transfers per algorithm (default: %(default)s)"
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="JSON file for all measurements")
    chosen = parser.parse_args()
    why_not = None if os.geteuid() == 0 else "only root may load them"
    why_not = why_not or (None if AGENT.exists() else "thalweg-agent is missing: make agent")
    why_not = why_not or (None if shutil.which("bpftool") else "bpftool is missing: apt-get install bpftool")
    if why_not:
        print(f"bench: bbr_cpu, bbr3, bbr_tuned and bbr_auto are left out: {why_not}", file=sys.stderr)
        return
    # The sockets below need the namespace; Python has `unshare` only from 3.12 on.
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET) != 0:
        raise SystemExit(f"bench: no network namespace can be created: {os.strerror(ctypes.get_errno())}")
    run("ip", "link", "set", "lo", "up", "mtu", "1500")
    # Offloads are disabled, so that there are as many ACKs as with a network card without them.
    run("ethtool", "-K", "lo", "gso", "off", "tso", "off", "gro", "off")
    costs: dict[str, list[float]] = {name: [] for name in ALGORITHMS}
    totals: dict[str, list[float]] = {name: [] for name in ALGORITHMS}
    acks: list[int] = []
    with accounts():
        for _ in range(chosen.transfers):
            for name, (algorithm, *options) in ALGORITHMS.items():
                with loaded(algorithm, options):
                    transfer(algorithm)
                    runs, run_ns, total_ns = account(algorithm)
                costs[name].append(run_ns / runs)
                totals[name].append(total_ns / runs)
                acks.append(runs)
    print(f"ns per ACK, {chosen.transfers} transfers of about {statistics.median(acks):.0f} ACKs each")
    for name, cost in costs.items():
        total = statistics.median(totals[name])
        ratios = [statistics.median(these[name]) / statistics.median(these[REFERENCE]) for these in (costs, totals)]
        print(
            f"  {name:<17} {statistics.median(cost):.0f} (from {min(cost):.0f} to {max(cost):.0f}), all hooks"
            f" {total:.0f}; {ratios[0]:.2f} and {ratios[1]:.2f} times the kernel's BBR"
        )
    if chosen.out:
        found = {"ns_per_ack": costs, "ns_per_ack_all_hooks": totals, "acks": acks}
        chosen.out.write_text(json.dumps(found, indent=2) + "\n")


@contextmanager
def loaded(algorithm: str, options: Sequence[str]) -> Iterator[None]:
    """Register an algorithm for the duration of the context."""
    line = [str(AGENT), "cc", "load", algorithm, *options]
    loader: subprocess.Popen[Any] = subprocess.Popen(line, stdout=subprocess.PIPE, text=True)
    with ended(loader):
        assert loader.stdout is not None
        if "registered" not in loader.stdout.readline():
            raise SystemExit(f"bench: {algorithm} cannot be loaded; the output is above")
        yield
        loader.terminate()
        loader.wait()


def transfer(algorithm: str) -> None:
    """Transfer data with an algorithm over one connection."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        taker = threading.Thread(target=take, args=(listening,))
        taker.start()
        with socket.create_connection(listening.getsockname()) as sender:
            sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, algorithm.encode())
            sender.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, RATE)
            sender.sendall(bytes(SIZE))
        taker.join()


def take(listening: socket.socket) -> None:
    """Read from a connection until it closes."""
    taking, _ = listening.accept()
    with taking:
        room = bytearray(1 << 20)
        while taking.recv_into(room):
            pass


def account(algorithm: str) -> tuple[int, int, int]:
    """Return an algorithm's number of ACKs since it was loaded, their total time in ns, and the total time of all
    calls.
    """
    prefix = "bbr_tuned" if algorithm == "bbr_auto" else algorithm
    programs = json.loads(run("bpftool", "--json", "prog", "show"))
    # If connections still use an earlier version, the kernel has both; the newest has the highest id.
    programs.sort(key=lambda program: program["id"])
    newest = {program["name"]: program for program in programs if program.get("name", "").startswith(f"{prefix}_")}
    main = newest[f"{prefix}_main"]
    return main["run_cnt"], main["run_time_ns"], sum(program.get("run_time_ns", 0) for program in newest.values())


if __name__ == "__main__":
    main()
