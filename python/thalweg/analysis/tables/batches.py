"""Batches of experiments, since the time series of a whole run may not fit into memory."""

from collections.abc import Iterator, Sequence

from thalweg.results import Run

BATCH_BYTES = 8_000_000
"""Bytes of files that are read at once; in memory they are ten to twenty times as many."""

BATCH_EXPERIMENTS = 500
"""Maximum number of experiments that are read at once: each has a file of every table."""


def batches(run: Run, tables: Sequence[str], max_bytes: int = BATCH_BYTES) -> Iterator[list[str]]:
    """Return the ids of complete, trustworthy experiments, as many at a time as have `max_bytes` in `tables`.

    An experiment with more is a batch of its own.
    """
    batch: list[str] = []
    total = 0
    for id in run.trustworthy_ids:
        size = sum(_size(run, table, id) for table in tables)
        if batch and (total + size > max_bytes or len(batch) == BATCH_EXPERIMENTS):
            yield batch
            batch, total = [], 0
        batch.append(id)
        total += size
    if batch:
        yield batch


def _size(run: Run, table: str, id: str) -> int:
    file = run.path / table / f"{id}.parquet"
    return file.stat().st_size if file.exists() else 0
