"""A fleet's directory of records with damaged and unsuitable files."""

import random
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl
from synthetic_records import NOON_US, SECOND, closed, flushed, transfer, write
from thalweg.records.schema import SCHEMA

OLDER = ("machine", "cc_at_open", "cpu_limited", "buffer_bdp", "acked_30s_bytes", "sampled_one_in")
"""Columns that an older version does not write."""


@dataclass
class BadFleet:
    """Content of the folder of records."""

    folder: Path
    good: dict[Path, int] = field(default_factory=dict)
    """Valid files, with their numbers of rows."""
    bad: dict[Path, str] = field(default_factory=dict)
    """Files that must be left out, each with words of the reason."""
    copies: list[Path] = field(default_factory=list)
    """Files whose rows are also in another file."""
    damaged: list[Path] = field(default_factory=list)
    """Files with an intact footer and damaged rows, which are detected only when the rows are read."""

    @property
    def rows(self) -> int:
        """Number of valid rows."""
        return sum(self.good.values())


def make(folder: Path, *, with_damage: bool = True) -> BadFleet:
    """Fill a folder: partitions by day and PoP, with a few to thousands of rows, and a file with each kind of fault."""
    fleet = BadFleet(folder)
    chance = random.Random(1)
    for day in range(1, 4):
        for number, pop in enumerate(("ams", "fra", "sin")):
            rows = _rows(chance, 4_000 // 10**number, first=day * 100_000 + number * 10_000, pop=pop)
            fleet.good[write(_path(folder, day, pop, "good"), rows)] = len(rows)
    content = _path(folder, 1, "ams", "good").read_bytes()
    _write_bad(fleet, _path(folder, 2, "ams", "cut"), content[: len(content) // 2], "damaged")
    _write_bad(fleet, _path(folder, 2, "fra", "nothing"), b"", "damaged")
    _write_bad(fleet, _path(folder, 2, "sin", "text"), b"no Parquet at all\n", "damaged")
    foreign = _path(folder, 3, "ams", "foreign")
    pl.DataFrame({"ip": ["192.0.2.1"], "visits": [3]}).write_parquet(foreign)
    fleet.bad[foreign] = "no column"
    typed = _path(folder, 3, "fra", "typed")
    pl.DataFrame(_rows(chance, 5, 1, "fra"), schema=SCHEMA).with_columns(acked_bytes=pl.lit("many")).write_parquet(
        typed
    )
    fleet.bad[typed] = "acked_bytes"
    older = _path(folder, 3, "sin", "older")
    rows = _rows(chance, 50, 900_000, "sin")
    old = pl.DataFrame(rows, schema=SCHEMA).drop(OLDER)
    old.with_columns(pl.col(pl.UInt64).cast(pl.Int64)).write_parquet(older)
    fleet.good[older] = len(rows)
    unfinished = folder / "day=2026-11-03" / "pop=sin" / ".20261103T000000Z.parquet.part.parquet"
    unfinished.write_bytes(content[:100])
    merged = [transfer(1_000_000 + number) for number in range(6)]
    fleet.good[flushed(folder / "day=2026-11-03" / "pop=gru", 100, 102, merged)] = len(merged)
    fleet.copies = [flushed(folder / "day=2026-11-03" / "pop=gru", 100 + n, 100 + n, merged[:2]) for n in range(3)]
    if with_damage:
        damaged = _path(folder, 1, "fra", "rotten")
        damaged.write_bytes(_damaged_pages(content))
        fleet.damaged.append(damaged)
    return fleet


def _path(folder: Path, day: int, pop: str, name: str) -> Path:
    return folder / f"day=2026-11-{day:02}" / f"pop={pop}" / f"{pop}1.{name}.parquet"


def _write_bad(fleet: BadFleet, file: Path, content: bytes, why: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    fleet.bad[file] = why


def _damaged_pages(content: bytes) -> bytes:
    """Return the content with damaged pages and an intact footer, which contains the schema."""
    length = int.from_bytes(content[-8:-4], "little") + 8
    pages = bytearray(content[: len(content) - length])
    for place in range(len(b"PAR1"), len(pages), 7):
        pages[place] ^= 0x5A
    return bytes(pages) + content[len(content) - length :]


def _rows(chance: random.Random, count: int, first: int, pop: str) -> list[dict[str, object]]:
    """Return a transfer and the close of each connection, with two equal algorithms."""
    rows: list[dict[str, object]] = []
    for number in range(first, first + count // 2):
        fct_us = round(SECOND * chance.lognormvariate(0, 0.5))
        end_us = NOON_US + round(chance.random() * 3600 * SECOND)
        common = {"end_us": end_us, "start_us": end_us - fct_us, "duration_us": fct_us, "machine": f"{pop}1"}
        common |= {"cc": chance.choice(["cubic", "bbr"]), "remote_address": f"198.51.{chance.randrange(100)}.0/24"}
        rows.append(transfer(number, **common, fct_us=fct_us, goodput_bps=8e12 / fct_us))
        rows.append(closed(number, **common))
    return rows
