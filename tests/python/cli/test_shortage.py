"""An exhausted resource is named in the error, with the exit code that means "try again"."""

import subprocess
import sys
from pathlib import Path

import pytest
from thalweg.errors import Exit

SCENARIO = """
name = "short"
duration = "1s"
[path]
rate = "10Mbps"
rtt = "40ms"
[[flow]]
name = "ours"
cc = "bbr"
"""


@pytest.mark.parametrize(
    "command", [["check"], ["run", "--no-report", "--engine", "sim"], ["run", "--no-report", "--engine", "kernel"]]
)
@pytest.mark.parametrize("limit", [8, 12, 20])
def test_running_out_of_file_descriptors_is_not_reported_as_a_missing_algorithm(
    tmp_path: Path, limit: int, command: list[str]
) -> None:
    (tmp_path / "short.toml").write_text(SCENARIO)
    name, *options = command
    shell = ["sh", "-c", f'ulimit -n {limit}; exec "$@"', "sh"]
    done = subprocess.run(
        [*shell, sys.executable, "-m", "thalweg", name, "short.toml", *options],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == Exit.TEMPORARY, done.stderr
    assert "ulimit -n" in done.stderr
    assert "sysctl" not in done.stderr
    assert not (tmp_path / "runs").exists()
