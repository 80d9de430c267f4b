"""Connections as rows of records: one for each transfer, one for each minute that it is open, one for its end."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from thalweg.records.imports.write import SCHEMA
from thalweg.synth.classes import ARMS, CLASSES
from thalweg.synth.connections import INTERIM_US, Drawn
from thalweg.synth.pieces import Piece
from thalweg.synth.planted import PAYLOAD_BYTES
from thalweg.synth.pool import AGES_S, Array, Booleans, Integers
from thalweg.synth.world import World

Block = Mapping[str, Array]
"""Rows of one kind: columns by name; those that are not here are empty. Of texts there is the number of the word."""

KINDS = ("transfer", "interim", "close")
TRANSFER, INTERIM, CLOSE = range(len(KINDS))

CGROUPS = sorted({kind.cgroup for kind in CLASSES})
CGROUP_OF = np.array([CGROUPS.index(kind.cgroup) for kind in CLASSES])
"""Number of the word, by the number of the class. A word is there once: else Parquet writes one or the other."""

NETNS = 4_026_531_840
"""Inode of a machine's own network namespace: the first one that Linux numbers."""
HTTPS = 443
LOCAL = {4: "203.0.113.0/24", 6: "2001:db8:ffff::/48"}
"""Addresses of the PoPs: for documentation, and truncated."""


@dataclass(frozen=True)
class Words:
    """Texts that the columns of a file have, by their number."""

    by_column: Mapping[str, list[str]]

    @classmethod
    def of(cls, world: World, piece: Piece) -> "Words":
        """Collect those of a file."""
        addresses = [world.clients.addresses[number] for number in world.local[piece.pop].numbers]
        return cls(
            {
                "kind": list(KINDS), "source": ["agent"], "machine": [piece.machine_name], "direction": ["in"],
                "local_address": list(LOCAL.values()), "remote_address": addresses, "cgroup": CGROUPS,
                "cc": list(ARMS), "cc_at_open": list(ARMS), "close": ["remote_fin"],
            }
        )  # fmt: skip


def table(world: World, piece: Piece, drawn: Drawn, first: int, empty: int) -> pa.Table:
    """Write connections as rows, sorted by their end.

    `first` is the number of the first one within the file. `empty` rows more are of connections that carried nothing,
    such as those of health checks: so there are as many rows as were asked for.
    """
    ids = (piece.number << 32) + first + np.arange(len(drawn.arm))
    shared = _shared(world, piece, drawn)
    blocks = [_transfers(drawn, shared, ids), _interims(drawn, shared, ids), _closed(drawn, shared, ids)]
    if empty:
        blocks.append(_empty(world, piece, shared, (piece.number << 32) + first + len(ids), empty))
    lengths = [len(block["end_us"]) for block in blocks]
    end_us = np.concatenate([block["end_us"] for block in blocks])
    order = np.argsort(end_us, kind="stable")
    words = Words.of(world, piece).by_column
    columns = [_column(field, blocks, lengths, order, words.get(field.name)) for field in SCHEMA]
    fields = [field.with_type(column.type) for field, column in zip(SCHEMA, columns, strict=True)]
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


def schema() -> pa.Schema:
    """Return the columns of such a table: texts have a dictionary, which readers do not see."""
    coded = pa.dictionary(pa.int32(), pa.string())
    return pa.schema([field.with_type(coded) if field.type == pa.string() else field for field in SCHEMA])


def _shared(world: World, piece: Piece, drawn: Drawn) -> dict[str, Array]:
    """Return what all rows of a connection have."""
    count = len(drawn.arm)
    version = world.clients.ip_version[world.local[piece.pop].numbers[drawn.local]]
    nothing = np.zeros(count, dtype=np.int32)
    return {
        "source": nothing, "machine": nothing, "direction": nothing, "joined": nothing,
        "ip_version": version, "local_address": (version == 6).astype(np.int32),
        "local_port": np.full(count, HTTPS), "remote_address": drawn.local, "netns": np.full(count, NETNS),
        "cgroup": CGROUP_OF[drawn.kind], "cc": drawn.arm, "cc_at_open": drawn.arm,
        "mss_bytes": np.full(count, PAYLOAD_BYTES), "rtt_handshake_us": drawn.handshake_us,
    }  # fmt: skip


def _transfers(drawn: Drawn, shared: Block, ids: Integers) -> Block:
    whose, which = np.nonzero(_there(drawn))
    size_bytes, fct_us = drawn.size_bytes[whose], drawn.fct_us[whose, which]
    measured = {
        "acked_bytes": size_bytes,
        "segments": drawn.segments[whose, which],
        "retransmits": drawn.retransmits[whose, which],
        "rtt_min_us": drawn.rtt_min_us[whose, which],
        "rtt_smoothed_us": drawn.rtt_mean_us[whose, which],
        "rtt_p95_us": drawn.rtt_p95_us[whose, which],
        "busy_us": fct_us,
    }
    begin_us = drawn.begin_us[whose, which]
    return {
        **{name: column[whose] for name, column in shared.items()}, **_with_derived(measured),
        "end_us": begin_us + fct_us, "connection": ids[whose], "kind": np.full(len(whose), TRANSFER),
        "transfer": which, "start_us": begin_us, "duration_us": fct_us,
        "fct_us": fct_us, "goodput_bps": 8e6 * size_bytes / fct_us,
    }  # fmt: skip


