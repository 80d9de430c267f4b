"""Draws the connections of a file: client, time, object, algorithm, and duration."""

from dataclasses import dataclass

import numpy as np

from thalweg.synth.classes import CLASSES, TRANSFERS
from thalweg.synth.pieces import Piece
from thalweg.synth.pool import AGES_S, Booleans, Floats, Integers, path_rtts_us, sizes_bytes
from thalweg.synth.world import BUSY, LOAD, SLOT_HOURS, Fleet

MEASURED = ("fct_us", "segments", "retransmits", "rtt_min_us", "rtt_mean_us", "rtt_p95_us")
"""Values that are taken from the pool, by transfer."""

AGES_US = np.array(AGES_S) * 1_000_000
HOUR_US = 3_600_000_000
INTERIM_US = 60_000_000
"""Interval of the agent's rows about an open connection."""


@dataclass(frozen=True)
class ConnectionArrays:
    """Connections as arrays: by connection, or by connection and transfer."""

    local: Integers
    """Number of the client among those of the PoP."""
    arm: Integers
    start_us: Integers
    """Time of opening, one handshake before the first request, as UNIX time in microseconds."""
    closed_us: Integers
    handshake_us: Integers
    transfers: Integers
    """Number of transfers; later entries of the arrays by transfer are undefined."""
    size_bytes: Integers
    begin_us: Integers
    fct_us: Integers
    segments: Integers
    retransmits: Integers
    rtt_min_us: Integers
    rtt_mean_us: Integers
    rtt_p95_us: Integers
    acked_bytes: Floats
    """Acknowledged bytes by age; NaN: the connection was not open for that long."""
    kind: Integers

    @property
    def interims(self) -> Integers:
        """Number of rows while the connection is open."""
        return np.asarray((self.closed_us - self.start_us - 1) // INTERIM_US)

    @property
    def rows(self) -> Integers:
        """Number of rows: one per transfer, per minute open, and for the close."""
        return self.transfers + self.interims + 1

    def first(self, count: int) -> "ConnectionArrays":
        """Return the first `count` connections."""
        return ConnectionArrays(*(getattr(self, name)[:count] for name in self.__dataclass_fields__))


@dataclass(frozen=True)
class PoolSample:
    """Values drawn from the pools and from the distributions of the classes."""

    measured: dict[str, Floats]
    """Values by connection and transfer."""
    early_bytes: Floats
    size_bytes: Integers
    handshake_us: Integers
    transfers: Integers
    think_us: Integers
    """Time until the next request, by connection and transfer."""


def draw(fleet: Fleet, piece: Piece, count: int, hour_effects: Floats, rng: np.random.Generator) -> ConnectionArrays:
    """Draw connections of a file, unsorted."""
    local = _draw_indices(fleet.local[piece.pop].cumulative, count, rng)
    client = fleet.local[piece.pop].numbers[local]
    hours = slice(piece.slot * SLOT_HOURS, (piece.slot + 1) * SLOT_HOURS)
    slot_hour = _draw_indices(np.cumsum(LOAD[hours]), count, rng)
    hour = slot_hour + hours.start
    start_us = piece.midnight_us + ((hour + rng.random(count)) * HOUR_US).astype(np.int64)
    arm = fleet.arms(fleet.clients.kind[client], hour_effects[local, slot_hour], piece.day, hour, rng)
    sampled = _sample_pool(fleet, client, hour, arm, rng)
    spread = fleet.planted.spread
    shared = fleet.clients.log_factor[client] + spread.hour * hour_effects[local, slot_hour]
    factor = np.exp(shared[:, None] + spread.transfer * rng.standard_normal((count, TRANSFERS)))
    fct_us = np.maximum(np.rint(sampled.measured["fct_us"] * factor), 1).astype(np.int64)
    # The first request follows the handshake; each later one follows the previous object after a pause.
    opened_us, spans = start_us + sampled.handshake_us, fct_us + sampled.think_us
    begin_us = opened_us[:, None] + np.cumsum(spans, axis=1) - spans
    last = np.arange(count), sampled.transfers - 1
    closed_us = begin_us[last] + fct_us[last] + sampled.handshake_us
    is_there = np.arange(TRANSFERS) < sampled.transfers[:, None]
    early = (sampled.early_bytes / sampled.size_bytes[:, None]) / np.exp(shared)[:, None]
    progress = _progress(opened_us, begin_us, fct_us, is_there, early)
    progress[closed_us[:, None] < opened_us[:, None] + AGES_US] = np.nan
    return ConnectionArrays(
        local=local,
        arm=arm,
        start_us=start_us,
        closed_us=closed_us,
        handshake_us=sampled.handshake_us,
        transfers=sampled.transfers,
        size_bytes=sampled.size_bytes,
        begin_us=begin_us,
        fct_us=fct_us,
        acked_bytes=progress * sampled.size_bytes[:, None],
        kind=fleet.clients.kind[client],
        **{name: np.rint(sampled.measured[name]).astype(np.int64) for name in MEASURED if name != "fct_us"},
    )


def _sample_pool(fleet: Fleet, client: Integers, hour: Integers, arm: Integers, rng: np.random.Generator) -> PoolSample:
    count, kinds = len(client), fleet.clients.kind[client]
    measured = {name: np.zeros((count, TRANSFERS)) for name in MEASURED}
    early_bytes = np.full((count, len(AGES_S)), np.nan)
    size_bytes, handshake_us, transfers = (np.zeros(count, dtype=np.int64) for _ in range(3))
    think_us = np.zeros((count, TRANSFERS), dtype=np.int64)
    for number, kind in enumerate(CLASSES):
        indices = np.flatnonzero(kinds == number)
        client_numbers, pool = client[indices], fleet.pools[number]
        rate = np.maximum(fleet.clients.rate[client_numbers] - BUSY[hour[indices]], 0)
        size = _draw_indices(np.cumsum(list(kind.sizes.values())), len(indices), rng)
        cell = pool.cell(
            rate, fleet.clients.rtt[client_numbers], fleet.clients.loss[client_numbers], size, arm[indices]
        )
        connection = rng.integers(pool.connections, size=len(indices))
        for name in MEASURED:
            measured[name][indices, : kind.transfers] = getattr(pool, name)[cell, connection]
        early_bytes[indices] = pool.acked_bytes[cell, connection]
        size_bytes[indices] = sizes_bytes(kind)[size]
        handshake_us[indices] = np.rint(path_rtts_us(kind)[fleet.clients.rtt[client_numbers]])
        has_next = rng.random((len(indices), kind.transfers - 1)) < kind.another
        transfers[indices] = 1 + has_next.cumprod(axis=1).sum(axis=1)
        think_us[indices] = 1e6 * rng.exponential(kind.think_s, (len(indices), TRANSFERS))
    return PoolSample(measured, early_bytes, size_bytes, handshake_us, transfers, think_us)


def _progress(opened_us: Integers, begin_us: Integers, fct_us: Integers, is_there: Booleans, early: Floats) -> Floats:
    """Return the delivered bytes at the ages, in objects, including the delivered fraction of the current one.

    `early` is that fraction for the first object, if the pool has it; otherwise it grows linearly.
    """
    at_us = opened_us[:, None] + AGES_US
    delivered = np.zeros(at_us.shape)
    for number in range(TRANSFERS):
        share = np.clip((at_us - begin_us[:, [number]]) / fct_us[:, [number]], 0, 1) * is_there[:, [number]]
        if number == 0:
            share = np.where(np.isnan(early) | (share >= 1), share, np.minimum(early, 1))
        delivered += share
    # The pool's curve and the linear one may differ at the boundary, so the result is made monotonic.
    return np.asarray(np.maximum.accumulate(delivered, axis=1))


def _draw_indices(cumulative: Floats, count: int, rng: np.random.Generator) -> Integers:
    at = rng.random(count) * cumulative[-1]
    return np.asarray(np.minimum(np.searchsorted(cumulative, at, side="right"), len(cumulative) - 1))
