"""Shared code of tests of importers: imports a sample and returns its rows."""

from pathlib import Path
from typing import Any

import polars as pl
from thalweg.records import imports
from thalweg.records.imports import Addresses, Imported, Importer

SAMPLES = Path(__file__).parent / "samples"

AT_S = 1_795_304_248
"""UNIX time of the samples in seconds: 2026-11-21 23:37:28 UTC."""


def imported(importer: Importer, *files: Path, out: Path, **options: Any) -> tuple[list[dict[str, Any]], Imported]:
    """Import files; return the rows, each with its non-null columns, and the result."""
    done = imports.convert(importer, files, out, addresses=options.pop("addresses", Addresses()), **options)
    rows = [
        {name: value for name, value in row.items() if value is not None}
        for file in done.files
        for row in pl.read_parquet(file).iter_rows(named=True)
    ]
    assert done.rows == len(rows)
    if hasattr(importer, "fills"):
        mapped = {column.column for column in getattr(importer, "_mapped", ())}
        assert done.filled <= {*importer.fills, *mapped, *options.get("constants", ())}
    return rows, done
