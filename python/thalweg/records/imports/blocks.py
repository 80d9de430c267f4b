"""Files are read in blocks of rows, several at a time, on all cores.

What is certain of a block becomes columns in one of several threads: polars does that without holding Python's lock.
The other rows of a block are read one by one, in their order, when the block's turn comes.
"""

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol, TypeVar, runtime_checkable

import polars as pl

from thalweg.records.imports.addresses import Addresses
from thalweg.records.imports.items import Importer, Item, SourceFile

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


@dataclass(frozen=True)
class LastItems:
    """What is known only at the end of a file."""

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
                done, result = pending.popleft()
                yield done, result.result()
        while pending:
            done, result = pending.popleft()
            yield done, result.result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
