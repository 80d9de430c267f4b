"""`thalweg`, called as a user does."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

SCENARIO = """\
name = "race"
[path]
rate = "40Mbps"
rtt = "45ms"
[[flow]]
name = "large"
cc = "cubic"
size = "30MB"
[[flow]]
name = "medium"
cc = "bbr"
size = "1MB"
start = "0.5s"
repeat = {gap = "0.1s", until = "large"}
[sweep]
"path.buffer" = ["0.5bdp", "2bdp"]
"flow.medium.cc" = ["bbr", "cubic"]
"""

Thalweg = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def thalweg(tmp_path: Path) -> Thalweg:
    """Calls `thalweg` in a folder with the scenario race.toml, 80 columns wide and without colour."""
    (tmp_path / "race.toml").write_text(SCENARIO)

    def call(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "thalweg", *arguments],
            cwd=tmp_path,
            env=os.environ | {"COLUMNS": "80", "NO_COLOR": "1", "PYTHONPATH": os.pathsep.join(sys.path)} | environment,
            capture_output=True,
            text=True,
        )

    return call
