"""Every query of the dashboard has a result in a real Prometheus that scrapes a running agent, which also chooses
algorithms.
"""

import contextlib
import json
import math
import multiprocessing
import os
import re
import shutil
import socket
import subprocess
import sys
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from left_out import skip_or_fail
from waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]
DASHBOARD = ROOT / "packaging" / "grafana" / "thalweg-agent.json"
SETTING = Path("/proc/sys/kernel/bpf_stats_enabled")

VARIABLES = {"$__rate_interval": "1m", "$instance": ".*", "$cc": ".*", "$size": ".*"}
"""Values of Grafana's variables if everything is selected."""

DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))
"""Connects to this machine directly, regardless of proxies in the environment."""

SIZES = (20_000, 400_000, 3_000_000)

COMPARED = 8
"""Number of connections per round for which the agent may choose; about half are held out for a comparison."""


def program(name: str) -> str:
    """Return the path of a Prometheus program: installed, or unpacked by the set-up."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    path = shutil.which(name) or shutil.which(name, path=str(cache / "thalweg" / "prometheus"))
    if path is None:
        skip_or_fail(f"{name} is missing: tools/bootstrap prometheus")
    return path


def queries() -> list[str]:
    """Return all queries of the dashboard, including those of its variables."""
    dashboard = json.loads(DASHBOARD.read_text())
    expressions = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])]
    for variable in dashboard["templating"]["list"]:
        expressions += re.findall(r"label_values\((.*), \w+\)", variable["query"])
    for variable, value in VARIABLES.items():
        expressions = [query.replace(variable, value) for query in expressions]
    return expressions


def test_every_query_is_complete() -> None:
    all_queries = queries()
    assert len(all_queries) > 20
    assert [query for query in all_queries if "$" in query] == []


@pytest.fixture(scope="module")
def agent(cgroup: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """Run an agent that chooses algorithms while the kernel measures the cost of its programs; yields its status."""
    folder = tmp_path_factory.mktemp("agent")
    binary = os.environ.get("THALWEG_AGENT", str(Path(sys.executable).with_name("thalweg-agent")))
    at = ["--socket", str(folder / "agent.sock")]
    line = [binary, "tune", "--out", str(folder / "records"), "--listen", "127.0.0.1:0", *at]
    line += ["--cgroup", str(cgroup), "--private", "--holdout", "50%"]
    line += ["--state", str(folder / "tune.json"), "--grace", "0s"]
    kept = SETTING.read_text()
    SETTING.write_text("1")
    try:
        with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            assert process.stdout.readline().startswith("tuning"), process.communicate()
            status = subprocess.run([binary, "status", "--json", *at], capture_output=True, text=True, check=True)
            yield json.loads(status.stdout)
            process.terminate()
            process.communicate()
            assert process.returncode == 0
    finally:
        SETTING.write_text(kept)


def transfer(cc: str | None, size: int) -> None:
    """Send an object over a connection with the given congestion control, or with one that the agent may choose."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        if cc:
            server.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, cc.encode())
        with socket.create_connection(server.getsockname()) as client:
            sender, _ = server.accept()
            with sender:
                sender.setblocking(False)
                rest, received = memoryview(bytes(size)), 0
                client.setblocking(False)
                while received < size:
                    with contextlib.suppress(BlockingIOError):
                        rest = rest[sender.send(rest) :]
                    with contextlib.suppress(BlockingIOError):
                        received += len(client.recv(1 << 20))


def carry(cgroup: Path) -> None:
    """Make connections in a cgroup."""
    process = multiprocessing.get_context("fork").Process(target=carry_here, args=(cgroup,))
    process.start()
    process.join()
    assert process.exitcode == 0


def carry_here(cgroup: Path) -> None:
    (cgroup / "cgroup.procs").write_text(str(os.getpid()))
    available = Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split()
    for cc in {"bbr", "cubic", "reno"} & set(available):
        for size in SIZES:
            transfer(cc, size)
    for _ in range(COMPARED):
        transfer(None, SIZES[0])


@pytest.fixture(scope="module")
def scraped(agent: dict[str, Any], cgroup: Path) -> str:
    """Return the metrics after some transfers have been recorded."""
    page = ""

    def shows_transfers() -> bool:
        nonlocal page
        carry(cgroup)
        with DIRECT.open(f"http://{agent['listen']}/metrics") as answer:
            page = answer.read().decode()
        return "thalweg_transfer_duration_seconds_count" in page

    wait_until(shows_transfers)
    return page


def test_promtool_accepts_the_rules(scraped: str) -> None:
    done = subprocess.run(
        [program("promtool"), "check", "metrics"], input=scraped, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@pytest.fixture(scope="module")
def prometheus(agent: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Run a Prometheus that scrapes the agent as on the reference page, but every second; yields its address."""
    folder = tmp_path_factory.mktemp("prometheus")
    page = (ROOT / "docs" / "reference" / "agent.md").read_text()
    (example,) = re.findall(r"```yaml\n(scrape_configs:.*?)```", page, flags=re.DOTALL)
    assert "127.0.0.1:9477" in example
    config = folder / "prometheus.yml"
    config.write_text("global: {scrape_interval: 1s}\n" + example.replace("127.0.0.1:9477", agent["listen"]))
    subprocess.run([program("promtool"), "check", "config", config], check=True, capture_output=True)
    address = f"127.0.0.1:{free_port()}"
    line = [f"--config.file={config}", f"--storage.tsdb.path={folder}", f"--web.listen-address={address}"]
    with subprocess.Popen([program("prometheus"), *line, "--log.level=error"]) as process:
        try:
            wait_until(lambda: process.poll() is not None or is_ready(address))
            assert process.poll() is None, "Prometheus ended"
            yield address
        finally:
            process.terminate()


def is_ready(address: str) -> bool:
    try:
        with DIRECT.open(f"http://{address}/-/ready") as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def values(address: str, query: str) -> list[float]:
    """Return the values of a query.

    Raises:
        HTTPError: If Prometheus rejects the query.
    """
    arguments = urllib.parse.urlencode({"query": query})
    with DIRECT.open(f"http://{address}/api/v1/query?{arguments}") as answer:
        return [float(one["value"][1]) for one in json.load(answer)["data"]["result"]]


def test_every_query_returns_data(prometheus: str, cgroup: Path) -> None:
    missing = queries()

    def all_are_answered() -> bool:
        carry(cgroup)
        # A rate needs two scrapes; a quantile without samples is NaN.
        missing[:] = [query for query in missing if not any(map(math.isfinite, values(prometheus, query)))]
        return not missing

    try:
        wait_until(all_are_answered)
    except AssertionError:
        pytest.fail("never answered:\n" + "\n".join(missing))


def test_a_query_of_an_unknown_metric_is_reported(prometheus: str) -> None:
    assert values(prometheus, "rate(thalweg_unheard_of_total[1m])") == []
