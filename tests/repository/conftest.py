"""Shared fixtures of the tests of packages: the wheel, the agent's packages, a machine for these, a cgroup for
connections.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from left_out import skip_or_fail
from machine import Machine
from waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def packages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return the tarball and the Debian package, by the suffix of their names."""
    dist = tmp_path_factory.mktemp("dist")
    done = subprocess.run([ROOT / "packaging/agent/build", dist], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    built = {Path(line).suffix: Path(line) for line in done.stdout.splitlines()}
    assert sorted(built) == [".deb", ".gz"], done
    return built


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel as `make wheel` does, but without `--strip`, which would link the engine again."""
    dist = tmp_path_factory.mktemp("dist")
    maturin = Path(sys.executable).with_name("maturin")
    path = os.environ | {"PATH": f"{maturin.parent}{os.pathsep}{os.environ['PATH']}"}
    command = [maturin, "build", "--release", "--out", dist]
    done = subprocess.run(command, cwd=ROOT, env=path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (built,) = dist.glob("*.whl")
    return built


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    if os.geteuid() != 0:
        skip_or_fail("packages are installed by root only")
    machine = Machine(tmp_path)
    try:
        yield machine
    finally:
        machine.end()


@pytest.fixture
def installed(machine: Machine, packages: dict[str, Path]) -> Machine:
    """Return a copy of the machine in which the package has just been installed."""
    machine.run("dpkg", "--install", str(packages[".deb"]))
    return machine


@pytest.fixture(scope="module")
def cgroup() -> Iterator[Path]:
    """Create a cgroup for the connections of a module's tests, separate from others of the machine."""
    if os.geteuid() != 0:
        skip_or_fail("connections are recorded by root only")
    mounts = (line.split() for line in Path("/proc/self/mounts").read_text().splitlines())
    mount = next((Path(words[1]) for words in mounts if words[2] == "cgroup2"), None)
    if mount is None:
        skip_or_fail("no cgroup v2 is mounted")
    path = mount / f"thalweg-test-{os.getpid()}"
    path.mkdir()
    yield path
    wait_until(lambda: not (path / "cgroup.procs").read_text())
    path.rmdir()
