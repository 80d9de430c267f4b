"""`make bench` measures the cost of recording. These tests do not depend on the speed of the machine."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from left_out import skip_or_fail
from places import PLACES

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, Any]]:
    """Return the output and the measurements of a smoke test."""
    file = tmp_path_factory.mktemp("bench") / "recording.json"
    command = [sys.executable, ROOT / "bench" / "recording.py", "--quick", "--out", file]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=dict(os.environ))
    assert done.returncode == 0, done.stderr
    if "left out" in done.stderr:
        skip_or_fail(done.stderr)
    return done.stdout, json.loads(file.read_text())


def cpu_ns(side: dict[str, Any]) -> float:
    """Return the CPU time per connection at both ends."""
    return float(side["clients_ns"] + side["servers_ns"]) / side["answered"]


def min_cpu_ns(measurements: dict[str, Any], kind: str) -> float:
    """Return the smallest CPU time per connection of all windows: other work on the machine can only increase it."""
    results = (measurements[f"slowdown_{kind}_{load}"] for load in ("spare", "busy"))
    return min(cpu_ns(window[side]) for each in results for window in each["windows"] for side in ("recorded", "other"))


def test_all_costs_of_recording_are_reported(quick: tuple[str, dict[str, Any]]) -> None:
    words = [line.split()[0] for line in quick[0].splitlines() if line.strip()]
    assert {"slowdown", "kernel", "process", "lost", "memory"} <= set(words)


@pytest.mark.parametrize("kind", ["nginx-tls", "nginx-tls-again", "nginx", "bare"])
def test_both_servers_answer_the_same_number_of_requests(quick: tuple[str, dict[str, Any]], kind: str) -> None:
    for window in quick[1][f"slowdown_{kind}_spare"]["windows"] + quick[1][f"slowdown_{kind}_busy"]["windows"]:
        assert window["recorded"]["answered"] == window["other"]["answered"] > 0
        for side in ("recorded", "other"):
            assert all(window[side][key] > 0 for key in ("clients_ns", "servers_ns", "clock_ns"))
        assert window["process_ns"] > 0
        assert window["connections"] >= window["recorded"]["answered"]
        assert 0 <= window["idle"] + window["stolen"] <= 1


def test_a_connection_costs_more_on_a_web_server_and_most_with_tls(quick: tuple[str, dict[str, Any]]) -> None:
    kinds = ("nginx-tls", "nginx-tls-again", "nginx", "bare")
    tls, again, plain, bare = (min_cpu_ns(quick[1], kind) for kind in kinds)
    assert tls > 2 * plain
    assert tls > again > plain > bare > 0
    for kind in kinds:
        assert quick[1][f"slowdown_{kind}_spare"]["cpu_us_per_connection"] * 1e3 >= min_cpu_ns(quick[1], kind)


def test_lost_throughput_matches_kernel_and_process_time(quick: tuple[str, dict[str, Any]]) -> None:
    result = quick[1]["slowdown_bare_busy"]
    lost = []
    for window in result["windows"]:
        sides = (window["recorded"], window["other"])
        recorded, other = (cpu_ns(side) for side in sides)
        lost.append(1 - other / (recorded + window["process_ns"] / window["connections"]))
    assert result["slowdown"] == pytest.approx(sum(lost) / len(lost))
    assert result["slowdown_at_most"] > result["slowdown"] > result["in_kernel"]


def test_with_a_spare_cpu_wall_time_counts(quick: tuple[str, dict[str, Any]]) -> None:
    result = quick[1]["slowdown_bare_spare"]
    longer = []
    for window in result["windows"]:
        sides = (window["recorded"], window["other"])
        recorded, other = (side["clock_ns"] / side["answered"] for side in sides)
        longer.append(recorded / other - 1)
    assert result["slowdown"] == pytest.approx(sum(longer) / len(longer))
    assert result["slowdown_at_most"] > result["slowdown"]


@pytest.mark.parametrize("place", PLACES)
def test_bpf_programs_run_a_few_times_per_connection(quick: tuple[str, dict[str, Any]], place: str) -> None:
    cost = quick[1][f"cost {place}"]
    assert 5 < cost["calls_per_connection"] < 20
    assert cost["ns_per_call"] > (cost["measuring_ns_per_call"] or 0)
    if cost["net_ns_per_connection"]:
        assert 0 < cost["quiet_ns_per_connection"] <= max(cost["net_ns_per_connection"])


def test_memory_is_reported_after_every_open_connection_has_a_row(quick: tuple[str, dict[str, Any]]) -> None:
    memory = quick[1]["memory"]
    assert (memory["open"], memory["interim_rows"] >= 200) == (200, True)
    assert memory["process_bytes_at_most"] >= memory["process_bytes"] > 0
