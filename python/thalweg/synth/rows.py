"""Converts connections to rows of records: for their transfers, for each minute open, and for the close."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from thalweg.records.imports.write import SCHEMA
from thalweg.synth.classes import ARMS, CLASSES
from thalweg.synth.connections import INTERIM_US, ConnectionArrays
from thalweg.synth.pieces import Piece
from thalweg.synth.planted import PAYLOAD_BYTES
from thalweg.synth.pool import AGES_S, Array, Booleans, Integers
from thalweg.synth.world import Fleet

Block = Mapping[str, Array]
"""Rows of one kind, as columns by name; missing columns are null. Texts are indices of words."""

KINDS = ("transfer", "interim", "close")
TRANSFER, INTERIM, CLOSE = range(len(KINDS))

CGROUPS = sorted({kind.cgroup for kind in CLASSES})
CGROUP_OF = np.array([CGROUPS.index(kind.cgroup) for kind in CLASSES])
"""Index of the cgroup's word, by class. Words are unique; otherwise Parquet's dictionary would be ambiguous."""

NETNS = 4_026_531_840
"""Inode of a machine's initial network namespace."""
HTTPS = 443
LOCAL = {4: "203.0.113.0/24", 6: "2001:db8:ffff::/48"}
"""Addresses of the PoPs, from documentation ranges and truncated."""


@dataclass(frozen=True)
class Words:
    """Texts of the columns of a file, by their index."""

    by_column: Mapping[str, list[str]]

    @classmethod
    def of(cls, fleet: Fleet, piece: Piece) -> "Words":
        """Collect the texts of a file."""
        addresses = [fleet.clients.addresses[number] for number in fleet.local[piece.pop].numbers]
        return cls(
            {
                "kind": list(KINDS), "source": ["agent"], "machine": [piece.machine_name], "direction": ["in"],
                "local_address": list(LOCAL.values()), "remote_address": addresses, "cgroup": CGROUPS,
                "cc": list(ARMS), "cc_at_open": list(ARMS), "close": ["remote_fin"],
            }
        )  # fmt: skip


def table(fleet: Fleet, piece: Piece, connections: ConnectionArrays, first: int, empty: int) -> pa.Table:
    """Return connections as rows, sorted by their end.

    `first` is the number of the first connection within the file. `empty` connections without data, such as health
    checks, fill up to the requested number of rows.
    """
    ids = (piece.number << 32) + first + np.arange(len(connections.arm))
    shared = _shared(fleet, piece, connections)
    blocks = [
        _transfers(connections, shared, ids),
        _interims(connections, shared, ids),
        _closed(connections, shared, ids),
    ]
    if empty:
        blocks.append(_empty(fleet, piece, shared, (piece.number << 32) + first + len(ids), empty))
    lengths = [len(block["end_us"]) for block in blocks]
    end_us = np.concatenate([block["end_us"] for block in blocks])
    order = np.argsort(end_us, kind="stable")
    words = Words.of(fleet, piece).by_column
    columns = [_column(field, blocks, lengths, order, words.get(field.name)) for field in SCHEMA]
    fields = [field.with_type(column.type) for field, column in zip(SCHEMA, columns, strict=True)]
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


def schema() -> pa.Schema:
    """Return the columns of such a table; texts are dictionary-encoded."""
    coded = pa.dictionary(pa.int32(), pa.string())
    return pa.schema([field.with_type(coded) if field.type == pa.string() else field for field in SCHEMA])


def _shared(fleet: Fleet, piece: Piece, connections: ConnectionArrays) -> dict[str, Array]:
    count = len(connections.arm)
    version = fleet.clients.ip_version[fleet.local[piece.pop].numbers[connections.local]]
    zeros = np.zeros(count, dtype=np.int32)
    return {
        "source": zeros, "machine": zeros, "direction": zeros, "joined": zeros,
        "ip_version": version, "local_address": (version == 6).astype(np.int32),
        "local_port": np.full(count, HTTPS), "remote_address": connections.local, "netns": np.full(count, NETNS),
        "cgroup": CGROUP_OF[connections.kind], "cc": connections.arm, "cc_at_open": connections.arm,
        "mss_bytes": np.full(count, PAYLOAD_BYTES), "rtt_handshake_us": connections.handshake_us,
    }  # fmt: skip


def _transfers(connections: ConnectionArrays, shared: Block, ids: Integers) -> Block:
    connection, transfer = np.nonzero(_is_present(connections))
    size_bytes, fct_us = connections.size_bytes[connection], connections.fct_us[connection, transfer]
    measured = {
        "acked_bytes": size_bytes,
        "segments": connections.segments[connection, transfer],
        "retransmits": connections.retransmits[connection, transfer],
        "rtt_min_us": connections.rtt_min_us[connection, transfer],
        "rtt_smoothed_us": connections.rtt_mean_us[connection, transfer],
        "rtt_p95_us": connections.rtt_p95_us[connection, transfer],
        "busy_us": fct_us,
    }
    begin_us = connections.begin_us[connection, transfer]
    return {
        **{name: column[connection] for name, column in shared.items()}, **_with_derived(measured),
        "end_us": begin_us + fct_us, "connection": ids[connection], "kind": np.full(len(connection), TRANSFER),
        "transfer": transfer, "start_us": begin_us, "duration_us": fct_us,
        "fct_us": fct_us, "goodput_bps": 8e6 * size_bytes / fct_us,
    }  # fmt: skip


