"""The engines that aggregate tables: DuckDB in this process, or a Spark cluster.

Queries are written with Ibis; numbers in results are integers, so that engines do not differ by rounding.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import duckdb
import ibis
import polars as pl
from ibis.expr.types import Table

from thalweg.errors import Exit, ThalwegError
from thalweg.results.reading import first_line
from thalweg.scratch import Scratch

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

MEMORY = "2.7GB"
"""DuckDB's memory limit, above which it uses the disk."""


SCRATCH = "thalweg-advise-"


class QueryFailed(Exception):
    """An engine could not run a query."""


class QueryEngine(Protocol):
    """The interface of engines. A failed query raises `QueryFailed`, an interrupted one `KeyboardInterrupt`."""

    name: str

    def read(self, name: str, files: Sequence[Path]) -> Table:
        """Return Parquet files with the same columns as one table."""

    def put(self, name: str, rows: pl.DataFrame) -> Table:
        """Create a table in the engine from a small data frame."""

    def view(self, name: str, table: Table) -> Table:
        """Name a query, so that other queries can use its columns; the result is not stored."""

    def keep(self, name: str, table: Table) -> Table:
        """Materialise a table that several queries use."""

    def fetch(self, table: Table) -> pl.DataFrame:
        """Execute a query and return its result."""

    def damaged(self, files: Iterable[Path]) -> Iterator[tuple[Path, str]]:
        """Decode all rows of Parquet files; yield the files for which this fails, with the reasons."""

    def close(self) -> None:
        """Release memory, disk and processes."""


INTERRUPTED = re.compile(r"interrupted[!. ]*$|cancelled as part of cancellation of all jobs", re.IGNORECASE)
"""Messages of DuckDB and Spark for a query that Ctrl-C interrupted."""

TYPES = {"int8": "TINYINT", "int16": "SMALLINT", "int32": "INTEGER", "int64": "BIGINT"}
"""SQL names of the types in DuckDB and Spark. DuckDB's sums are wider than Ibis declares, so columns are cast."""


class DuckDb:
    """DuckDB in this process: tables are in memory and spill to a temporary folder."""

    name = "duckdb"

    def __init__(self, memory: str = MEMORY, threads: int | None = None) -> None:
        """Open a database in memory that spills to a temporary folder.

        Raises:
                ThalwegError: If DuckDB cannot be started.
        """
        self._scratch = Scratch(SCRATCH)
        folder = self._scratch.folder
        config: dict[str, str | int] = {"memory_limit": memory, "preserve_insertion_order": "false"}
        if threads:
            config["threads"] = threads
        try:
            self._ibis = ibis.duckdb.connect(temp_directory=folder, **config)
        except Exception as error:
            self._scratch.remove()
            raise ThalwegError(
                "bad-memory",
                f"DuckDB cannot be started: {first_line(error)}",
                place="--memory",
                expected="a size such as 3GB",
            ) from None
        except BaseException:
            self._scratch.remove()
            raise

    def read(self, name: str, files: Sequence[Path]) -> Table:
        """Return Parquet files as one table."""
        listed = ", ".join(_quoted(str(file)) for file in files)
        self._run(f'CREATE VIEW "{name}" AS SELECT * FROM read_parquet([{listed}], hive_partitioning = false)')
        return self._ibis.table(name)

    def put(self, name: str, rows: pl.DataFrame) -> Table:
        """Create a table from a data frame."""
        self._ibis.con.register("handed_over", _arrow(rows))
        try:
            self._run(f'CREATE OR REPLACE TABLE "{name}" AS SELECT * FROM handed_over')
        finally:
            self._ibis.con.unregister("handed_over")
        return self._ibis.table(name)

    def view(self, name: str, table: Table) -> Table:
        """Name a query."""
        self._run(f'CREATE OR REPLACE VIEW "{name}" AS {self._ibis.compile(table)}')
        return self._ibis.table(name)

    def keep(self, name: str, table: Table) -> Table:
        """Materialise a table."""
        self._run(f'CREATE OR REPLACE TABLE "{name}" AS {self._narrowed(table)}')
        return self._ibis.table(name)

    def fetch(self, table: Table) -> pl.DataFrame:
        """Execute a query and return its result."""
        query = self._narrowed(table)
        try:
            frame = pl.from_arrow(self._ibis.con.sql(query).to_arrow_table())
        except Exception as error:
            raise _failed(error) from error
        assert isinstance(frame, pl.DataFrame), "expected a table, not a column"
        return frame

    def damaged(self, files: Iterable[Path]) -> Iterator[tuple[Path, str]]:
        """Decode each file in a database of its own, because a failure may have invalidated that of the queries."""
        for file in files:
            with duckdb.connect() as alone:
                try:
                    # An aggregate of every column, so that every value is decoded.
                    alone.execute(f"SELECT max(COLUMNS(*)) FROM read_parquet({_quoted(str(file))})").fetchall()
                except Exception as error:
                    yield file, _reason(error)

    def close(self) -> None:
        """Close the database and remove the temporary folder."""
        try:
            self._ibis.disconnect()
        finally:
            self._scratch.remove()

    def _narrowed(self, table: Table) -> str:
        return _narrowed(self._ibis.compile(table), table.schema())

    def _run(self, query: str) -> None:
        try:
            self._ibis.con.execute(query)
        except Exception as error:
            raise _failed(error) from error


