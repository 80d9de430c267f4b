"""`thalweg shell` passes exit code, signals and terminal of a program through, and cleans up."""

import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from thalweg.run import connections_of

SCENARIO = Path(__file__).parents[4] / "scenarios" / "shell.toml"
PATIENCE_S = 30.0

pytestmark = pytest.mark.usefixtures("kernel")

TRANSFER = """
import socket, sys, time
family = socket.AF_INET6 if ":" in sys.argv[2] else socket.AF_INET
if sys.argv[1] == "serve":
    listener = socket.create_server((sys.argv[2], 7000), family=family)
    client, _ = listener.accept()
    while client.recv(65536):
        pass
else:
    with socket.create_connection((sys.argv[2], 7000)) as server:
        server.sendall(bytes(1_000_000))
        server.shutdown(socket.SHUT_WR)
        server.recv(1)
    with socket.socket(family, socket.SOCK_DGRAM) as datagrams:
        for _ in range(20):
            datagrams.sendto(bytes(500), (sys.argv[2], 7001))
    time.sleep(0.2)
"""


def words(out: Path, *options: str) -> list[str]:
    return [sys.executable, "-m", "thalweg", "shell", str(SCENARIO), "--out", str(out), "--no-report", *options]


def test_a_refused_session_leaves_no_directory(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "thalweg", "shell", str(SCENARIO), "--engine", "sim", "--", "true"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2, done.stderr
    assert not any((tmp_path / "runs").glob("*"))


@pytest.mark.usefixtures("uml")
def test_a_capture_that_the_engine_does_not_write_is_refused(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "thalweg", "shell", str(SCENARIO), "--engine", "uml", "--pcap", "--", "true"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, "--pcap: uml does not write packet captures" in done.stderr) == (2, True), done.stderr
    assert not any((tmp_path / "runs").glob("*"))


def wait_until(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.05)


def is_running(pid: int) -> bool:
    try:
        return ") Z" not in Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("ip", [4, 6])
def test_a_transfer_crosses_the_path_and_is_in_the_tables_with_its_five_tuple(tmp_path: Path, ip: int) -> None:
    if ip == 6 and not Path("/proc/sys/net/ipv6").exists():
        pytest.skip("this kernel has no IPv6")
    script = tmp_path / "transfer.py"
    script.write_text(TRANSFER)
    python = f"{sys.executable} {script}"
    options = ("--set", f"path.ip={ip}", "--server", f"{python} serve $THALWEG_SERVER", "--")
    command = ("sh", "-c", f"{python} send $THALWEG_SERVER; echo $THALWEG_RATE $THALWEG_RTT; exit 7")
    began = time.monotonic()
    done = subprocess.run([*words(tmp_path / "run", *options), *command], capture_output=True, text=True)
    took_s = time.monotonic() - began
    assert done.returncode == 7, done.stderr
    assert done.stdout == "20Mbps 50ms\n"
    connections = {connection.protocol: connection for connection in connections_of(tmp_path / "run" / "events.jsonl")}
    server = "10.77.0.2" if ip == 4 else "[fd77::2]"
    tcp, udp = connections["tcp"], connections["udp"]
    assert (tcp.target, tcp.bytes) == (f"{server}:7000", 1_000_000)
    # 1 MB takes 0.4 s at 20 Mbit/s, after a handshake of 50 ms and several round trips of slow start.
    assert 0.4 < tcp.seconds < took_s
    assert tcp.rtt_us
    assert tcp.rtt_us >= 50_000
    assert (udp.target, udp.bytes, udp.retransmits) == (f"{server}:7001", 10_000, None)
    assert f"{server}:7000" in done.stderr
    assert f"{server}:7001" in done.stderr
    flows = pl.read_parquet(tmp_path / "run" / "flows" / "*.parquet")
    assert set(flows["flow"]) == {"tcp-7000", "udp-7001"}
    assert pl.read_parquet(tmp_path / "run" / "queue" / "*.parquet").height > 0


def test_ctrl_c_reaches_the_command_and_not_thalweg(tmp_path: Path) -> None:
    script = "trap 'echo caught; exit 5' INT; test -t 0 && test -t 1 && echo ready; while :; do sleep 0.05; done"
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(sys.executable, words(tmp_path / "run", "--", "sh", "-c", script))
    printed = read_until(terminal, b"ready")
    os.write(terminal, b"\x03")
    printed += read_until(terminal, b"run     ")
    _, status = os.waitpid(pid, 0)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(status) == 5, printed
    assert b"caught" in printed


def read_until(terminal: int, text: bytes) -> bytes:
    printed, until = b"", time.monotonic() + PATIENCE_S
    while text not in printed:
        assert time.monotonic() < until, printed
        if select.select([terminal], [], [], 0.1)[0]:
            printed += os.read(terminal, 4096)
    return printed


def test_a_killed_session_leaves_nothing_behind(tmp_path: Path) -> None:
    script = "sleep 1000 & echo $! >child; echo $$ >shell; trap '' TERM HUP; while :; do sleep 1; done"
    typed = words(tmp_path / "run", "--", "sh", "-c", script)
    session = subprocess.Popen(typed, cwd=tmp_path, stderr=subprocess.DEVNULL)
    files = [tmp_path / "child", tmp_path / "shell"]
    wait_until(lambda: all(file.exists() and file.read_text().strip() for file in files))
    pids = [int(file.read_text()) for file in files]
    session.send_signal(signal.SIGKILL)
    session.wait()
    wait_until(lambda: not any(is_running(pid) for pid in pids))


def test_a_missing_command_exits_with_127_and_a_sweep_is_refused_with_its_points(tmp_path: Path) -> None:
    done = subprocess.run(words(tmp_path / "run", "--", "no-such-command"), capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (127, "thalweg shell: no-such-command: command not found\n")
    swept = SCENARIO.with_name("quickstart.toml")
    typed = [sys.executable, "-m", "thalweg", "shell", str(swept), "--", "true"]
    done = subprocess.run(typed, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 2
    assert "--set path.buffer=0.5bdp" in done.stderr
