"""Measures the recorder's memory with many open connections, and its peak until a row of each was written."""

import math
import subprocess
import time
from contextlib import ExitStack
from typing import Any

from .machine import PORT, Agent, Machine, ended

PER_PROCESS = 15_000
"""Maximum number of connections per process, each of which is an open file."""
INTERIM_S = 20
"""Interval of a connection's rows, shorter than the default of a minute."""
PATIENCE_S = 120.0


def measure(machine: Machine, count: int, interim_s: int) -> dict[str, Any]:
    """Open `count` connections; return the recorder's memory, and its peak until a row of each was written."""
    agent = Agent(machine, "--interim", f"{interim_s}s")
    before = agent.status()["usage"]
    with ExitStack() as stack:
        rest = count
        for number in range(math.ceil(count / PER_PROCESS)):
            address = f"10.9.{number}.1"
            stack.enter_context(machine.serving("keep", address))
            batch, rest = min(rest, PER_PROCESS), rest - min(rest, PER_PROCESS)
            line = machine.command(machine.client, machine.program, "hold", address, PORT, batch)
            process = subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            holder = stack.enter_context(ended(process))
            assert holder.stdout is not None
            if holder.stdout.readline() != "open\n":
                raise SystemExit("bench: connections could not be opened")
        opened = agent.status()
        max_bytes, rows = until_rows(agent, opened)
    agent.end()
    usage = opened["usage"]
    return {
        "open": opened["connections_open"],
        "process_bytes": usage["process_bytes"],
        "maps_bytes": usage["maps_bytes"],
        "process_bytes_before": before["process_bytes"],
        "process_bytes_at_most": max_bytes,
        "interim_rows": rows,
    }


def until_rows(agent: Agent, opened: dict[str, Any]) -> tuple[int, int]:
    """Wait until a row of each connection was written; return the peak memory during that time, and the
    number of rows.
    """
    had, max_bytes = opened["counters"]["interim_rows"], opened["usage"]["process_bytes"]
    give_up = time.monotonic() + PATIENCE_S
    while True:
        status = agent.status()
        rows, waiting = status["counters"]["interim_rows"] - had, status["writer"]["rows_waiting"]
        max_bytes = max(max_bytes, status["usage"]["process_bytes"])
        if rows >= opened["connections_open"] and not waiting:
            return max_bytes, rows
        if time.monotonic() > give_up:
            raise SystemExit(f"bench: only {rows} of {opened['connections_open']} connections have a row")
        time.sleep(0.1)


def report(held: dict[str, Any]) -> dict[str, Any]:
    """Print the memory, and return it."""
    process, peak, maps = (held[key] / 1e6 for key in ("process_bytes", "process_bytes_at_most", "maps_bytes"))
    print(f"  memory    {process + maps:.1f} MB for {held['open']} open connections, {process:.1f} MB in the process")
    print(f"            at most {peak + maps:.1f} MB until each of them has a row, {peak:.1f} MB of it in the process")
    return held
