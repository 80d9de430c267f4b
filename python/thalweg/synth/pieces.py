"""Plans the files and their numbers of rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import product

import numpy as np

from thalweg.synth.clients import POPS
from thalweg.synth.pool import Floats, Integers
from thalweg.synth.settings import FIRST_DAY, Settings
from thalweg.synth.world import HOURS, LOAD, SLOT_HOURS

MACHINES = (0.65, 0.35)
"""Servers of a PoP, with their shares of its rows."""


@dataclass(frozen=True)
class Piece:
    """A file: all rows of the connections that were opened on a machine in some hours of a day."""

    number: int
    """Number of the file, from 0."""
    day: int
    pop: int
    machine: int
    slot: int
    rows: int

    @property
    def pop_name(self) -> str:
        """Name of the PoP."""
        return list(POPS)[self.pop]

    @property
    def machine_name(self) -> str:
        """Host name of the server."""
        return f"{self.pop_name}{self.machine + 1}"

    @property
    def midnight_us(self) -> int:
        """Start of its day, as UNIX time."""
        return int((FIRST_DAY + timedelta(days=self.day)).timestamp()) * 1_000_000

    @property
    def place(self) -> str:
        """Path in the folder of records: partitions by day and PoP, then the machine and the agent's file name."""
        day = FIRST_DAY + timedelta(days=self.day)
        first = day + timedelta(hours=self.slot * SLOT_HOURS)
        last = first + timedelta(hours=SLOT_HOURS, seconds=-1)
        numbers = f"{int(first.timestamp())}-{int(last.timestamp())}"
        name = f"{self.machine_name}.{first:%Y%m%dT%H%M%SZ}-{numbers}.parquet"
        return f"day={day:%Y-%m-%d}/pop={self.pop_name}/{name}"


def pieces(settings: Settings) -> list[Piece]:
    """List the files, except those without rows."""
    slots = LOAD.reshape(-1, SLOT_HOURS).sum(axis=1) / LOAD.sum()
    slot_keys = list(product(range(settings.days), range(len(POPS)), range(len(MACHINES)), range(HOURS // SLOT_HOURS)))
    pops = list(POPS.values())
    shares = np.array([pops[pop] * MACHINES[machine] * slots[slot] for _, pop, machine, slot in slot_keys])
    rows = allot(settings.rows, shares / shares.sum())
    listed = (Piece(number, *slot_key, int(rows[number])) for number, slot_key in enumerate(slot_keys))
    return [piece for piece in listed if piece.rows]


def allot(total: int, shares: Floats | Sequence[float]) -> Integers:
    """Distribute a total in integers, each of which deviates from its exact share by less than one.

    >>> allot(10, [0.55, 0.25, 0.2]).tolist()
    [6, 2, 2]
    """
    exact = np.asarray(shares) * total
    integers = np.floor(exact).astype(np.int64)
    largest = np.argsort(integers - exact, kind="stable")[: total - int(integers.sum())]
    integers[largest] += 1
    return np.asarray(integers)
