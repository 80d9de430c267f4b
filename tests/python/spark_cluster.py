"""Spark with several processes on this machine: a driver, and two workers with an executor process each.

Tests import the fixture `spark_cluster`, which is the address for `Spark`. If pyspark or Java is missing, the test is
skipped, or fails in CI.
"""

import importlib.util
import os
import shutil
from pathlib import Path

import pytest

WORKERS = 2
CORES = 1
"""Number of cores of a worker."""
MEMORY_MB = 512
"""Memory of a worker, all of it for its executor."""

HOST = "127.0.0.1"

JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""JVM options: these processes are too short-lived for the optimising compiler."""

SETTINGS = {
    "spark.driver.host": HOST,
    "spark.driver.bindAddress": HOST,
    "spark.executor.memory": f"{MEMORY_MB}m",
    "spark.driver.extraJavaOptions": JAVA,
    "spark.executor.extraJavaOptions": JAVA,
    "spark.sql.shuffle.partitions": "2",
    # Compiling a query would take longer than running it on so few rows.
    "spark.sql.codegen.wholeStage": "false",
}
"""Settings of a session on the cluster, in the format of `Spark` in thalweg.advise.counting.engines."""


@pytest.fixture(scope="session")
def spark_cluster() -> str:
    """Return the address of a cluster that starts and ends with its session.

    Master and workers are threads of the driver, and executors are processes. A standalone cluster would need three
    more Java processes.
    """
    if why := missing():
        if os.environ.get("THALWEG_CI"):
            pytest.fail(why)
        pytest.skip(why)
    import pyspark

    # The workers find the script that starts an executor in this folder.
    os.environ.setdefault("SPARK_HOME", str(Path(pyspark.__file__).parent))
    os.environ.setdefault("SPARK_LOCAL_IP", HOST)
    return f"local-cluster[{WORKERS},{CORES},{MEMORY_MB}]"


def missing() -> str:
    """Return why a cluster cannot run here; empty if it can run."""
    if importlib.util.find_spec("pyspark") is None:
        return "pyspark is not installed: no test of Spark can run"
    if shutil.which("java") is None:
        return "Java is missing: no test of Spark can run; type `apt-get install openjdk-17-jre-headless`"
    return ""