class Spark:
    """A Spark cluster, or Spark on this machine (`local[*]`); all workers need access to the files."""

    name = "spark"

    def __init__(self, master: str, settings: Mapping[str, str] | None = None) -> None:
        """Connect to a cluster.

        Raises:
            ThalwegError: If pyspark or Java is missing, or the cluster does not answer.
        """
        try:
            from pyspark.sql import SparkSession
        except ModuleNotFoundError:
            raise ThalwegError(
                "no-spark",
                "pyspark is not installed",
                place="--spark",
                hint="pip install 'thalweg[spark]', or omit --spark to use DuckDB on this machine",
                exit_code=Exit.MISSING,
            ) from None
        builder = SparkSession.builder.master(master).appName("thalweg advise")
        # The result is fetched into memory in any case, so Spark's default limit of 1 GB is lifted unless the user has
        # set one.
        chosen = {
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.driver.maxResultSize": "0",
            "spark.sql.session.timeZone": "UTC",
        }
        for key, value in (chosen | dict(settings or {})).items():
            builder = builder.config(key, value)
        try:
            self._is_own = SparkSession.getActiveSession() is None
            self._session = builder.getOrCreate()
            self._session.sparkContext.setLogLevel("ERROR")
            self._ibis = ibis.pyspark.connect(self._session)
        except Exception as error:
            raise ThalwegError(
                "no-spark",
                f"Spark at `{master}` did not answer: {first_line(error)}",
                place="--spark",
                expected="the address of a cluster, such as spark://host:7077, or local[*], and Java on this machine",
                exit_code=Exit.MISSING,
            ) from None
        self._kept: list[DataFrame] = []

    def read(self, name: str, files: Sequence[Path]) -> Table:
        """Return Parquet files as one table."""
        try:
            self._session.read.parquet(*(str(file) for file in files)).createOrReplaceTempView(name)
        except Exception as error:
            raise _failed(error) from error
        return self._ibis.table(name)

    def put(self, name: str, rows: pl.DataFrame) -> Table:
        """Create a table from a data frame."""
        self._session.createDataFrame(_arrow(rows)).createOrReplaceTempView(name)
        return self._ibis.table(name)

    def view(self, name: str, table: Table) -> Table:
        """Name a query."""
        self._frame(table).createOrReplaceTempView(name)
        return self._ibis.table(name)

    def keep(self, name: str, table: Table) -> Table:
        """Materialise a table on its first use."""
        frame = self._frame(table).persist()
        frame.createOrReplaceTempView(name)
        self._kept.append(frame)
        return self._ibis.table(name)

    def fetch(self, table: Table) -> pl.DataFrame:
        """Execute a query and return its result."""
        try:
            frame = pl.from_arrow(self._frame(table).toArrow())
        except Exception as error:
            raise _failed(error) from error
        assert isinstance(frame, pl.DataFrame), "expected a table, not a column"
        return frame

    def damaged(self, files: Iterable[Path]) -> Iterator[tuple[Path, str]]:
        """Decode the files, each in a separate query."""
        for file in files:
            try:
                self._session.read.parquet(str(file)).selectExpr("max(hash(*))").collect()
            except Exception as error:
                yield file, _reason(error)

    def close(self) -> None:
        """Release memory, and end the session unless it existed before."""
        for frame in self._kept:
            frame.unpersist()
        if self._is_own:
            self._session.stop()

    def _frame(self, table: Table) -> "DataFrame":
        try:
            return self._session.sql(_narrowed(self._ibis.compile(table), table.schema(), quote="`"))
        except Exception as error:
            raise _failed(error) from error


def _narrowed(query: str, schema: ibis.Schema, quote: str = '"') -> str:
    columns = []
    for name, dtype in schema.items():
        column = f"{quote}{name}{quote}"
        wide = TYPES.get(str(dtype).removeprefix("!"))
        columns.append(f"CAST({column} AS {wide}) AS {column}" if wide else column)
    return f"SELECT {', '.join(columns)} FROM ({query}) AS whole"


def _failed(error: Exception) -> BaseException:
    """Return the error to raise for a failed query; `KeyboardInterrupt` if the user interrupted it."""
    if INTERRUPTED.search(first_line(error)):
        return KeyboardInterrupt()
    return QueryFailed(first_line(error))


def _reason(error: Exception) -> str:
    """Return why a file could not be read.

    Raises:
        KeyboardInterrupt: If the user interrupted the query.
    """
    failed = _failed(error)
    if isinstance(failed, KeyboardInterrupt):
        raise failed from error
    return str(failed)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _arrow(rows: pl.DataFrame) -> "pa.Table":
    """Return an Arrow table without recent Arrow types, which some readers do not support."""
    return rows.to_arrow(compat_level=pl.CompatLevel.oldest())
