"""The cluster that tests use is one: work is done in other processes than this one."""

import os

import pytest
from spark_cluster import SETTINGS, spark_cluster

__all__ = ["spark_cluster"]


def test_work_is_shared_by_several_processes(spark_cluster: str) -> None:
    pyspark = pytest.importorskip("pyspark.sql")
    builder = pyspark.SparkSession.builder.master(spark_cluster).config("spark.ui.enabled", "false")
    for key, value in SETTINGS.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    try:
        assert session.range(1000).selectExpr("sum(id)").collect()[0][0] == 499_500

        def who(numbers):  # type: ignore[no-untyped-def]
            return [os.getpid() for _ in numbers]

        seen = set(session.sparkContext.parallelize(range(64), 16).mapPartitions(who).collect())
        assert os.getpid() not in seen
        assert len(seen) >= 2
    finally:
        session.stop()
