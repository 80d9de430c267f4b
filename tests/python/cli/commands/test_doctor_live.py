"""`thalweg doctor --live`: its report on a loaded machine, and when it recommends an action."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import Done

Thalweg = Callable[..., Done]

MACHINE = {
    "cpus": 1,
    "steal_percent": 31.26,
    "pressure_percent": 4.0,
    "stalled_percent": 48.0,
    "longest_stall_us": 10_240,
    "is_realtime": True,
}

CONNECTION = {
    "netns": 7,
    "netns_name": "docker 3f2a9b0c1d2e",
    "local": "192.0.2.1:443",
    "remote": "[2001:db8::7]:50112",
    "algorithm": "bbr",
    "goodput_bps": 9_800_000.0,
    "bw_bps": 10_200_000,
    "srtt_us": 21_000,
    "min_rtt_us": 10_100,
    "cwnd_packets": 18,
    "short_percent": 12.5,
    "verdict": "short-of-cpu",
}


@pytest.fixture
def seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[dict[str, Any]], None]:
    """Install an engine; return a function that sets the values that it reports."""
    answer, engine = tmp_path / "seen.json", tmp_path / "engine"
    engine.write_text(f'#!/bin/sh\n[ "$1 $2 $3" = "live --seconds 5" ] && cat {answer}\n')
    engine.chmod(0o755)
    monkeypatch.setenv("THALWEG_ENGINE", str(engine))
    return lambda seen: answer.write_text(json.dumps(seen)) and None


def see(*connections: dict[str, Any], **machine: object) -> dict[str, Any]:
    return {
        "lasted_ms": 5004,
        "machine": MACHINE | machine,
        "connections": list(connections),
        "established": len(connections) + 2,
        "namespaces": [
            {"netns": 4, "name": "host", "own": True, "established": 2},
            {"netns": 7, "name": "docker 3f2a9b0c1d2e", "own": False, "established": len(connections)},
        ],
        "missed": {"namespaces": [], "hidden_processes": 0},
    }


def test_a_cpu_limited_connection_is_listed_with_a_remedy(
    thalweg: Thalweg, seen: Callable[[dict[str, Any]], None]
) -> None:
    seen(see(CONNECTION | {"verdict": "fine"}, CONNECTION))
    done = thalweg("doctor", "--live")
    assert done.returncode == 1
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    row = "192.0.2.1:443 > [2001:db8::7]:50112 bbr 9.8 Mbit/s 10.2 Mbit/s 21.0 ms 10.1 ms 12.5 %"
    row += " docker 3f2a9b0c1d2e"
    assert lines.index(f"short of CPU {row}") < lines.index(f"ok {row}"), "what matters comes first"
    assert "connections of this network namespace and 1 other: docker 3f2a9b0c1d2e (2 established)" in lines
    assert "steal time that the hypervisor reports 31.3 %" in lines
    assert "runnable, but not run 48.0 % of the time, at most 10.2 ms at once" in lines
    assert "1 BBR connection is short of CPU" in done.stdout
    assert "do: sudo thalweg-agent cc load bbr_cpu" in lines


def test_without_a_shortage_no_remedy_is_printed(thalweg: Thalweg, seen: Callable[[dict[str, Any]], None]) -> None:
    cubic = {"algorithm": "cubic", "bw_bps": None, "short_percent": None, "verdict": "not-bbr"}
    seen(see(CONNECTION | cubic, steal_percent=None, pressure_percent=None, is_realtime=False))
    done = thalweg("doctor", "--live")
    assert done.returncode == 0
    assert "no BBR connection is short of CPU (3 established, 1 sending)" in done.stdout
    assert "not reported" in done.stdout
    assert "without root" in done.stdout
    assert "do:" not in done.stdout


def test_only_the_first_of_many_connections_are_shown(thalweg: Thalweg, seen: Callable[[dict[str, Any]], None]) -> None:
    seen(see(*[CONNECTION] * 30))
    done = thalweg("doctor", "--live")
    assert done.stdout.count("192.0.2.1:443") == 20
    assert "... and 10 more (--json shows all)" in done.stdout
    assert "30 BBR connections are short of CPU" in done.stdout


def test_inaccessible_network_namespaces_are_counted_and_named(
    thalweg: Thalweg, seen: Callable[[dict[str, Any]], None]
) -> None:
    missed = {"namespaces": ["ip netns blue", "4026532008"], "hidden_processes": 31}
    seen(see() | {"namespaces": see()["namespaces"][:1], "missed": missed})
    lines = [line.strip() for line in thalweg("doctor", "--live").stdout.splitlines()]
    assert "connections of this network namespace" in lines
    assert "not checked: 2 network namespaces that cannot be entered: ip netns blue, 4026532008" in lines
    assert "not checked: the network namespace of 31 processes that this user may not inspect" in lines
    assert ("do: sudo thalweg doctor --live" in lines) == (os.geteuid() != 0)


def test_json_contains_all_observations(thalweg: Thalweg, seen: Callable[[dict[str, Any]], None]) -> None:
    seen(see(CONNECTION))
    done = thalweg("doctor", "--live", "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout) == see(CONNECTION)


def test_an_engine_that_cannot_inspect_is_an_error_with_its_reason(thalweg: Thalweg, tmp_path: Path) -> None:
    engine = tmp_path / "engine"
    engine.write_text("#!/bin/sh\necho 'the kernel does not list TCP connections: ENOENT' >&2\nexit 1\n")
    engine.chmod(0o755)
    done = thalweg("doctor", "--live", THALWEG_ENGINE=str(engine))
    assert done.returncode == 4
    assert "the kernel does not list TCP connections" in done.stderr


def test_this_machine_can_be_inspected(thalweg: Thalweg) -> None:
    done = thalweg("doctor", "--live", "--seconds", "1", "--json")
    assert done.returncode in (0, 1), done.stderr
    assert json.loads(done.stdout)["machine"]["cpus"] >= 1


def test_a_connection_in_another_network_namespace_is_listed_with_its_namespace(thalweg: Thalweg) -> None:
    script = (
        "import socket, sys, threading\n"
        "listener = socket.create_server(('127.0.0.1', 0))\n"
        "sender = socket.create_connection(listener.getsockname())\n"
        "receiver, _ = listener.accept()\n"
        "def receive():\n"
        "    while receiver.recv(65536):\n"
        "        pass\n"
        "threading.Thread(target=receive, daemon=True).start()\n"
        "print('ready', listener.getsockname()[1], flush=True)\n"
        "while True:\n"
        "    sender.sendall(bytes(20_000))\n"
    )
    inside = f'ip link set lo up && exec {sys.executable} -c "$SCRIPT"'
    command = ["unshare", "--net", "sh", "-c", inside]
    if os.geteuid() != 0:
        pytest.skip("only root sees into other network namespaces")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ | {"SCRIPT": script}) as process:
        assert process.stdout is not None
        port = process.stdout.readline().split()[1]
        done = thalweg("doctor", "--live", "--seconds", "1", "--json")
        process.kill()
    shown = json.loads(done.stdout)
    (ours,) = [one for one in shown["connections"] if one["remote"] == f"127.0.0.1:{port}"]
    (namespace,) = [one for one in shown["namespaces"] if one["netns"] == ours["netns"]]
    assert not namespace["own"]
    assert namespace["established"] >= 2
    assert ours["netns_name"] == namespace["name"]
    assert str(process.pid) in namespace["name"] or "unit" in namespace["name"]
