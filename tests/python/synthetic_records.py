"""Records with synthetic content, for tests of reading, summaries and pages."""

import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import polars as pl
from thalweg.records.schema import SCHEMA

NOON_US = 1_795_262_400_000_000
"""UNIX time of 2026-11-21 12:00:00 UTC."""
SECOND = 1_000_000
MINUTE = 60 * SECOND


def closed(connection: int = 1, **changes: Any) -> dict[str, Any]:
    """Return a closed connection."""
    return {
        "end_us": NOON_US + 10 * SECOND,
        "connection": connection,
        "kind": "close",
        "source": "agent",
        "machine": "web1",
        "start_us": NOON_US,
        "duration_us": 10 * SECOND,
        "joined": False,
        "ip_version": 4,
        "remote_address": "198.51.100.0/24",
        "direction": "in",
        "cc": "cubic",
        "close": "remote_fin",
        "sent_bytes": 1_000_000,
        "acked_bytes": 1_000_000,
        "segments": 700,
        "retransmits": 7,
        "rtt_min_us": 20_000,
        "rtt_p95_us": 40_000,
        "busy_goodput_bps": 8e6,
        "buffer_bdp": 1.0,
    } | changes


def interim(connection: int, minute: int, **changes: Any) -> dict[str, Any]:
    """Return a connection that was open a number of minutes after noon."""
    end_us = NOON_US + minute * MINUTE
    return closed(connection, kind="interim", close=None, end_us=end_us, duration_us=end_us - NOON_US) | changes


def transfer(connection: int = 1, number: int = 0, **changes: Any) -> dict[str, Any]:
    """Return a transfer of 1 MB with a completion time of one second."""
    span = {"kind": "transfer", "transfer": number, "close": None, "fct_us": SECOND, "goodput_bps": 8e6}
    return closed(connection, **span) | changes


def write(file: Path, rows: Iterable[dict[str, Any]]) -> Path:
    """Write a file of records."""
    file.parent.mkdir(parents=True, exist_ok=True)
    pl.DataFrame(list(rows), schema=SCHEMA).write_parquet(file)
    return file


def flushed(folder: Path, first: int, last: int, rows: Iterable[dict[str, Any]]) -> Path:
    """Write a file with a name as the agent chooses it."""
    return write(folder / f"20261121T120000Z-{first:010}-{last:010}.parquet", rows)


def a_day(seed: int = 1, connections: int = 400) -> list[dict[str, Any]]:
    """Return a day of two algorithms on two machines; one algorithm is faster and queues less."""
    chance = random.Random(seed)
    rows = []
    for number in range(connections):
        cc = ("cubic", "bbr")[number % 2]
        rtt_us = round(20_000 * chance.lognormvariate(0, 0.5))
        queue = chance.lognormvariate(0.5 if cc == "cubic" else -0.5, 0.6)
        end_us = NOON_US + round(chance.random() * 24 * 60 * MINUTE)
        size = round(10 ** chance.uniform(3, 7.5))
        fct_us = round(rtt_us * (1 + size / 20_000) * (1.2 if cc == "cubic" else 1))
        common = {
            "end_us": end_us,
            "start_us": end_us - fct_us,
            "duration_us": fct_us,
            "machine": ("web1", "web2")[number % 3 == 0],
            "cc": cc,
            "acked_bytes": size,
            "rtt_min_us": rtt_us,
            "rtt_p95_us": round(rtt_us * (1 + queue)),
            "buffer_bdp": queue,
            "retransmits": chance.choice([0, 0, 1, 9]),
            "busy_goodput_bps": size * 8e6 / fct_us,
            "cpu_limited": chance.random() < 0.1 if cc == "bbr" else None,
            "direction": chance.choice(["in", "in", "out"]),
        }
        rows.append(closed(number, **common, close=chance.choice(["remote_fin", "local_fin", "timeout"])))
        rows.append(transfer(number, **common, fct_us=fct_us, goodput_bps=size * 8e6 / fct_us))
    return rows
