"""Files are read in blocks of rows, several at a time, on all cores.

Regular rows of a block become columns in one of several threads: polars does that without holding Python's lock. The
other rows of a block are read one by one, in order, when the block is due.
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
"""Threads that convert blocks: more would wait for the one that reads the file."""

Result = TypeVar("Result")


class Block(Protocol):
    """Rows that are read together."""

    def columns(self, addresses: Addresses) -> pl.DataFrame:
        """Return the columns of all rows, with `LINE` and `CERTAIN`. Any thread may call it."""

    def items(self, rows: Sequence[int]) -> Iterator[Item]:
        """Read some rows one by one; called once for each block, in the order of blocks, after `columns`."""


@runtime_checkable
class BlockImporter(Importer, Protocol):
    """A source of records that can be read in blocks."""

    def blocks(self, source: SourceFile) -> Iterator[Block] | None:
        """Read a file in blocks; `None` if its form allows only rows one by one."""


Row = TypeVar("Row")
"""An importer's form of a row before it becomes columns."""


class RowBlock(Generic[Row]):
    """Rows that Python has read, with the numbers of their lines; among them items that are not rows."""

    def __init__(
        self,
        rows: Sequence[tuple[int, Row] | Item],
        columns: Callable[[Addresses, pl.Series, Sequence[Row]], pl.DataFrame],
        read: Callable[[int, Row], Item],
    ) -> None:
        """Initialise with the rows, and the conversions of all to columns and of one to an item."""
        self._rows = rows
        self._columns = columns
        self._read = read

    def columns(self, addresses: Addresses) -> pl.DataFrame:
        """Return the columns of rows; items that are not rows are not certain."""
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
        """Read rows one by one."""
        for row in rows:
            entry = self._rows[row]
            yield entry if isinstance(entry, Item) else self._read(*entry)


@dataclass(frozen=True)
class LastItems:
    """State that is complete only at the end of a file."""

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
    """Do something with each block, several at a time; yields blocks and results in their order."""
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
