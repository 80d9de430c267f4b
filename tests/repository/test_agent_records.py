"""Output of `thalweg records` for files of a real agent, about connections with known results."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from thalweg.records import SIZES, read
from thalweg.records.schema import SCHEMA
from waiting import wait_until

REQUEST = 100
"""Size of a client's request for an object, in bytes."""

SENT = {"cubic": [20_000, 50_000, 50_000, 2_000_000], "reno": [30_000, 30_000], "bbr": [40_000, 3_000_000]}
"""Sizes of a server's responses in bytes, by its congestion control."""

TRAFFIC = """\
import json, socket, sys

def pair(cc):
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket() as client:
        for one in (server, client):
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, cc.encode())
        client.connect(server.getsockname())
        return server.accept()[0], client.dup()

def take(one, size):
    while size:
        size -= len(one.recv(min(size, 1 << 20)))

def carry(cc, request, size):
    sender, client = pair(cc)
    client.sendall(bytes(request))
    take(sender, request)
    sender.setblocking(False)
    rest = memoryview(bytes(size))
    left = size
    while left:
        try:
            rest = rest[sender.send(rest):] if rest else rest
        except BlockingIOError:
            pass
        try:
            left -= len(client.recv(1 << 20, socket.MSG_DONTWAIT))
        except BlockingIOError:
            pass
    client.close()
    sender.setblocking(True)
    assert sender.recv(1) == b""
    sender.close()

for cc, sizes in json.loads(sys.argv[1]).items():
    for size in sizes:
        carry(cc, int(sys.argv[2]), size)
kept = pair("reno")
print("done", flush=True)
sys.stdin.read()
"""
"""Each client sends a request and closes first; one connection of reno without data stays open until standard input is
closed.
"""


