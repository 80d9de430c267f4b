"""Reads record files as one lazy table, without the interim rows that a later row replaces."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import polars as pl

from thalweg.errors import Exit, ThalwegError
from thalweg.records.find import FoundFiles, LeftOutFile, find, gone
from thalweg.records.schema import CLOSE, INTERIM, KINDS, MOMENTS, SCHEMA
from thalweg.records.where import Where, check_columns
from thalweg.results.parquet import damaged
from thalweg.results.reading import Unreadable, finite, first_line, reading

CONNECTION = ["source", "machine", "connection"]
"""Key of a connection; different machines may use the same numbers."""
ROW = [*CONNECTION, "kind", "end_us"]


@dataclass(frozen=True)
class Records:
    """The records of some files."""

    files: dict[Path, pl.Schema]
    left_out: list[LeftOutFile]
    where: Where = ()
    """Only rows that meet these conditions count."""

    @cached_property
    def all_rows(self) -> pl.LazyFrame:
        """The rows of known kinds that meet `where`, with all columns in order; columns that a file lacks are null."""
        return self._normalised_rows.filter(_is_known())

    @cached_property
    def unknown_kinds(self) -> dict[str, int]:
        """Number of rows of unknown kinds, which are excluded."""
        unknown = self._normalised_rows.filter(~_is_known()).group_by(pl.col("kind").fill_null("none")).agg(pl.len())
        return dict(self.collect(unknown.sort("kind"))[0].iter_rows())

    @cached_property
    def _normalised_rows(self) -> pl.LazyFrame:
        by_schema: dict[tuple[tuple[str, pl.DataType], ...], list[Path]] = {}
        for file, schema in self.files.items():
            by_schema.setdefault(tuple((name, schema[name]) for name in SCHEMA if name in schema), []).append(file)
        rows = pl.concat([_normalised(pl.scan_parquet(files), dict(columns)) for columns, files in by_schema.items()])
        for column, value in self.where:
            rows = rows.filter(pl.col(column).cast(pl.String) == value)
        return rows

    @cached_property
    def superseded(self) -> pl.DataFrame:
        """Keys of the interim rows that a later row of the same connection replaces."""
        interim = self.collect(self.all_rows.filter(pl.col("kind") == INTERIM).select(CONNECTION).unique())[0]
        if interim.is_empty():
            return pl.DataFrame(schema={name: SCHEMA[name] for name in ROW})
        spans = self.all_rows.filter(pl.col("kind").is_in([INTERIM, CLOSE]))
        spans = spans.join(interim.lazy(), on=_keys(CONNECTION), how="semi").select(*ROW, "start_us")
        # A row that occurs twice does not replace itself.
        spans = spans.unique(subset=ROW, keep="any")
        # Of two simultaneous rows, the one that closes the connection comes last: kinds are in descending order.
        spans = spans.sort([*CONNECTION, "end_us", "kind"], descending=[False] * 4 + [True], nulls_last=True)
        following = pl.all_horizontal(pl.col(key).shift(-1).eq_missing(pl.col(key)) for key in CONNECTION)
        next_start = pl.col("start_us").shift(-1)
        # The kernel's connection numbers restart when the machine boots, so a number may be reused.
        is_same = following & (next_start.is_null() | (next_start < pl.col("end_us")))
        return self.collect(spans.filter((pl.col("kind") == INTERIM) & is_same).select(ROW))[0]

    @cached_property
    def rows(self) -> pl.LazyFrame:
        """All rows except replaced ones."""
        if self.superseded.is_empty():
            return self.all_rows
        return self.all_rows.join(self.superseded.lazy(), on=_keys(ROW), how="anti")

    def collect(self, *queries: pl.LazyFrame) -> list[pl.DataFrame]:
        """Run queries sequentially, each on its own columns.

        If they ran together, polars would keep their common scan in memory. Arrow decodes the files first, because a
        flipped bit in a page can make polars abort the process.

        Raises:
            ThalwegError: If the rows of a file are damaged, or a file was removed.
        """
        if self._first_damaged:
            raise self._damaged(*self._first_damaged)
        try:
            with reading():
                return [query.collect(engine="streaming") for query in queries]
        except (Unreadable, OSError) as error:
            raise self._damaged(None, first_line(error)) from None

    @cached_property
    def _first_damaged(self) -> tuple[Path, str] | None:
        return next(damaged(self.files), None)

    def _damaged(self, bad: Path | None, why: str) -> ThalwegError:
        if vanished := next((file for file in self.files if not file.exists()), None):
            return gone(vanished)
        return ThalwegError(
            "damaged-records",
            f"{f'the file `{bad}` is' if bad else 'records are'} damaged: {why}",
            place=str(bad) if bad else None,
            expected="whole Parquet files, as thalweg-agent record and thalweg import wrote them",
            hint=f"move {bad} away, and run the command again" if bad else None,
            exit_code=Exit.FAILED,
        )


def read(paths: Sequence[Path], where: Where = ()) -> Records:
    """Read files of records, and folders of such files; only rows that meet the conditions count.

    Files without records are listed in `Records.left_out`.

    Raises:
        ThalwegError: If a path cannot be read, there are no records, or a column is unknown.
    """
    check_columns(where, SCHEMA)
    files: FoundFiles = find(paths)
    return Records(files.files, files.left_out, where)


def _is_known() -> pl.Expr:
    return pl.col("kind").is_in(KINDS).fill_null(False)


def _keys(columns: Sequence[str]) -> list[pl.Expr]:
    """Return join expressions for these columns; rows without a machine name are treated as one machine."""
    return [pl.col(name).fill_null("") if name == "machine" else pl.col(name) for name in columns]


def _normalised(rows: pl.LazyFrame, columns: dict[str, pl.DataType]) -> pl.LazyFrame:
    """Select all columns in order. Columns that older versions did not write are null, as are invalid numbers: NaN,
    infinities, and negative integers. A time of zero means unknown.
    """
    complete = rows.select(
        (finite(name, columns[name]) if name in columns else pl.lit(None)).cast(dtype, strict=False).alias(name)
        for name, dtype in SCHEMA.items()
    )
    return complete.with_columns(pl.when(pl.col(name) > 0).then(pl.col(name)).alias(name) for name in MOMENTS)
