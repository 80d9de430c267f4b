"""Spark with several processes on this machine: a driver, and two workers with an executor process each.

Import the fixture `spark_cluster` where it is needed: it is the address for `Spark`. If pyspark or Java is missing, the
test does not run, and in CI it fails.
"""

import importlib.util
import os
import shutil
from pathlib import Path

import pytest

WORKERS = 2
CORES = 1
"""Of a worker."""
MEMORY_MB = 512
"""Of a worker, all of it for its executor."""

HOST = "127.0.0.1"

JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""These processes are too short-lived for the compiler that produces the fastest code."""

SETTINGS = {
    "spark.driver.host": HOST,
    "spark.driver.bindAddress": HOST,
    "spark.executor.memory": f"{MEMORY_MB}m",
    "spark.driver.extraJavaOptions": JAVA,
    "spark.executor.extraJavaOptions": JAVA,
    "spark.sql.shuffle.partitions": "2",
    # With so few rows, compiling a query takes longer than running it.
    "spark.sql.codegen.wholeStage": "false",
}
"""Settings of a session on it, in the form of `Spark` of thalweg.advise.counting.engines."""


@pytest.fixture(scope="session")
def spark_cluster() -> str:
    """The address of a cluster that starts and ends with its session.

    Master and workers are threads of the driver, executors are processes: a standalone cluster would be three Java
    processes more, whose start takes longer than the tests.
    """
    if why := missing():
        if os.environ.get("THALWEG_CI"):
            pytest.fail(why)
        pytest.skip(why)
    import pyspark

    # Path at which the workers find the script that starts an executor.
    os.environ.setdefault("SPARK_HOME", str(Path(pyspark.__file__).parent))
    os.environ.setdefault("SPARK_LOCAL_IP", HOST)
    return f"local-cluster[{WORKERS},{CORES},{MEMORY_MB}]"


def missing() -> str:
    """Describe why a cluster cannot run here; empty if it can."""
    if importlib.util.find_spec("pyspark") is None:
        return "pyspark is not installed: no test of Spark can run"
    if shutil.which("java") is None:
        return "Java is missing: no test of Spark can run; type `apt-get install openjdk-17-jre-headless`"
    return ""
