"""The same dumbbell on ns-3: the program `bench/ns3/dumbbell.cc` with Debian's ns-3 library."""

import json
import shutil
import subprocess
from pathlib import Path

from thalweg.plan.models import Experiment

from measuring import cases, child
from measuring.table import Side

SOURCE = Path(__file__).resolve().parents[1] / "ns3" / "dumbbell.cc"
HEADER = Path("/usr/include/ns3/tcp-bbr.h")
LIBRARIES = ["applications", "internet", "point-to-point", "traffic-control", "network", "core"]


def why_not() -> str | None:
    """Return why ns-3 cannot be measured here; `None` if it can."""
    if not HEADER.exists():
        return "ns-3 is not installed: sudo apt-get install libns3-dev"
    if shutil.which("g++") is None:
        return "g++ is not installed: sudo apt-get install g++"
    return None


def compile_into(folder: Path) -> Path:
    """Compile the program and return its path."""
    program = folder / "dumbbell"
    libraries = [f"-lns3-{name}" for name in LIBRARIES]
    done = subprocess.run(
        ["g++", "-O2", "-std=c++17", "-o", program, SOURCE, *libraries], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise SystemExit(f"bench: {SOURCE} does not compile with this ns-3 (3.37 is wanted):\n{done.stderr}")
    return program


def run(program: Path, experiment: Experiment, seconds: float) -> Side:
    """Simulate one experiment for a number of seconds."""
    cost = child.run([program, *cases.peer_arguments(experiment, seconds)])
    document = json.loads(cost.stdout)
    return Side.of(cost, packets=document["packets"], simulated_s=seconds, payload=document["received_bytes"])
