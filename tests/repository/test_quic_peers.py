"""Servers and clients of QUIC stacks: over loopback, and beside Linux TCP on the engine `uml`."""

import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import polars as pl
import pytest
from left_out import skip_or_fail
from thalweg import engine, results
from waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]
STUDY = ROOT / "studies/quic-beside-tcp"
RUST = ROOT / ".venv/bin/thalweg-quic-peer"
SENDERS = (
    "quinn-cubic", "quinn-newreno", "quinn-bbr", "s2n-cubic", "s2n-bbr", "aioquic-cubic", "aioquic-newreno",
)  # fmt: skip
SIZE = 1_000_000


def command(role: str, sender: str, port: int, *options: str) -> list[str]:
    if not RUST.exists():
        skip_or_fail("the peers of QUIC stacks are not built: tools/bootstrap quic")
    return [str(STUDY / "peer"), role, sender, "--port", str(port), *options]


Start = Callable[..., tuple["subprocess.Popen[str]", int]]


@pytest.fixture
def start() -> Iterator[Start]:
    """Return a function that starts a server and returns it with its port."""
    servers = []

    def start(sender: str, *options: str) -> tuple["subprocess.Popen[str]", int]:
        with socket.socket(type=socket.SOCK_DGRAM) as probe:
            probe.bind(("127.0.0.1", 0))
            port = int(probe.getsockname()[1])
        server = subprocess.Popen(command("server", sender, port, *options), stdout=subprocess.PIPE, text=True)
        servers.append(server)
        assert server.stdout
        assert server.stdout.readline().startswith("listening on"), sender
        return server, port

    yield start
    for server in servers:
        with suppress(ProcessLookupError):
            server.kill()
        server.communicate()


@pytest.mark.parametrize("sender", SENDERS)
def test_a_stack_transfers_and_reports_the_controller_that_it_used(start: Start, sender: str, tmp_path: Path) -> None:
    qlog = ("--qlog", str(tmp_path)) if sender.startswith("aioquic") else ()
    server, port = start(sender, *qlog)
    client = subprocess.run(
        command("client", sender, port, "--size", str(SIZE)), capture_output=True, text=True, check=False
    )
    assert client.returncode == 0, client.stderr
    assert server.stdout
    stack, algorithm = sender.split("-")
    assert f"stack={stack} cc={algorithm}" in server.stdout.readline()
    if qlog:
        wait_until(lambda: any(tmp_path.glob("*.qlog")))
        assert '"cwnd"' in next(tmp_path.glob("*.qlog")).read_text()


# Most of the time is spent in the idle timeout of one second.
@pytest.mark.parametrize("sender", ["quinn-cubic", "s2n-cubic", "aioquic-cubic"])
def test_a_client_fails_when_its_server_dies(start: Start, sender: str) -> None:
    server, port = start(sender)
    client = subprocess.Popen(
        command("client", sender, port, "--size", str(10**12), "--idle-timeout", "1"),
        stderr=subprocess.PIPE,
        text=True,
    )
    time.sleep(0.3)
    server.kill()
    try:
        _, said = client.communicate(timeout=60)
    finally:
        client.kill()
    assert client.returncode == 1
    assert re.search(r"failed|expected|lost", said), said


def test_a_missing_controller_is_an_error() -> None:
    done = subprocess.run(command("server", "s2n-newreno", 0), capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "s2n-cubic, s2n-bbr" in done.stderr


def beside_linux(directory: Path) -> pl.DataFrame:
    """Run quinn beside Linux CUBIC for two seconds; return the flows."""
    settings = {"flow.main.cc": "quinn-cubic", "flow.tcp.cc": "cubic", "path.buffer": "1bdp"}
    settings |= {"repetitions": "1", "duration": "2s"}
    options = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    words = [sys.executable, "-m", "thalweg", "run", STUDY / "beside.toml", "--engine", "uml", "--out", directory]
    done = subprocess.run([*words, *options], capture_output=True, text=True, check=False)
    # Packets from UDP segmentation offload must not be missed: experiments with missed packets are untrustworthy.
    assert done.returncode == 0, done.stdout + done.stderr
    return results.open_run(directory).flows().sort("flow")


# This takes more than five seconds on a busy machine: it starts two kernels, for two runs with one seed.
def test_a_flow_of_quinn_beside_linux_is_measured_from_its_packets_and_repeats(tmp_path: Path) -> None:
    uml = engine.capabilities().engines["uml"]
    if not uml.available:
        skip_or_fail(f"uml: {uml.reason}")
    command("server", "quinn-cubic", 0)
    main, tcp = beside_linux(tmp_path / "run").iter_rows(named=True)
    assert (main["cc"], main["retransmits"], tcp["cc"]) == ("quinn-cubic", None, "cubic")
    (out,) = (tmp_path / "run/programs").glob("*/main/server-0.stdout")
    assert "listening on" in out.read_text()
    goodputs = [main["goodput_bps"], tcp["goodput_bps"]]
    assert min(goodputs) > 1e6, goodputs
    assert 10e6 < sum(goodputs) < 20e6, goodputs
    again = beside_linux(tmp_path / "again")
    assert again["goodput_bps"].to_list() == goodputs, "the programs' random numbers come from the seed"
