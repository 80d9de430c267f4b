"""Cost of a process: CPU seconds as the system accounts them, wall-clock seconds, and its peak memory."""

import os
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

LOOK_EVERY_S = 0.005


@dataclass(frozen=True)
class Cost:
    """Times, peak memory and standard output of a process."""

    cpu_s: float
    wall_s: float
    peak_bytes: int
    stdout: str


def of_checkout(command: Sequence[str | Path], checkout: Path) -> list[str | Path]:
    """Return the command that runs a command of thalweg with the Python modules of another checkout."""
    return ["env", f"PYTHONPATH={checkout / 'python'}", *command]


def run(command: Sequence[str | Path]) -> Cost:
    """Run a command until it exits. If it fails, exit with its standard error."""
    # As for users, Python keeps its bytecode.
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    words = [str(word) for word in command]
    start = time.monotonic()
    child = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)
    assert child.stdout is not None
    assert child.stderr is not None
    # The kernel's own peak starts with the parent's memory, so the child is sampled while it runs. The last few
    # milliseconds are missed. A child whose output exceeds a pipe's capacity would block forever, but the children here
    # print less.
    peak = 0
    while os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        peak = max(peak, _peak_bytes(child.pid))
        time.sleep(LOOK_EVERY_S)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    wall = time.monotonic() - start
    with child.stdout as out, child.stderr as err:
        stdout, stderr = out.read(), err.read()
    if child.returncode != 0:
        raise SystemExit(f"bench: {' '.join(words)}\nfailed with {child.returncode}:\n{stderr.strip()}")
    return Cost(usage.ru_utime + usage.ru_stime, wall, peak, stdout)


def _peak_bytes(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    kib = (int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))
    return next(kib, 0) * 1024
