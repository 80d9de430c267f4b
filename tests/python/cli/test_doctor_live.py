"""`thalweg doctor --live`: what is said of a machine at work, and when that is a reason to do something."""

import json
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
    """Has the engine see this."""
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
    }


def test_a_connection_that_is_short_of_cpu_is_named_with_what_to_do(
    thalweg: Thalweg, seen: Callable[[dict[str, Any]], None]
) -> None:
    seen(see(CONNECTION | {"verdict": "fine"}, CONNECTION))
    done = thalweg("doctor", "--live")
    assert done.returncode == 1
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    row = "192.0.2.1:443 > [2001:db8::7]:50112 bbr 9.8 Mbit/s 10.2 Mbit/s 21.0 ms 10.1 ms 12.5 %"
    assert lines.index(f"short of CPU {row}") < lines.index(f"ok {row}"), "what matters comes first"
    assert "taken by the hypervisor, as it says 31.3 %" in lines
    assert "not run although there was work 48.0 % of the time, for 10.2 ms at most" in lines
    assert "1 BBR connection looks short of CPU" in done.stdout
    assert "do: sudo thalweg-agent cc load bbr_cpu" in lines


def test_where_nothing_is_short_nothing_is_to_be_done(thalweg: Thalweg, seen: Callable[[dict[str, Any]], None]) -> None:
    cubic = {"algorithm": "cubic", "bw_bps": None, "short_percent": None, "verdict": "not-bbr"}
    seen(see(CONNECTION | cubic, steal_percent=None, pressure_percent=None, is_realtime=False))
    done = thalweg("doctor", "--live")
    assert done.returncode == 0
    assert "no BBR connection looks short of CPU (3 established, 1 sending)" in done.stdout
    assert "it says nothing" in done.stdout
    assert "without root" in done.stdout
    assert "do:" not in done.stdout


def test_on_a_server_with_many_connections_the_first_are_shown(
    thalweg: Thalweg, seen: Callable[[dict[str, Any]], None]
) -> None:
    seen(see(*[CONNECTION] * 30))
    done = thalweg("doctor", "--live")
    assert done.stdout.count("192.0.2.1:443") == 20
    assert "... and 10 more (--json shows all)" in done.stdout
    assert "30 BBR connections look short of CPU" in done.stdout


def test_programs_get_what_was_seen(thalweg: Thalweg, seen: Callable[[dict[str, Any]], None]) -> None:
    seen(see(CONNECTION))
    done = thalweg("doctor", "--live", "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout) == see(CONNECTION)


def test_an_engine_that_cannot_look_is_an_error_with_its_reason(thalweg: Thalweg, tmp_path: Path) -> None:
    engine = tmp_path / "engine"
    engine.write_text("#!/bin/sh\necho 'the kernel does not tell of TCP connections: ENOENT' >&2\nexit 1\n")
    engine.chmod(0o755)
    done = thalweg("doctor", "--live", THALWEG_ENGINE=str(engine))
    assert done.returncode == 4
    assert "the kernel does not tell of TCP connections" in done.stderr


def test_this_machine_can_be_looked_at(thalweg: Thalweg) -> None:
    done = thalweg("doctor", "--live", "--seconds", "1", "--json")
    assert done.returncode in (0, 1), done.stderr
    assert json.loads(done.stdout)["machine"]["cpus"] >= 1
