"""Size classes, so that completion times of small and large objects are not compared with each other."""

from dataclasses import dataclass

import polars as pl


@dataclass(frozen=True)
class Size:
    """A size class of transfers."""

    title: str
    least_bytes: int


SIZES = (
    Size("below 10 kB", 0),
    Size("10 to 100 kB", 10_000),
    Size("100 kB to 1 MB", 100_000),
    Size("1 to 10 MB", 1_000_000),
    Size("10 to 100 MB", 10_000_000),
    Size("100 MB and more", 100_000_000),
)
"""Size classes in ascending order. The first fits into the usual initial window (RFC 6928), so it takes one round trip
without loss.
"""


def size_class() -> pl.Expr:
    """Return the number of the size class of each row; null if its size is unknown."""
    size = pl.coalesce("acked_bytes", "sent_bytes")
    number: pl.Expr = pl.when(size.is_not_null()).then(pl.lit(0))
    for index, size_range in enumerate(SIZES[1:], 1):
        number = pl.when(size >= size_range.least_bytes).then(pl.lit(index)).otherwise(number)
    return number.cast(pl.Int32)
