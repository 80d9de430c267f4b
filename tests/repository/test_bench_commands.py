"""`bench/commands.py` measures each command beside its peer. This does not depend on the speed of the machine."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_each_command_is_measured_beside_its_peer_and_the_earlier_version(tmp_path: Path) -> None:
    file = tmp_path / "commands.json"
    command = [sys.executable, ROOT / "bench" / "commands.py", "--quick", "--before", ROOT, "--out", file]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows = json.loads(file.read_text())
    assert len(rows) == 4
    for row in rows:
        (ours,), (peer,), (before,) = row["ours_s"], row["peer_s"], row["before_s"]
        assert min(ours, before) > peer > 0, "a command starts an interpreter, or the engine"
        assert row["goal_s"] > 0
    quickstart = rows[-1]
    assert quickstart["goal_s"] == 1.5 + quickstart["peer_s"][0]
    assert done.stdout.count("\n| ") == 5, "a head and four rows"
    assert "| before |" in done.stdout
