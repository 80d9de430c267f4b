"""Reads files in blocks of rows, several at a time, on several cores.

Worker threads convert the regular rows of a block to columns; polars does so without holding Python's GIL. The other
rows of a block are parsed one by one, in order, when the block is consumed.
"""

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar, runtime_checkable

import polars as pl

from thalweg.records.imports.addresses import Addresses
from thalweg.records.imports.items import Importer, Item, SourceFile
from thalweg.records.imports.vectorized import CERTAIN, LINE

MAX_THREADS = 8
"""Default maximum number of threads that convert blocks."""

Result = TypeVar("Result")


class Block(Protocol):
    """A batch of rows."""

    def columns(self, addresses: Addresses) -> pl.DataFrame:
        """Return the columns of all rows, with `LINE` and `CERTAIN`; empty without rows. Thread-safe."""

    def items(self, rows: Sequence[int]) -> Iterator[Item]:
        """Parse some rows one by one; called once for each block, in the order of blocks, after `columns`."""


@runtime_checkable
class BlockImporter(Importer, Protocol):
    """An importer that can read a source in blocks."""

    def blocks(self, source: SourceFile) -> Iterator[Block] | None:
        """Read a file in blocks; `None` if its format can only be parsed row by row."""


Row = TypeVar("Row")


class RowBlock(Generic[Row]):
    """Parsed rows with their line numbers, and items that are not rows."""

    def __init__(
        self,
        rows: Sequence[tuple[int, Row] | Item],
        columns: Callable[[Addresses, pl.Series, Sequence[Row]], pl.DataFrame],
        read: Callable[[int, Row], Item],
    ) -> None:
        self._rows = rows
        self._columns = columns
        self._read = read

    def columns(self, addresses: Addresses) -> pl.DataFrame:
        """Return the columns of the rows; items that are not rows are marked as uncertain."""
        rows = [row for row in self._rows if not isinstance(row, Item)]
        numbers = pl.Series([number for number, _ in rows], dtype=pl.UInt64)
        frame = self._columns(addresses, numbers, [row for _, row in rows]).with_columns(numbers.alias(LINE))
        if len(rows) == len(self._rows):
            return frame
        is_row = pl.Series([not isinstance(row, Item) for row in self._rows], dtype=pl.Boolean)
        indices = pl.select(pl.when(is_row).then(is_row.cum_sum().cast(pl.Int64) - 1)).to_series()
        frame = frame.select(pl.all().gather(indices))
        return frame.with_columns(pl.col(CERTAIN).fill_null(False))

    def items(self, rows: Sequence[int]) -> Iterator[Item]:
        """Parse rows one by one."""
        for row in rows:
            entry = self._rows[row]
            yield entry if isinstance(entry, Item) else self._read(*entry)


@dataclass(frozen=True)
class LastItems:
    """A block of items that are complete only at the end of a file."""

    found: Callable[[], Iterator[Item]]

    def columns(self, addresses: Addresses) -> pl.DataFrame:
        """Return no rows."""
        return pl.DataFrame()

    def items(self, rows: Sequence[int]) -> Iterator[Item]:
        """Return the items."""
        return self.found()


def in_threads(
    blocks: Iterator[Block], work: Callable[[Block], Result], *, threads: int | None = None
) -> Iterator[tuple[Block, Result]]:
    """Apply a function to each block in several threads; yield blocks and results in order."""
    count = threads or min(os.cpu_count() or 1, MAX_THREADS)
    pending: deque[tuple[Block, Future[Result]]] = deque()
    pool = ThreadPoolExecutor(count, "import")
    try:
        for block in blocks:
            pending.append((block, pool.submit(work, block)))
            if len(pending) > count:
                first_block, result = pending.popleft()
                yield first_block, result.result()
        while pending:
            first_block, result = pending.popleft()
            yield first_block, result.result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
