"""A cluster of processes counts what DuckDB counts, to the last one."""

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import bad_fleet
import numpy as np
import polars as pl
import pytest
from numbered import at_every_edge, found_by
from spark_cluster import SETTINGS, spark_cluster
from synthetic_records import NOON_US
from synthetic_traffic import HOUR_US, Traffic, write
from thalweg.advise import Answer, Design, Question, Spark, advise
from thalweg.advise.counting import buckets
from thalweg.advise.question import DEFAULT_SEGMENTS

__all__ = ["spark_cluster"]


@pytest.fixture(scope="module")
def spark(spark_cluster: str) -> Iterator[Callable[[], Spark]]:
    """Spark on the cluster, in one session for all tests: it takes seconds to start."""
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

    seen = set(session.sparkContext.parallelize(range(64), 16).mapPartitions(who).collect())
    assert os.getpid() not in seen
    assert len(seen) >= 2


TABLE = """\
network,asn,country
198.51.0.0/16,64496,DE
198.51.32.0/20,64497,SE
"""


def numbers(found: Answer) -> tuple[object, ...]:
    return (
        found.overall, found.parts, found.map, found.sizes, found.ages, found.since, found.cautions, found.rollout,
        found.too_small, found.too_small_n, found.headline, found.rows, found.n, found.over_time.rows(),
    )  # fmt: skip


def lossy_gain(given: Mapping[str, np.ndarray]) -> np.ndarray:
    return np.where(given["is_far"], 0.75, 1.2)


def late(given: Mapping[str, np.ndarray]) -> np.ndarray:
    return np.where(given["hour"] < 12, 0.2, 0.8)


def in_turns(given: Mapping[str, np.ndarray]) -> np.ndarray:
    return (given["hour"] % 2) * 1.0


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
        Traffic(rows=8000, clients=40, effect=lossy_gain, share=in_turns),
    ),
}


@pytest.mark.parametrize("name", ASKED)
def test_spark_and_duckdb_reach_the_same_verdicts(
    spark: Callable[[], Spark], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    question, traffic = ASKED[name]
    # The one as with many rows, the other with all that is looked at.
    monkeypatch.setattr(
        "thalweg.advise.judgement.samples.LOOKED_AT", 0 if question.segments == DEFAULT_SEGMENTS else 10_000
    )
    frame = traffic.frame()
    for number, pop in enumerate(("lon", "fra")):
        for part in range(2):
            some = frame.gather_every(4, 2 * number + part)
            if question.design.unit and pop == "fra":
                some = some.filter((pl.col("cc") == "cubic") | (pl.col("start_us") < NOON_US + 6 * HOUR_US))
            write(tmp_path / "records" / "day=2026-11-21" / f"pop={pop}" / f"{part}.parquet", some)
    (tmp_path / "table.csv").write_text(TABLE)
    places, table = [tmp_path / "records"], tmp_path / "table.csv"
    here = advise(places, question, table=table)
    there = advise(places, question, table=table, engine=spark)
    assert (here.engine, there.engine) == ("duckdb", "spark")
    assert numbers(there) == numbers(here)
    assert here.parts


def test_spark_assigns_the_same_classes(spark: Callable[[], Spark]) -> None:
    values = at_every_edge()
    assert found_by(spark(), values) == [buckets.of_number(value) for value in values]


def test_spark_skips_and_names_invalid_files(spark: Callable[[], Spark], tmp_path: Path) -> None:
    fleet = bad_fleet.make(tmp_path)
    question = Question(segments=(), least_samples=2, replicates=100)
    here = advise([tmp_path], question)
    there = advise([tmp_path], question, engine=spark)
    assert numbers(there) == numbers(here)
    left_out = {each.file for each in there.left_out}
    assert left_out == {each.file for each in here.left_out}
    assert left_out == {*fleet.bad, *fleet.copies, *fleet.damaged}
