"""A Spark cluster of several processes on this machine: a master and two workers, which start an executor each.

Import the fixture `spark_cluster` where it is needed: it is the cluster's address. If pyspark or Java is missing, the
test does not run, and in CI it fails.
"""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from thalweg.processes import ends_with_parent

WORKERS = 2
CORES = 1
"""Of a worker."""
MEMORY = "1g"
WITHIN_S = 120
"""How long a Java process may take until it says that it is there, on a machine that does other things too."""

MASTER = "org.apache.spark.deploy.master.Master"
WORKER = "org.apache.spark.deploy.worker.Worker"
HOST = "127.0.0.1"

JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""These processes live too short for the compiler that makes the fastest code."""

SETTINGS = {
    "spark.driver.host": HOST,
    "spark.driver.bindAddress": HOST,
    "spark.executor.memory": "512m",
    "spark.driver.extraJavaOptions": JAVA,
    "spark.executor.extraJavaOptions": JAVA,
    "spark.sql.shuffle.partitions": "2",
    # With so few rows, compiling a query takes longer than running it.
    "spark.sql.codegen.wholeStage": "false",
}
"""What a session on it needs, as `Spark` of thalweg.advise.counting.engines takes it."""


@pytest.fixture(scope="session")
def spark_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a cluster."""
    if why := missing():
        if os.environ.get("THALWEG_CI"):
            pytest.fail(why)
        pytest.skip(why)
    folder = tmp_path_factory.mktemp("spark")
    with ExitStack() as stack:
        own = ["--host", HOST, "--port", "0", "--webui-port", "0"]
        master = stack.enter_context(_started(folder, "master", MASTER, own))
        address = master.said(r"Starting Spark master at (spark://\S+)")
        for number in range(WORKERS):
            work = ["--cores", str(CORES), "--memory", MEMORY, "--work-dir", str(folder / f"work{number}")]
            worker = stack.enter_context(_started(folder, f"worker{number}", WORKER, [*own, *work, address]))
            worker.said("(Successfully registered with master)")
        yield address


def missing() -> str:
    """Say what keeps a cluster from running here; empty: nothing."""
    if importlib.util.find_spec("pyspark") is None:
        return "pyspark is not installed: no test of Spark can run"
    if shutil.which("java") is None:
        return "Java is missing: no test of Spark can run; type `apt-get install openjdk-17-jre-headless`"
    return ""


@dataclass(frozen=True)
class Started:
    """A process of the cluster."""

    process: "subprocess.Popen[bytes]"
    log: Path

    def said(self, pattern: str) -> str:
        """Wait until it says something."""
        until = time.monotonic() + WITHIN_S
        while time.monotonic() < until:
            is_over = self.process.poll() is not None
            if found := re.search(pattern, self.log.read_text(errors="replace")):
                return found[1]
            if is_over:
                break
            time.sleep(0.05)
        pytest.fail(f"Spark's {self.log.stem} does not start:\n{self.log.read_text(errors='replace')[-3000:]}")


@contextmanager
def _started(folder: Path, name: str, main: str, arguments: Sequence[str]) -> Iterator[Started]:
    """Start a process of the cluster, and end it."""
    import pyspark

    home = Path(pyspark.__file__).parent
    log = folder / f"{name}.log"
    environment = os.environ | {
        "SPARK_HOME": str(home), "SPARK_LOCAL_IP": HOST, "SPARK_NO_DAEMONIZE": "1", "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": JAVA,
        "SPARK_LOCAL_DIRS": str(folder), "PYSPARK_PYTHON": sys.executable,
    }  # fmt: skip
    with log.open("wb") as said:
        process = subprocess.Popen(
            [home / "bin" / "spark-class", main, *arguments],
            env=environment, stdin=subprocess.DEVNULL, stdout=said, stderr=said, preexec_fn=ends_with_parent(),
        )  # fmt: skip
        try:
            yield Started(process, log)
        finally:
            process.terminate()  # a worker ends its executors
            try:
                process.wait(WITHIN_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
