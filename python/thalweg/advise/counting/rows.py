"""Reads record files of any writer as one table of an engine.

A column that a file does not have is null; requested ones may come from a component `key=value` of its path.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

import ibis
import polars as pl
from ibis.expr.types import Table

from thalweg.advise.counting.engines import QueryEngine
from thalweg.records.schema import MOMENTS
from thalweg.records.where import Where

WHOLE = "int64"
REAL = "float64"
TEXT = "string"

COLUMNS: dict[str, str] = {
    "kind": TEXT, "source": TEXT, "cc": TEXT, "cc_at_open": TEXT, "remote_address": TEXT,
    "assignment": TEXT,
    "start_us": WHOLE, "end_us": WHOLE, "sampled_one_in": WHOLE,
    "acked_bytes": WHOLE, "sent_bytes": WHOLE, "segments": WHOLE, "retransmits": WHOLE,
    "rtt_handshake_us": WHOLE, "rtt_min_us": WHOLE, "rtt_p95_us": WHOLE, "rtt_max_us": WHOLE,
    "busy_us": WHOLE, "rwnd_limited_us": WHOLE, "fct_us": WHOLE, "goodput_bps": REAL, "busy_goodput_bps": REAL,
    "acked_1s_bytes": WHOLE, "acked_3s_bytes": WHOLE, "acked_10s_bytes": WHOLE, "acked_30s_bytes": WHOLE,
}  # fmt: skip


FLOATS = ("Float32", "Float64")
SIGNED = ("Int8", "Int16", "Int32", "Int64", "Int128")

MANY_FILES = 64
"""Minimum number of files for computing differences over the life of connections from a sample of the files."""
ONE_FILE_IN = 4
GOLDEN = (math.sqrt(5) - 1) / 2

_Pairs = tuple[tuple[str, str], ...]
"""Names with their types, or with their values."""


@dataclass(frozen=True)
class Rows:
    """Rows of files: `COLUMNS`, and other requested columns as texts, named `part_` plus their names."""

    all: Table
    wanted: Mapping[str, tuple[str, str]]
    """Name in the files and type of each column, by its name in `all`."""
    alike: Sequence[tuple[Table, Mapping[str, str], Mapping[str, str]]]
    """Tables of files with equal columns and equal values in their paths; the types of the columns; these values."""

    def having(self, name: str) -> Table | None:
        """Return the rows in which a column is not null; None if no file has it.

        The filter uses the stored column, so that an engine can skip row groups without values.
        """
        return _union(
            [
                _normalised(table.filter(table[name].notnull()), self.wanted, columns, of_path)
                for table, columns, of_path in self.alike
                if name in columns
            ]
        )


def rows(
    engine: QueryEngine,
    files: Mapping[Path, pl.Schema],
    more: Sequence[str] = (),
    name: str = "rows",
    where: Where = (),
) -> Rows:
    """Return the rows of files that meet the conditions `where`; they are read when a query needs them.

    Args:
        more: Columns to return in addition to `COLUMNS`.
        name: Name of the view in the engine.
    """
    wanted = {name: (name, dtype) for name, dtype in COLUMNS.items()} | {f"part_{name}": (name, TEXT) for name in more}
    of_conditions = [name for name, _ in where]
    needed = {name for name, _ in wanted.values()} | set(of_conditions)
    groups: dict[tuple[_Pairs, _Pairs], list[Path]] = {}
    for file, schema in files.items():
        columns = tuple((name, str(schema[name])) for name in sorted(needed) if name in schema)
        groups.setdefault((columns, tuple(sorted(_of_path(file, [*more, *of_conditions]).items()))), []).append(file)
    alike = [
        (
            _selected(engine.read(f"{name}_{number}", file_group), where, dict(columns), dict(of_path)),
            dict(columns),
            dict(of_path),
        )
        for number, ((columns, of_path), file_group) in enumerate(sorted(groups.items()))
    ]
    joined = _union([_normalised(table, wanted, columns_there, of_path) for table, columns_there, of_path in alike])
    return Rows(engine.view(name, joined), wanted, alike)


def _selected(table: Table, where: Where, types: Mapping[str, str], of_path: Mapping[str, str]) -> Table:
    for name, value in where:
        if name in types:
            table = table.filter(table[name].cast(TEXT) == value)
        elif of_path.get(name) != value:
            table = table.filter(ibis.literal(False))
    return table


def some_of(files: Mapping[Path, pl.Schema]) -> Mapping[Path, pl.Schema]:
    """Select about one file in `ONE_FILE_IN` by a low-discrepancy sequence (multiples of the golden ratio), which does
    not align with a periodic order of files.
    """
    return {file: files[file] for number, file in enumerate(sorted(files)) if number * GOLDEN % 1 < ONE_FILE_IN**-1}


def column_names(files: Mapping[Path, pl.Schema]) -> set[str]:
    """Return the names of all columns of files and paths."""
    named = {name for schema in files.values() for name in schema}
    return named | {name for file in files for name in _of_path(file)}


def _of_path(file: Path, names: Sequence[str] | None = None) -> dict[str, str]:
    """Parse the `key=value` components of a path.

    >>> _of_path(Path("/records/day=2026-01-31/pop=lon%201/a.parquet"))
    {'day': '2026-01-31', 'pop': 'lon 1'}
    """
    pairs = (part.partition("=") for part in file.parts[:-1])
    return {key: unquote(value) for key, sign, value in pairs if sign and key and (names is None or key in names)}


def _union(tables: Sequence[Table]) -> Table | None:
    if len(tables) < 2:
        return tables[0] if tables else None
    return ibis.union(*tables, distinct=False)


def _normalised(
    table: Table, wanted: Mapping[str, tuple[str, str]], types: Mapping[str, str], of_path: Mapping[str, str]
) -> Table:
    """Select, cast and clean the columns. Invalid numbers become null. A time of zero means unknown."""
    columns = {}
    for called, (name, dtype) in wanted.items():
        if name not in types:
            columns[called] = ibis.literal(of_path.get(name), type=dtype)
            continue
        column = table[name]
        if types[name] in FLOATS:
            # The difference is 0 only for finite numbers. isnan(), isinf() and comparisons do not work: file statistics
            # ignore NaN, and DuckDB 2.0 simplifies such expressions by these statistics.
            column = ibis.ifelse(column - column == 0, column, ibis.null())
        if dtype == WHOLE:
            column = column.try_cast(dtype)
            if name in MOMENTS:
                column = ibis.ifelse(column > 0, column, ibis.null())
            elif types[name] in SIGNED:
                column = ibis.ifelse(column >= 0, column, ibis.null())
        columns[called] = column.cast(dtype)
    return table.select(**columns)
