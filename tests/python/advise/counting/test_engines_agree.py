"""A cluster of processes returns exactly the counts of DuckDB."""

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import bad_fleet
import numpy as np
import polars as pl
import pytest
from query_buckets import bucket_edges, engine_buckets
from spark_cluster import SETTINGS, spark_cluster
from synthetic_records import NOON_US
from synthetic_traffic import HOUR_US, Traffic, write
from thalweg.advise import Answer, Design, Question, Spark, advise
from thalweg.advise.counting import buckets
from thalweg.advise.question import DEFAULT_SEGMENTS

__all__ = ["spark_cluster"]


@pytest.fixture(scope="module")
def spark(spark_cluster: str) -> Iterator[Callable[[], Spark]]:
    """A Spark engine on the cluster, with one session for all tests, because it takes seconds to start."""
    from pyspark.sql import SparkSession

    first = Spark(spark_cluster, SETTINGS)
    yield lambda: Spark(spark_cluster, SETTINGS)
    assert SparkSession.getActiveSession(), "a session that was there before stays"
    first.close()


def test_work_is_split_between_processes(spark: Callable[[], Spark]) -> None:
    from pyspark.sql import SparkSession

    spark()
    session = SparkSession.getActiveSession()
    assert session.range(1000).selectExpr("sum(id)").collect()[0][0] == 499_500

    def who(numbers):  # type: ignore[no-untyped-def]
        return [os.getpid() for _ in numbers]

    pids = set(session.sparkContext.parallelize(range(64), 16).mapPartitions(who).collect())
    assert os.getpid() not in pids
    assert len(pids) >= 2


TABLE = """\
network,asn,country
198.51.0.0/16,64496,DE
198.51.32.0/20,64497,SE
"""


def numbers(advice: Answer) -> tuple[object, ...]:
    return (
        advice.overall, advice.parts, advice.map, advice.sizes, advice.ages, advice.since, advice.cautions,
        advice.rollout, advice.too_small, advice.too_small_n, advice.headline, advice.rows, advice.n,
        advice.over_time.rows(), advice.without_arm,
    )  # fmt: skip


def lossy_gain(columns: Mapping[str, np.ndarray]) -> np.ndarray:
    return np.where(columns["is_far"], 0.75, 1.2)


def late(columns: Mapping[str, np.ndarray]) -> np.ndarray:
    return np.where(columns["hour"] < 12, 0.2, 0.8)


def alternating(columns: Mapping[str, np.ndarray]) -> np.ndarray:
    return (columns["hour"] % 2) * 1.0


ASKED = {
    "side by side, weighted": (
        Question(replicates=100),
        Traffic(rows=8000, clients=40, effect=lossy_gain, share=late),
    ),
    "before and after, by columns, sizes and the user's table": (
        Question(
            segments=("pop", "size", "as"),
            design=Design("before-after", NOON_US + 48 * HOUR_US),
            replicates=100,
            least_samples=50,
        ),
        Traffic(
            rows=8000,
            clients=60,
            hours=96,
            effect=lossy_gain,
            share=lambda given: (given["hour"] >= 48) * 1.0,
            size_bytes=(500_000, 20_000_000),
        ),
    ),
    "turns of each PoP, one of which had one arm for longer": (
        Question(segments=("pop",), design=Design("switchback", unit="pop"), replicates=100, least_samples=50),
        Traffic(rows=8000, clients=40, effect=lossy_gain, share=alternating),
    ),
}


@pytest.mark.parametrize("name", ASKED)
def test_spark_and_duckdb_reach_the_same_verdicts(
    spark: Callable[[], Spark], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    question, traffic = ASKED[name]
    # With the default segments, the limit is 0, so only a sample of the rows is checked; otherwise all are checked.
    monkeypatch.setattr(
        "thalweg.advise.judgement.samples.LOOKED_AT", 0 if question.segments == DEFAULT_SEGMENTS else 10_000
    )
    frame = traffic.frame()
    for number, pop in enumerate(("lon", "fra")):
        for part in range(2):
            rows = frame.gather_every(4, 2 * number + part)
            if question.design.unit and pop == "fra":
                rows = rows.filter((pl.col("cc") == "cubic") | (pl.col("start_us") < NOON_US + 6 * HOUR_US))
            write(tmp_path / "records" / "day=2026-11-21" / f"pop={pop}" / f"{part}.parquet", rows)
    (tmp_path / "table.csv").write_text(TABLE)
    places, table = [tmp_path / "records"], tmp_path / "table.csv"
    duckdb_advice = advise(places, question, table=table)
    spark_advice = advise(places, question, table=table, engine=spark)
    assert (duckdb_advice.engine, spark_advice.engine) == ("duckdb", "spark")
    assert numbers(spark_advice) == numbers(duckdb_advice)
    assert duckdb_advice.parts


def test_spark_assigns_the_same_classes(spark: Callable[[], Spark]) -> None:
    values = bucket_edges()
    assert engine_buckets(spark(), values) == [buckets.of_number(value) for value in values]


def test_spark_skips_and_names_invalid_files(spark: Callable[[], Spark], tmp_path: Path) -> None:
    fleet = bad_fleet.make(tmp_path)
    question = Question(segments=(), least_samples=2, replicates=100)
    duckdb_advice = advise([tmp_path], question)
    spark_advice = advise([tmp_path], question, engine=spark)
    assert numbers(spark_advice) == numbers(duckdb_advice)
    left_out = {file.file for file in spark_advice.left_out}
    assert left_out == {file.file for file in duckdb_advice.left_out}
    assert left_out == {*fleet.bad, *fleet.copies, *fleet.damaged}