def _interims(connections: ConnectionArrays, shared: Block, ids: Integers) -> Block:
    connection = np.repeat(np.arange(len(connections.arm)), connections.interims)
    minute = (
        np.arange(len(connection))
        - np.repeat(np.cumsum(connections.interims) - connections.interims, connections.interims)
        + 1
    )
    at_us = connections.start_us[connection] + minute * INTERIM_US
    is_done = _is_present(connections)[connection] & (
        (connections.begin_us + connections.fct_us)[connection] <= at_us[:, None]
    )
    return {
        **{name: column[connection] for name, column in shared.items()}, **_summed(connections, connection, is_done),
        "end_us": at_us, "connection": ids[connection], "kind": np.full(len(connection), INTERIM),
        "start_us": connections.start_us[connection], "duration_us": at_us - connections.start_us[connection],
    }  # fmt: skip


def _closed(connections: ConnectionArrays, shared: Block, ids: Integers) -> Block:
    count = len(connections.arm)
    ages = {f"acked_{age}s_bytes": np.rint(connections.acked_bytes[:, number]) for number, age in enumerate(AGES_S)}
    return {
        **shared, **_summed(connections, np.arange(count), _is_present(connections)), **ages,
        "end_us": connections.closed_us, "connection": ids, "kind": np.full(count, CLOSE),
        "start_us": connections.start_us, "duration_us": connections.closed_us - connections.start_us,
        "close": np.zeros(count, np.int32),
    }  # fmt: skip


def _empty(fleet: Fleet, piece: Piece, shared: Block, number: int, count: int) -> Block:
    """Return rows of connections that opened and closed at the beginning of the day and whose algorithm is unknown."""
    at_us = np.full(count, piece.midnight_us)
    zeros = np.zeros(count, dtype=np.int64)
    client = int(fleet.local[piece.pop].numbers[0])
    version = np.full(count, fleet.clients.ip_version[client])
    common = dict.fromkeys(shared, zeros) | {
        "ip_version": version, "local_address": (version == 6).astype(np.int32), "local_port": zeros + HTTPS,
        "netns": zeros + NETNS, "mss_bytes": zeros + PAYLOAD_BYTES,
    }  # fmt: skip
    for name in ("rtt_handshake_us", "cc", "cc_at_open"):
        del common[name]
    return {
        **common, "end_us": at_us, "connection": number + np.arange(count), "kind": zeros + CLOSE, "close": zeros,
        "start_us": at_us, "duration_us": zeros, "acked_bytes": zeros, "sent_bytes": zeros, "segments": zeros,
        "retransmits": zeros, "retransmitted_bytes": zeros,
    }  # fmt: skip


def _is_present(connections: ConnectionArrays) -> Booleans:
    return np.asarray(np.arange(connections.fct_us.shape[1]) < connections.transfers[:, None])


def _summed(connections: ConnectionArrays, connection: Integers, is_done: Booleans) -> dict[str, Array]:
    """Return sums over the completed transfers of connections; of round-trip times, the extremes."""
    busy_us = np.where(is_done, connections.fct_us[connection], 0).sum(axis=1)
    has_none = ~is_done.any(axis=1)
    far = np.iinfo(np.int64).max
    rtts = {
        "rtt_min_us": np.where(is_done, connections.rtt_min_us[connection], far).min(axis=1).astype(np.float64),
        "rtt_smoothed_us": np.where(is_done, connections.rtt_mean_us[connection], 0).max(axis=1).astype(np.float64),
        "rtt_p95_us": np.where(is_done, connections.rtt_p95_us[connection], 0).max(axis=1).astype(np.float64),
    }
    for column in rtts.values():
        column[has_none] = np.nan
    return _with_derived(
        {
            "acked_bytes": connections.size_bytes[connection] * is_done.sum(axis=1),
            "segments": np.where(is_done, connections.segments[connection], 0).sum(axis=1),
            "retransmits": np.where(is_done, connections.retransmits[connection], 0).sum(axis=1),
            "busy_us": busy_us,
            **rtts,
        }
    )


def _with_derived(measured: Block) -> dict[str, Array]:
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
    parts = [block.get(field.name) for block in blocks]
    present = [part for part in parts if part is not None]
    if not present:
        return pa.nulls(len(order), pa.dictionary(pa.int32(), pa.string()) if field.type == pa.string() else field.type)
    kind = np.result_type(*(part.dtype for part in present))
    filled = [np.zeros(n, kind) if part is None else part for part, n in zip(parts, lengths, strict=True)]
    values = np.concatenate(filled)[order]
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