@dataclass(frozen=True)
class Recorded:
    """The records, and the connections that they describe."""

    folder: Path
    sent: Mapping[str, list[int]]

    def thalweg(self, *arguments: str) -> str:
        """Return the output of `thalweg records`."""
        line = [sys.executable, "-m", "thalweg", "records", str(self.folder), *arguments]
        environment = os.environ | {"COLUMNS": "200", "NO_COLOR": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
        done = subprocess.run(line, capture_output=True, text=True, check=False, env=environment)
        assert done.returncode == 0, done.stderr
        assert "left out" not in done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def recorded(cgroup: Path, tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    """Return the records of an agent that has exited."""
    folder = tmp_path_factory.mktemp("agent")
    available = Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split()
    sent = {cc: sizes for cc, sizes in SENT.items() if cc in available}
    assert len(sent) > 1
    binary = os.environ.get("THALWEG_AGENT", str(Path(sys.executable).with_name("thalweg-agent")))
    at = ["--socket", str(folder / "agent.sock")]
    line = [binary, "record", "--out", str(folder / "records"), "--cgroup", str(cgroup), "--no-metrics", *at]
    enter = ["sh", "-c", f'echo $$ >"{cgroup}/cgroup.procs" && exec "$@"', "sh"]
    ends = 2 * sum(map(len, sent.values()))

    def closed() -> int:
        status = subprocess.run([binary, "status", "--json", *at], capture_output=True, text=True, check=True)
        return int(json.loads(status.stdout)["counters"]["closed"])

    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True) as agent:
        assert agent.stdout is not None
        assert agent.stdout.readline().startswith("recording")
        script = [sys.executable, "-c", TRAFFIC, json.dumps(sent), str(REQUEST)]
        with subprocess.Popen([*enter, *script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as traffic:
            assert traffic.stdout is not None
            assert traffic.stdout.readline() == "done\n"
            wait_until(lambda: closed() == ends)
            agent.terminate()
            agent.communicate()
            assert agent.returncode == 0
            traffic.communicate()
    return Recorded(folder / "records", sent)


def test_agent_files_have_exactly_the_documented_columns(recorded: Recorded) -> None:
    records = read([recorded.folder])
    assert records.left_out == []
    assert records.unknown_kinds == {}
    assert [schema == SCHEMA for schema in records.files.values()] == [True] * len(records.files)
    (rows,) = records.collect(records.rows)
    assert set(rows["source"]) == {"agent"}
    assert set(rows["machine"]) == {os.uname().nodename}
    assert set(rows["remote_address"]) == {"127.0.0.0/24"}


def test_connections_transfers_and_bytes_match_the_traffic(recorded: Recorded) -> None:
    summary = json.loads(recorded.thalweg("--json"))
    connections = sum(map(len, recorded.sent.values()))
    # Both ends are recorded, and each has sent one object; one connection has sent no data and is still open.
    counts = {
        column: {entry["value"]: entry["connections"] + entry["transfers"] for entry in summary["counts"][column]}
        for column in ("kind", "direction", "close", "ip_version", "joined")
    }
    assert counts["kind"] == {"close": 2 * connections, "transfer": 2 * connections, "interim": 2}
    assert counts["direction"] == {"in": 2 * connections + 1, "out": 2 * connections + 1}
    assert counts["close"] == {"local_fin": connections, "remote_fin": connections}
    assert (set(counts["ip_version"]), set(counts["joined"])) == ({"4"}, {"false"})
    assert (summary["open"], summary["superseded"], summary["left_out"]) == (2, 0, [])
    for entry in summary["algorithms"]:
        sizes = recorded.sent[entry["cc"]]
        still_open = 2 if entry["cc"] == "reno" else 0
        assert (entry["connections"], entry["transfers"]) == (2 * len(sizes) + still_open, 2 * len(sizes))
        assert entry["acked_bytes"] == sum(sizes) + REQUEST * len(sizes)
    assert {entry["cc"] for entry in summary["algorithms"]} == recorded.sent.keys()


def test_completion_times_match_the_sizes_sent(recorded: Recorded) -> None:
    summary = json.loads(recorded.thalweg("--json"))
    for algorithm in summary["algorithms"]:
        sizes = recorded.sent[algorithm["cc"]]
        by_size = {title: spread["rows"] for title, spread in algorithm["completion_time_by_size"].items()}
        small, next_small = SIZES[0].title, SIZES[1].title
        assert by_size[small] == len(sizes), "the requests"
        assert by_size[next_small] == len([size for size in sizes if size < 100_000])
        # A transfer of many round trips may be classified as application-limited.
        assert set(by_size) <= {small, next_small, SIZES[3].title}
        spread = algorithm["measures"]["completion_time"]
        assert 0 < spread["min"] <= spread["quantiles"]["0.5"] <= spread["max"] < 60
        assert spread["cdf"][-1][1] == pytest.approx(1)


def test_table_and_page_agree(recorded: Recorded, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    table = recorded.thalweg("--out", str(page))
    connections = sum(map(len, recorded.sent.values()))
    assert f"{2 * connections} connections closed, 2 connections still open, {2 * connections} transfers" in table
    lines: dict[str, list[str]] = {line.split()[0]: line.split() for line in table.splitlines() if line.strip()}
    for cc, sizes in recorded.sent.items():
        still_open = 2 if cc == "reno" else 0
        assert lines[cc][1:3] == [str(2 * len(sizes) + still_open), str(2 * len(sizes))]
    html = page.read_text()
    assert f"{2 * connections + 2} connections and {2 * connections} transfers" in html
    for text in (*recorded.sent, "this side was first to finish", "connections still open"):
        assert text in html


def test_connections_without_bytes_or_end_have_no_values(recorded: Recorded) -> None:
    records = read([recorded.folder])
    (rows,) = records.collect(records.rows.filter(kind="interim"))
    row: dict[str, Any]
    for row in rows.iter_rows(named=True):
        assert (row["acked_bytes"], row["sent_bytes"], row["received_bytes"]) == (0, 0, 0)
        assert (row["close"], row["fct_us"], row["goodput_bps"], row["busy_goodput_bps"]) == (None, None, None, None)
