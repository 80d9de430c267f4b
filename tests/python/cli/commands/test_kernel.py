"""A scenario on this machine's own TCP, from the command line."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from real_engines import UNTRUSTWORTHY
from thalweg.errors import Exit
from thalweg.results import open_run

Thalweg = Callable[..., Any]

SHORT = """\
name = "short"
duration = "3s"
sample_interval = "20ms"
[path]
rate = "10Mbps"
rtt = "20ms"
[[flow]]
name = "bulk"
cc = "cubic"
[[flow]]
name = "page"
cc = "reno"
size = "200kB"
repeat = {gap = "50ms", count = 3}
[engine]
record = true
"""


ON_A_BUSY_MACHINE = (Exit.FINE, *UNTRUSTWORTHY)
"""Exit codes on a busy machine, which may miss deadlines and then reports untrustworthy experiments."""


@pytest.fixture
def run(kernel: None, thalweg: Thalweg, tmp_path: Path) -> Path:
    (tmp_path / "short.toml").write_text(SHORT)
    done = thalweg("run", "short.toml", "--engine", "kernel", "--out", "real")
    assert done.returncode in ON_A_BUSY_MACHINE, done.stderr
    return tmp_path / "real"


def test_a_real_kernel_yields_the_same_tables_as_the_simulator(run: Path, thalweg: Thalweg) -> None:
    real = open_run(run)
    assert thalweg("run", "short.toml", "--out", "simulated", "--no-report").returncode == 0
    simulated = open_run(run.parent / "simulated")
    assert real.flows().schema == simulated.flows().schema
    pages = real.flows().filter(flow="page")
    assert pages["completed"].to_list() == [True] * 3
    assert pages["fct_us"].min() > 200_000 * 8 / 10, "no faster than the path carries it"
    assert real.samples()["cwnd_packets"].max() > 10
    assert real.queue().filter(link="forward")["sent_bytes"].max() > 1_000_000


def test_recorded_packets_match_the_queue_counters(run: Path) -> None:
    real = open_run(run)
    packets = real.packets().filter(link="forward")
    queue = real.queue().filter(link="forward").sort("t_us")
    assert packets["number"].to_list() == list(range(packets.height))
    assert packets.filter(pl.col("fate") == "dropped").height == queue["dropped_packets"][-1]
    assert list((run / "packets").glob("*.pcapng"))


def test_the_engine_reports_its_lag(run: Path, thalweg: Thalweg) -> None:
    assert "Lateness of packets at the relay" in (run / "report.html").read_text()
    document = json.loads(thalweg("results", "real", "--json").stdout)
    assert "relay_lateness_p99_us" in {measured["name"] for measured in document["measured"]}


def test_two_engines_are_compared(kernel: None, thalweg: Thalweg, tmp_path: Path) -> None:
    (tmp_path / "short.toml").write_text(SHORT.replace('"3s"', '"2s"'))
    done = thalweg("validate", "sim", "kernel", "--grid", "short.toml", "--json")
    assert done.returncode in ON_A_BUSY_MACHINE, done.stderr
    document = json.loads(done.stdout)
    assert [run["engine"] for run in document["runs"]] == ["sim", "kernel"]
    bulk, page = document["cells"]
    assert {bulk["state"], page["state"]} <= {"compared", "untrustworthy"}
    if page["state"] == "compared":  # a busy machine may miss deadlines, and reports it
        assert abs(page["measures"]["completion_time"]["error"]) < 0.5
