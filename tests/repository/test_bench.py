"""`make bench` measures what its documentation lists. These tests do not depend on the speed of the machine."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

GOODPUT_TOLERANCE = 0.15
"""Relative tolerance between the simulators for half a second of CUBIC on the same dumbbell."""


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> tuple[subprocess.CompletedProcess[str], dict]:
    file = tmp_path_factory.mktemp("bench") / "bench.json"
    command = [sys.executable, ROOT / "bench" / "run.py", "--quick", "--out", file]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=dict(os.environ))
    assert done.returncode == 0, done.stderr
    return done, json.loads(file.read_text())


def test_every_case_of_the_smoke_test_has_a_row(quick: tuple[subprocess.CompletedProcess[str], dict]) -> None:
    done, document = quick
    rows = [line.split()[0] for line in done.stdout.splitlines() if line.strip()]
    assert rows[:3] == ["case", "one-cubic", "lossy-cubic"]
    assert [case["case"] for case in document["cases"]] == ["one-cubic", "lossy-cubic"]


def test_packets_are_counted_in_both_directions(quick: tuple[subprocess.CompletedProcess[str], dict]) -> None:
    (run,) = quick[1]["cases"][0]["ours"]["runs"]
    data = run["goodput_bps"] * run["simulated_s"] / 8 / 1448
    assert 1.2 * data < run["packets"] < 2.2 * data, "an ACK for every second segment, or for each"


def test_both_simulators_deliver_the_same_through_the_same_dumbbell(
    quick: tuple[subprocess.CompletedProcess[str], dict], capsys: pytest.CaptureFixture[str]
) -> None:
    case = quick[1]["cases"][0]
    if quick[1]["peer_missing"]:
        # ns-3 serves only for comparison and is not part of the product, so CI runs without it, too.
        with capsys.disabled():
            sys.stdout.write(f"\nour side alone was measured: {quick[1]['peer_missing']}\n")
        assert case["peer"]["runs"] == []
        assert "libns3-dev" in quick[0].stderr
        return
    (ours,), (peer,) = case["ours"]["runs"], case["peer"]["runs"]
    for what in ("packets", "goodput_bps"):
        assert peer[what] == pytest.approx(ours[what], rel=GOODPUT_TOLERANCE), what


def test_memory_and_cores_are_reported(quick: tuple[subprocess.CompletedProcess[str], dict]) -> None:
    done, document = quick
    assert "cores instead of one" in done.stdout
    assert all(entry["peak_bytes"] > 0 for entry in document["memory"])