def _interims(drawn: Drawn, shared: Block, ids: Integers) -> Block:
    """Tell, every minute that a connection is open, what its objects so far came to."""
    whose = np.repeat(np.arange(len(drawn.arm)), drawn.interims)
    minute = np.arange(len(whose)) - np.repeat(np.cumsum(drawn.interims) - drawn.interims, drawn.interims) + 1
    at_us = drawn.start_us[whose] + minute * INTERIM_US
    is_done = _there(drawn)[whose] & ((drawn.begin_us + drawn.fct_us)[whose] <= at_us[:, None])
    return {
        **{name: column[whose] for name, column in shared.items()}, **_summed(drawn, whose, is_done),
        "end_us": at_us, "connection": ids[whose], "kind": np.full(len(whose), INTERIM),
        "start_us": drawn.start_us[whose], "duration_us": at_us - drawn.start_us[whose],
    }  # fmt: skip


def _closed(drawn: Drawn, shared: Block, ids: Integers) -> Block:
    count = len(drawn.arm)
    ages = {f"acked_{age}s_bytes": np.rint(drawn.acked_bytes[:, number]) for number, age in enumerate(AGES_S)}
    return {
        **shared, **_summed(drawn, np.arange(count), _there(drawn)), **ages,
        "end_us": drawn.closed_us, "connection": ids, "kind": np.full(count, CLOSE),
        "start_us": drawn.start_us, "duration_us": drawn.closed_us - drawn.start_us, "close": np.zeros(count, np.int32),
    }  # fmt: skip


def _empty(world: World, piece: Piece, shared: Block, number: int, count: int) -> Block:
    """Make rows of connections that opened and closed at the beginning of the day, whose algorithm is unknown."""
    at_us = np.full(count, piece.midnight_us)
    nothing = np.zeros(count, dtype=np.int64)
    client = int(world.local[piece.pop].numbers[0])
    version = np.full(count, world.clients.ip_version[client])
    alike = dict.fromkeys(shared, nothing) | {
        "ip_version": version, "local_address": (version == 6).astype(np.int32), "local_port": nothing + HTTPS,
        "netns": nothing + NETNS, "mss_bytes": nothing + PAYLOAD_BYTES,
    }  # fmt: skip
    for name in ("rtt_handshake_us", "cc", "cc_at_open"):
        del alike[name]
    return {
        **alike, "end_us": at_us, "connection": number + np.arange(count), "kind": nothing + CLOSE, "close": nothing,
        "start_us": at_us, "duration_us": nothing, "acked_bytes": nothing, "sent_bytes": nothing, "segments": nothing,
        "retransmits": nothing, "retransmitted_bytes": nothing,
    }  # fmt: skip


def _there(drawn: Drawn) -> Booleans:
    """Return which places of the arrays by transfer hold one."""
    return np.asarray(np.arange(drawn.fct_us.shape[1]) < drawn.transfers[:, None])


def _summed(drawn: Drawn, whose: Integers, is_done: Booleans) -> dict[str, Array]:
    """Add up the transfers of a connection that are done."""
    busy_us = np.where(is_done, drawn.fct_us[whose], 0).sum(axis=1)
    none = ~is_done.any(axis=1)
    far = np.iinfo(np.int64).max
    rtts = {
        "rtt_min_us": np.where(is_done, drawn.rtt_min_us[whose], far).min(axis=1).astype(np.float64),
        "rtt_smoothed_us": np.where(is_done, drawn.rtt_mean_us[whose], 0).max(axis=1).astype(np.float64),
        "rtt_p95_us": np.where(is_done, drawn.rtt_p95_us[whose], 0).max(axis=1).astype(np.float64),
    }
    for column in rtts.values():
        column[none] = np.nan
    return _with_derived(
        {
            "acked_bytes": drawn.size_bytes[whose] * is_done.sum(axis=1),
            "segments": np.where(is_done, drawn.segments[whose], 0).sum(axis=1),
            "retransmits": np.where(is_done, drawn.retransmits[whose], 0).sum(axis=1),
            "busy_us": busy_us,
            **rtts,
        }
    )


def _with_derived(measured: Block) -> dict[str, Array]:
    """Add what follows from the bytes, the segments and the time."""
    again_bytes = measured["retransmits"] * PAYLOAD_BYTES
    with np.errstate(divide="ignore", invalid="ignore"):
        busy_goodput_bps = np.where(
            measured["busy_us"] > 0, 8e6 * measured["acked_bytes"] / measured["busy_us"], np.nan
        )
    return {
        **measured,
        "sent_bytes": measured["acked_bytes"] + again_bytes,
        "retransmitted_bytes": again_bytes,
        "busy_goodput_bps": busy_goodput_bps,
    }


def _column(
    field: pa.Field, blocks: list[Block], lengths: list[int], order: Integers, words: list[str] | None
) -> pa.Array:
    """Assemble a column: empty where a block lacks it or has no number."""
    parts = [block.get(field.name) for block in blocks]
    there = [part for part in parts if part is not None]
    if not there:
        return pa.nulls(len(order), pa.dictionary(pa.int32(), pa.string()) if field.type == pa.string() else field.type)
    kind = np.result_type(*(part.dtype for part in there))
    whole = [np.zeros(n, kind) if part is None else part for part, n in zip(parts, lengths, strict=True)]
    values = np.concatenate(whole)[order]
    is_empty = np.concatenate([np.full(n, part is None) for part, n in zip(parts, lengths, strict=True)])[order]
    if np.issubdtype(kind, np.floating):
        is_empty |= np.isnan(values)
        values = np.where(is_empty, 0, values)
    if words is not None:
        codes = pa.array(values.astype(np.int32), mask=is_empty)
        return pa.DictionaryArray.from_arrays(codes, pa.array(words, pa.string()))
    if field.type == pa.bool_():
        return pa.array(values.astype(bool), mask=is_empty)
    return pa.array(values.astype(np.uint64 if field.type == pa.uint64() else np.float64), mask=is_empty)
