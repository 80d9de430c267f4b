"""Connections of a file, drawn: who, when, what, with which algorithm, and how long it took."""

from dataclasses import dataclass

import numpy as np

from thalweg.synth.classes import CLASSES, TRANSFERS
from thalweg.synth.pieces import Piece
from thalweg.synth.pool import AGES_S, Booleans, Floats, Integers, path_rtts_us, sizes_bytes
from thalweg.synth.world import BUSY, LOAD, SLOT_HOURS, World

MEASURED = ("fct_us", "segments", "retransmits", "rtt_min_us", "rtt_mean_us", "rtt_p95_us")
"""What is taken from the pool by transfer."""

AGES_US = np.array(AGES_S) * 1_000_000
HOUR_US = 3_600_000_000
INTERIM_US = 60_000_000
"""How often the agent writes a row about a connection that stays open."""


@dataclass(frozen=True)
class Drawn:
    """Connections, as arrays by connection; those about transfers by connection and transfer."""

    local: Integers
    """Number of the client among those of the PoP."""
    arm: Integers
    start_us: Integers
    """When it was opened, a handshake before its first request: UNIX time, as all moments."""
    closed_us: Integers
    handshake_us: Integers
    transfers: Integers
    """How many it has; what stands behind them in a row means nothing."""
    size_bytes: Integers
    begin_us: Integers
    fct_us: Integers
    segments: Integers
    retransmits: Integers
    rtt_min_us: Integers
    rtt_mean_us: Integers
    rtt_p95_us: Integers
    acked_bytes: Floats
    """By age; not a number: it was not open for as long."""
    kind: Integers
    """Number of the class."""

    @property
    def interims(self) -> Integers:
        """How many rows tell of it while it is open."""
        return np.asarray((self.closed_us - self.start_us - 1) // INTERIM_US)

    @property
    def rows(self) -> Integers:
        """How many rows tell of it: of its transfers, of its minutes, and of its end."""
        return self.transfers + self.interims + 1

    def first(self, count: int) -> "Drawn":
        """Keep the first ones."""
        return Drawn(*(getattr(self, name)[:count] for name in self.__dataclass_fields__))


@dataclass(frozen=True)
class Taken:
    """What connections take from the pools, and from the shares of their classes."""

    measured: dict[str, Floats]
    """By connection and transfer."""
    early_bytes: Floats
    size_bytes: Integers
    handshake_us: Integers
    transfers: Integers
    think_us: Integers
    """By connection and transfer: how long after it the next request comes."""


def draw(world: World, piece: Piece, count: int, luck: Floats, chance: np.random.Generator) -> Drawn:
    """Draw connections of a file, in no order."""
    local = _drawn(world.local[piece.pop].cumulative, count, chance)
    client = world.local[piece.pop].numbers[local]
    hours = slice(piece.slot * SLOT_HOURS, (piece.slot + 1) * SLOT_HOURS)
    within = _drawn(np.cumsum(LOAD[hours]), count, chance)
    hour = within + hours.start
    start_us = piece.midnight_us + ((hour + chance.random(count)) * HOUR_US).astype(np.int64)
    arm = world.arms(world.clients.kind[client], luck[local, within], piece.day, hour, chance)
    taken = _take(world, client, hour, arm, chance)
    spread = world.planted.spread
    shared = world.clients.log_factor[client] + spread.hour * luck[local, within]
    factor = np.exp(shared[:, None] + spread.transfer * chance.standard_normal((count, TRANSFERS)))
    fct_us = np.maximum(np.rint(taken.measured["fct_us"] * factor), 1).astype(np.int64)
    # Each request comes some time after the object before it was there, the first one with the handshake.
    opened_us, spans = start_us + taken.handshake_us, fct_us + taken.think_us
    begin_us = opened_us[:, None] + np.cumsum(spans, axis=1) - spans
    last = np.arange(count), taken.transfers - 1
    closed_us = begin_us[last] + fct_us[last] + taken.handshake_us
    is_there = np.arange(TRANSFERS) < taken.transfers[:, None]
    early = (taken.early_bytes / taken.size_bytes[:, None]) / np.exp(shared)[:, None]
    progress = _progress(opened_us, begin_us, fct_us, is_there, early)
    progress[closed_us[:, None] < opened_us[:, None] + AGES_US] = np.nan
    return Drawn(
        local=local,
        arm=arm,
        start_us=start_us,
        closed_us=closed_us,
        handshake_us=taken.handshake_us,
        transfers=taken.transfers,
        size_bytes=taken.size_bytes,
        begin_us=begin_us,
        fct_us=fct_us,
        acked_bytes=progress * taken.size_bytes[:, None],
        kind=world.clients.kind[client],
        **{name: np.rint(taken.measured[name]).astype(np.int64) for name in MEASURED if name != "fct_us"},
    )


def _take(world: World, client: Integers, hour: Integers, arm: Integers, chance: np.random.Generator) -> Taken:
    """Draw what connections carry, and take one of the pool for each."""
    count, kinds = len(client), world.clients.kind[client]
    measured = {name: np.zeros((count, TRANSFERS)) for name in MEASURED}
    early_bytes = np.full((count, len(AGES_S)), np.nan)
    size_bytes, handshake_us, transfers = (np.zeros(count, dtype=np.int64) for _ in range(3))
    think_us = np.zeros((count, TRANSFERS), dtype=np.int64)
    for number, kind in enumerate(CLASSES):
        here = np.flatnonzero(kinds == number)
        whose, pool = client[here], world.pools[number]
        rate = np.maximum(world.clients.rate[whose] - BUSY[hour[here]], 0)
        size = _drawn(np.cumsum(list(kind.sizes.values())), len(here), chance)
        cell = pool.cell(rate, world.clients.rtt[whose], world.clients.loss[whose], size, arm[here])
        connection = chance.integers(pool.connections, size=len(here))
        for name in MEASURED:
            measured[name][here, : kind.transfers] = getattr(pool, name)[cell, connection]
        early_bytes[here] = pool.acked_bytes[cell, connection]
        size_bytes[here] = sizes_bytes(kind)[size]
        handshake_us[here] = np.rint(path_rtts_us(kind)[world.clients.rtt[whose]])
        follows = chance.random((len(here), kind.transfers - 1)) < kind.another
        transfers[here] = 1 + follows.cumprod(axis=1).sum(axis=1)
        think_us[here] = 1e6 * chance.exponential(kind.think_s, (len(here), TRANSFERS))
    return Taken(measured, early_bytes, size_bytes, handshake_us, transfers, think_us)


def _progress(opened_us: Integers, begin_us: Integers, fct_us: Integers, is_there: Booleans, early: Floats) -> Floats:
    """Return how many objects were delivered at the ages: those that are done, and a share of the unfinished one.

    `early` is that share of the first object, where the pool has it; of others it grows evenly.
    """
    at_us = opened_us[:, None] + AGES_US
    done = np.zeros(at_us.shape)
    for number in range(TRANSFERS):
        share = np.clip((at_us - begin_us[:, [number]]) / fct_us[:, [number]], 0, 1) * is_there[:, [number]]
        if number == 0:
            share = np.where(np.isnan(early) | (share >= 1), share, np.minimum(early, 1))
        done += share
    # The pool's curve and the even one need not meet.
    return np.asarray(np.maximum.accumulate(done, axis=1))


def _drawn(cumulative: Floats, count: int, chance: np.random.Generator) -> Integers:
    """Draw numbers by their shares, of which this is the running sum."""
    at = chance.random(count) * cumulative[-1]
    return np.asarray(np.minimum(np.searchsorted(cumulative, at, side="right"), len(cumulative) - 1))
