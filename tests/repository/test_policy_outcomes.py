"""The table of policy outcomes matches the simulator, and its scenarios are valid."""

import json
import subprocess
import sys
from pathlib import Path

import policy_outcomes
import pytest

ROOT = Path(__file__).resolve().parents[2]


def test_the_table_matches_the_simulator() -> None:
    command = [sys.executable, ROOT / "tools" / "policy_outcomes.py", "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_changed_outcome_of_a_path_kind_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    population = json.loads((policy_outcomes.DATA / "population.json").read_text())
    population["kinds"] = [{**population["kinds"][0], "rtt": "31ms"}]
    assert policy_outcomes.check(population) == 1
    assert "`fixed` differs from the simulator's result" in capsys.readouterr().err
