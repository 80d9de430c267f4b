"""Writes records in the layout of a fleet's object storage, with the truth and prefixes.

    DIR/records/day=2026-01-05/pop=ams/ams1.20260105T060000Z-1767592800-1767614399.parquet
    DIR/truth.json
    DIR/prefixes.csv

All files are renamed to their final paths when they are complete.
"""

import json
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from thalweg.errors import Exit, ThalwegError
from thalweg.records.imports.write import FORM
from thalweg.scratch import Scratch
from thalweg.synth import clients, rows
from thalweg.synth.chance import Purpose, stream
from thalweg.synth.classes import CLASSES
from thalweg.synth.connections import ConnectionArrays, draw
from thalweg.synth.pieces import Piece, pieces
from thalweg.synth.pool import Floats
from thalweg.synth.truths import truth
from thalweg.synth.world import Fleet

RECORDS, TRUTH, PREFIXES = "records", "truth.json", "prefixes.csv"

GROUP_ROWS = 131_072

ROWS_PER_CONNECTION = 2.75
"""Estimated rows per connection; if rows are missing, all connections are drawn again."""

MIN_ROWS_PER_CONNECTION = 2

Listener = Callable[[int, int], None]
"""Callback with the number of written files and the total."""


@dataclass(frozen=True)
class Written:
    """Result of writing a fleet's records."""

    folder: Path
    files: int
    rows: int


def check_free(out: Path) -> None:
    """Check that the output folder contains no records, truth or prefixes yet.

    Raises:
        ThalwegError: If it does.
    """
    for name in (RECORDS, TRUTH, PREFIXES):
        if (out / name).exists():
            raise ThalwegError(
                "exists",
                f"`{out / name}` exists already",
                place="--out",
                found=str(out / name),
                expected="a folder without records",
                hint=f"choose another folder with --out DIR, or: rm -r {out / name}",
                exit_code=Exit.CANNOT_WRITE,
            )


def write(
    fleet: Fleet, out: Path, *, threads: int | None = None, listener: Listener = lambda done, of: None
) -> Written:
    """Write the records, the truth and the prefixes into the folder `out`; incomplete files are removed.

    Raises:
        ThalwegError: If one of them exists, or the folder cannot be written.
    """
    check_free(out)
    planned = pieces(fleet.settings)
    new_folders = [folder for folder in (out, *out.parents) if not folder.exists()]
    try:
        out.mkdir(parents=True, exist_ok=True)
        with Scratch(".synth.", out) as temporary:
            _write_all(fleet, planned, temporary / RECORDS, threads or os.cpu_count() or 1, listener)
            (temporary / TRUTH).write_text(json.dumps(truth(fleet), indent=2) + "\n", encoding="utf-8")
            (temporary / PREFIXES).write_text(prefixes(), encoding="utf-8")
            for name in (TRUTH, PREFIXES, RECORDS):
                (temporary / name).rename(out / name)
    except BaseException as error:
        for folder in new_folders:
            with suppress(OSError):
                folder.rmdir()
        if isinstance(error, OSError):
            raise _cannot_write(out, error) from error
        raise
    return Written(out / RECORDS, len(planned), sum(piece.rows for piece in planned))


def prefixes() -> str:
    """Return a table of the clients' networks as CSV: AS, country and class of each."""
    lines = ["network,asn,as_name,country,class"]
    for number, kind in enumerate(CLASSES):
        for network, country in clients.networks(number):
            lines.append(f"{network},{kind.asn},{kind.as_name},{country},{kind.name}")
    return "\n".join(lines) + "\n"


def _write_all(fleet: Fleet, planned: list[Piece], folder: Path, threads: int, listener: Listener) -> None:
    """Write the files in several threads, because numpy and Parquet release the GIL."""
    folder.mkdir()
    for name in {Path(piece.place).parent for piece in planned}:
        (folder / name).mkdir(parents=True)
    with ThreadPoolExecutor(threads) as pool:
        waiting = [pool.submit(write_piece, fleet, piece, folder / piece.place) for piece in planned]
        try:
            for number, future in enumerate(as_completed(waiting), 1):
                future.result()
                listener(number, len(planned))
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise


def write_piece(fleet: Fleet, piece: Piece, file: Path) -> None:
    """Write a file."""
    # Without pyarrow's own schema, readers of the file get plain strings.
    with pq.ParquetWriter(file, rows.schema(), compression_level=1, store_schema=False, **FORM) as writer:
        for table in tables(fleet, piece):
            writer.write_table(table, row_group_size=GROUP_ROWS)


def tables(fleet: Fleet, piece: Piece) -> Iterator[pa.Table]:
    """Yield the rows of a file, one row group at a time."""
    hour_effects = fleet.hour_effects(piece.day, piece.pop, piece.slot)
    rng = stream(fleet.settings.seed, Purpose.CONNECTIONS, piece.number)
    first = 0
    for begin in range(0, piece.rows, GROUP_ROWS):
        row_count = min(GROUP_ROWS, piece.rows - begin)
        connections, empty = _fitting(fleet, piece, row_count, hour_effects, rng)
        yield rows.table(fleet, piece, connections, first, empty)
        first += len(connections.arm) + empty


def _fitting(
    fleet: Fleet, piece: Piece, row_count: int, hour_effects: Floats, rng: np.random.Generator
) -> tuple[ConnectionArrays, int]:
    """Draw connections for the given number of rows, and return the number of remaining rows."""
    for count in (int(row_count / ROWS_PER_CONNECTION) + 1, row_count // MIN_ROWS_PER_CONNECTION + 1):
        connections = draw(fleet, piece, count, hour_effects, rng)
        total = np.cumsum(connections.rows)
        if total[-1] >= row_count:
            break
    fit = int(np.searchsorted(total, row_count, side="right"))
    return connections.first(fit), row_count - (int(total[fit - 1]) if fit else 0)


def _cannot_write(out: Path, error: OSError) -> ThalwegError:
    return ThalwegError(
        "cannot-write",
        f"records cannot be written to `{out}`: {(error.strerror or str(error)).lower()}",
        place=str(out),
        hint="choose another folder with --out DIR; a million rows need about 55 MB",
        exit_code=Exit.CANNOT_WRITE,
    )
