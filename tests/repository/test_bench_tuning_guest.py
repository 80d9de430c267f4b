"""Measurements of `thalweg-agent tune` among four algorithms in a guest, by bench/tuning_guest.py."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from left_out import skip_or_fail

ROOT = Path(__file__).resolve().parents[2]
ARMS = {"cubic", "bbr", "htcp", "dctcp"}
POLICIES = ("bayes", "bpftune")


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return the results of two tables with few connections."""
    file = tmp_path_factory.mktemp("bench") / "tuning.json"
    command = [sys.executable, ROOT / "bench" / "tuning_guest.py", "--quick", "--out", file]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    if "left out" in done.stderr:
        skip_or_fail(done.stderr)
    return dict(json.loads(file.read_text())) | {"said": done.stdout}


@pytest.mark.parametrize("policy", POLICIES)
def test_a_table_has_a_row_per_algorithm_and_counts_each_connection_once(quick: dict[str, Any], policy: str) -> None:
    result = quick["10 % loss"][policy]
    assert {row["cc"] for row in result["rows"]} == ARMS
    connections = [(one["assignment"], one["cc"]) for one in result["connections"]]
    assert len(connections) == 24
    assert {assignment for assignment, _ in connections} <= {"treated", "held_out"}
    for row in result["rows"]:
        assert row["count"] == connections.count(("treated", row["cc"]))
    for column in ("IPAddress", "CongAlg", "Metric", "Count", "Greedy", "MinRtt", "MaxRtDlvr"):
        assert column in quick["said"]


@pytest.mark.parametrize("policy", POLICIES)
def test_without_the_agent_all_connections_use_cubic(quick: dict[str, Any], policy: str) -> None:
    result = quick["10 % loss"][policy]
    assert result["untuned_ccs"] == ["cubic"]
    assert {one["cc"] for one in result["connections"] if one["assignment"] == "held_out"} <= {"cubic"}


def test_bpftunes_rule_assigns_bbr_to_most_lossy_connections(quick: dict[str, Any]) -> None:
    (bbr,) = (row for row in quick["10 % loss"]["bpftune"]["rows"] if row["cc"] == "bbr")
    assert bbr["share"] >= 0.5


def test_ecn_algorithms_are_tried_on_a_data_centre_path(quick: dict[str, Any]) -> None:
    # At least one of the 48 connections (24 per policy) must use dctcp.
    connections = [one for policy in POLICIES for one in quick["10 % loss"][policy]["connections"]]
    assert "dctcp" in {one["cc"] for one in connections}
