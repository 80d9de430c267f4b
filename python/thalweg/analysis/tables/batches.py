"""Batches of experiments, because the time series of an entire run may not fit into memory."""

from collections.abc import Iterator, Sequence

from thalweg.results import Run

BATCH_BYTES = 8_000_000
"""Maximum bytes of files that are read at once; in memory they take many times as much."""

BATCH_EXPERIMENTS = 500
"""Maximum number of experiments that are read at once, because each has one file per table."""


def batches(run: Run, tables: Sequence[str], max_bytes: int = BATCH_BYTES) -> Iterator[list[str]]:
    """Yield batches of ids of trustworthy, complete experiments: some with at most `max_bytes` in `tables`, or one."""
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
