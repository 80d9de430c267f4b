"""Files of records as one table of an engine, with the columns that a judgement needs, whoever wrote them.

Files are taken as `thalweg.records` finds them: merged ones without their parts, damaged and foreign ones left out by
name. What older versions did not write is empty. A part `key=value` of a file's path is a column, as object stores have
it.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import ibis
import polars as pl

from thalweg.advise.engines import Engine

WHOLE = "int64"
REAL = "float64"
TEXT = "string"

COLUMNS: dict[str, str] = {
    "kind": TEXT, "source": TEXT, "cc": TEXT, "cc_at_open": TEXT, "remote_address": TEXT,
    "assignment": TEXT,
    "start_us": WHOLE, "end_us": WHOLE, "sampled_one_in": WHOLE,
    "acked_bytes": WHOLE, "sent_bytes": WHOLE, "segments": WHOLE, "retransmits": WHOLE,
    "rtt_handshake_us": WHOLE, "rtt_min_us": WHOLE, "rtt_p95_us": WHOLE, "rtt_max_us": WHOLE,
    "fct_us": WHOLE, "goodput_bps": REAL, "busy_goodput_bps": REAL,
    "acked_1s_bytes": WHOLE, "acked_3s_bytes": WHOLE, "acked_10s_bytes": WHOLE, "acked_30s_bytes": WHOLE,
}  # fmt: skip
"""What is read of every file; other columns are not."""


def rows(engine: Engine, files: Mapping[Path, pl.Schema], more: Sequence[str] = ()) -> Any:
    """Give all rows of files, with `COLUMNS`, and with each column of `more` as a text, named `part_` and its name."""
    wanted = {name: (name, dtype) for name, dtype in COLUMNS.items()} | {f"part_{name}": (name, TEXT) for name in more}
    asked = {name for name, _ in wanted.values()}
    alike: dict[tuple[Any, ...], list[Path]] = {}
    for file, schema in files.items():
        columns = tuple((name, str(schema[name])) for name in sorted(asked) if name in schema)
        alike.setdefault((columns, tuple(sorted(_of_path(file, more).items()))), []).append(file)
    parts = []
    for number, ((columns, of_path), some) in enumerate(sorted(alike.items())):
        table = engine.read(f"records_{number}", some)
        parts.append(_whole(table, wanted, dict(columns), dict(of_path)))
    return parts[0] if len(parts) == 1 else ibis.union(*parts, distinct=False)


def columns_of(files: Mapping[Path, pl.Schema]) -> set[str]:
    """Name every column that some file has, or some path tells."""
    named = {name for schema in files.values() for name in schema}
    return named | {name for file in files for name in _of_path(file)}


def _of_path(file: Path, names: Sequence[str] | None = None) -> dict[str, str]:
    """Read `key=value` from the folders of a path.

    >>> _of_path(Path("/records/day=2026-01-31/pop=lon%201/a.parquet"))
    {'day': '2026-01-31', 'pop': 'lon 1'}
    """
    pairs = (part.partition("=") for part in file.parts[:-1])
    return {key: unquote(value) for key, sign, value in pairs if sign and key and (names is None or key in names)}


def _whole(
    table: Any, wanted: Mapping[str, tuple[str, str]], there: Mapping[str, str], of_path: Mapping[str, str]
) -> Any:
    """Bring the columns into order; a number that no integer of 64 bits with a sign can hold counts as empty."""
    columns = {}
    for called, (name, dtype) in wanted.items():
        if name not in there:
            columns[called] = ibis.literal(of_path.get(name), type=dtype)
        elif dtype == WHOLE and there[name] != "Int64":
            columns[called] = table[name].try_cast(dtype)
        else:
            columns[called] = table[name].cast(dtype)
    return table.select(**columns)
