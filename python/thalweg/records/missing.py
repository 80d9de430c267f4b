"""Reports which columns are null, how often, and how that affects the summary."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from thalweg.records.schema import CLOSE, COLUMNS, INTERIM, TRANSFER

ONLY_OF = {"transfer": (TRANSFER,), "fct_us": (TRANSFER,), "goodput_bps": (TRANSFER,), "close": (CLOSE,)}
"""Columns that apply only to some kinds of rows."""

NEVER_MISSED = ("sampled_one_in",)
"""Columns in which null has a meaning: every connection was recorded."""

WITHOUT = {
    "machine": "Machines cannot be distinguished.",
    "start_us": "Its start is unknown.",
    "duration_us": "Its duration is unknown.",
    "direction": "It is unknown which end opened the connection.",
    "cc": "It is counted as `unknown`, and not compared.",
    "close": "It is unknown how it ended.",
    "sent_bytes": "The retransmit ratio is unknown.",
    "acked_bytes": "It has no goodput and no class of size.",
    "segments": "The share of retransmitted segments is unknown.",
    "retransmits": "The number of retransmitted segments is unknown.",
    "rtt_handshake_us": "Its handshake RTT is unknown.",
    "rtt_min_us": "It is left out of the smallest RTTs.",
    "rtt_smoothed_us": "It is left out of the smoothed RTTs.",
    "rtt_p95_us": "It is left out of the 95th percentiles of the RTT.",
    "rtt_max_us": "It is left out of the queue sizes.",
    "busy_us": "It has no goodput while sending.",
    "busy_goodput_bps": "It is left out of the goodputs while sending.",
    "buffer_bdp": "It is left out of the queue sizes.",
    "fct_us": "It has no completion time.",
    "goodput_bps": "It is left out of the goodputs of transfers.",
}


@dataclass(frozen=True)
class Missing:
    """A column that is null in some rows."""

    column: str
    connections: float | None
    """Fraction of connections in which the column is null; None: no connections, or the column does not apply to them.
    """
    transfers: float | None
    """Fraction of transfers in which the column is null; None: no transfers, or the column does not apply to them."""
    never: tuple[str, ...]
    """Sources in which the column is always null."""
    why: str
    """Reasons for a null value, from the reference."""
    means: str
    """Effect of a null value; empty if no summary needs the column."""


def empties(rows: pl.LazyFrame) -> pl.LazyFrame:
    """Count rows and null values per kind and source."""
    optional = [name for name, column in COLUMNS.items() if column.is_optional]
    return rows.group_by("kind", "source").agg(pl.len().alias("rows"), pl.col(optional).null_count())


def missing(counts: pl.DataFrame) -> list[Missing]:
    """Return the columns with null values, from the counts of `empties`."""
    optional = [name for name, column in COLUMNS.items() if column.is_optional and name not in NEVER_MISSED]
    return [column for name in optional for column in _of(name, counts)]


def _of(name: str, counts: pl.DataFrame) -> Iterator[Missing]:
    kinds = ONLY_OF.get(name, (CLOSE, INTERIM, TRANSFER))
    counts = counts.filter(pl.col("kind").is_in(kinds)).select("kind", "source", "rows", empty=name)
    if not counts["empty"].sum():
        return
    is_transfer = pl.col("kind") == TRANSFER
    by_source = counts.group_by("source").agg(pl.col("rows", "empty").sum()).sort("source")
    yield Missing(
        column=name,
        connections=_share(counts.filter(~is_transfer)),
        transfers=_share(counts.filter(is_transfer)),
        never=tuple(by_source.filter(pl.col("rows") == pl.col("empty"))["source"]),
        why=_why(COLUMNS[name].about),
        means=WITHOUT.get(name, ""),
    )


def _share(counts: pl.DataFrame) -> float | None:
    rows = int(counts["rows"].sum())
    return int(counts["empty"].sum()) / rows if rows else None


def _why(description: str) -> str:
    """Extract the reasons for a null value from a column's description.

    >>> _why("Its RTT. Empty: no ACK came; or nothing was sent.")
    'no ACK came; or nothing was sent.'
    >>> _why("Its RTT.")
    ''
    """
    match = re.search(r"\b[Ee]mpty:?\s+(.+)$", " ".join(description.split()))
    return match[1] if match else ""
