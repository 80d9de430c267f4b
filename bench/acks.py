#!/usr/bin/env python3
"""Measure what `bbr_cpu` costs for each ACK, by the kernel's own account.

    make bench                              with the others, as root
    .venv/bin/python bench/acks.py          a quarter of a minute
    ... --transfers 2 --out FILE

A sender paces 400 Mbit/s over loopback in a network namespace of its own. The rules take turns, a transfer each, so
that all meet the same machine; medians count. What BBR itself does for an ACK is in the numbers, and so are the two
clocks that the kernel reads to measure.
"""

import argparse
import ctypes
import json
import os
import socket
import statistics
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from recorder.machine import AGENT, ended, run
from recorder.price import accounts

RULES = ("schedule", "paper")
TRANSFERS = 8
SIZE = 50_000_000
RATE = 50_000_000
"""Bytes a second: 400 Mbit/s."""
ON_EACH_ACK = "bbr_cpu_main"
SO_MAX_PACING_RATE = 47
CLONE_NEWNET = 0x40000000


def main() -> None:
    """Measure, print, and write where that is asked for."""
    parser = argparse.ArgumentParser(description="Measure what bbr_cpu costs for each ACK.")
    parser.add_argument("--transfers", type=int, default=TRANSFERS, help="for each rule (default: %(default)s)")
    parser.add_argument("--out", type=Path, metavar="FILE", help="JSON file for everything that was measured")
    chosen = parser.parse_args()
    why_not = None if os.geteuid() == 0 else "root alone may load bbr_cpu"
    why_not = why_not or (None if AGENT.exists() else "there is no thalweg-agent: make agent")
    if why_not:
        print(f"bench: bbr_cpu is left out: {why_not}", file=sys.stderr)
        return
    # For the sockets below; Python knows `unshare` from 3.12 on.
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET) != 0:
        raise SystemExit(f"bench: there is no network namespace to be had: {os.strerror(ctypes.get_errno())}")
    run("ip", "link", "set", "lo", "up", "mtu", "1500")
    # As many ACKs as a network card without help would see.
    run("ethtool", "-K", "lo", "gso", "off", "tso", "off", "gro", "off")
    costs: dict[str, list[float]] = {rule: [] for rule in RULES}
    acks: list[int] = []
    with accounts():
        for _ in range(chosen.transfers):
            for rule in RULES:
                with loaded(rule):
                    transfer()
                    runs, run_ns = account()
                costs[rule].append(run_ns / runs)
                acks.append(runs)
    print(f"bbr_cpu: ns for an ACK, {chosen.transfers} transfers of about {statistics.median(acks):.0f} ACKs each")
    for rule, found in costs.items():
        print(f"  {rule:<9} {statistics.median(found):.0f} (from {min(found):.0f} to {max(found):.0f})")
    if chosen.out:
        chosen.out.write_text(json.dumps({"ns_per_ack": costs, "acks": acks}, indent=2) + "\n")


@contextmanager
def loaded(rule: str) -> Iterator[None]:
    """Have bbr_cpu registered with a rule."""
    line = [str(AGENT), "cc", "load", "bbr_cpu", "--rule", rule]
    loader: subprocess.Popen[Any] = subprocess.Popen(line, stdout=subprocess.PIPE, text=True)
    with ended(loader):
        assert loader.stdout is not None
        if "registered" not in loader.stdout.readline():
            raise SystemExit("bench: bbr_cpu does not load; what it said is above")
        yield
        loader.terminate()
        loader.wait()


def transfer() -> None:
    """Send so much with bbr_cpu, and have it taken."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        taker = threading.Thread(target=take, args=(listening,))
        taker.start()
        with socket.create_connection(listening.getsockname()) as sender:
            sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"bbr_cpu")
            sender.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, RATE)
            sender.sendall(bytes(SIZE))
        taker.join()


def take(listening: socket.socket) -> None:
    """Take what comes, to its end."""
    taking, _ = listening.accept()
    with taking:
        room = bytearray(1 << 20)
        while taking.recv_into(room):
            pass


def account() -> tuple[int, int]:
    """Return how often bbr_cpu has handled an ACK since it was loaded, and the nanoseconds that took."""
    programs = json.loads(run("bpftool", "--json", "prog", "show", "name", ON_EACH_ACK))
    # Where connections still use what was loaded before, the kernel has both: the newest has the highest number.
    newest = max(programs if isinstance(programs, list) else [programs], key=lambda program: program["id"])
    return newest["run_cnt"], newest["run_time_ns"]


if __name__ == "__main__":
    main()
