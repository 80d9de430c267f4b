"""The packages of the agent are installed, started and removed, and record connections, in a temporary copy of this
machine.
"""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from left_out import skip_or_fail
from machine import Machine
from waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]
UNIT = "/usr/lib/systemd/system/thalweg-agent.service"
TUNE_UNIT = "/usr/lib/systemd/system/thalweg-tune.service"
UNITS = (UNIT, TUNE_UNIT)
AGENT = "/usr/bin/thalweg-agent"


def unit(machine: Machine, key: str, of: str = UNIT) -> list[str]:
    """Return the values of a setting of a unit."""
    (words,) = re.findall(rf"^{key}=(.+)$", machine.run("cat", of), flags=re.MULTILINE)
    return str(words).split()


def test_the_binary_is_statically_linked(packages: dict[str, Path], tmp_path: Path) -> None:
    with tarfile.open(packages[".gz"]) as archive:
        archive.extractall(tmp_path, filter="data")
    (folder,) = tmp_path.iterdir()
    dynamic = subprocess.run(["readelf", "-ld", folder / "thalweg-agent"], capture_output=True, text=True, check=True)
    assert "NEEDED" not in dynamic.stdout
    assert "INTERP" not in dynamic.stdout
    version = subprocess.run([folder / "thalweg-agent", "--version"], capture_output=True, text=True, check=True)
    assert folder.name.startswith(version.stdout.strip().replace(" ", "-"))
    for name in (
        "thalweg-agent.service",
        "thalweg-tune.service",
        "thalweg-agent.json",
        "agent.md",
        "agent-record.md",
        "agent-tune.md",
        "LICENSE-MIT",
        "bpf/cc/bbr_cpu/bbr_cpu.bpf.c",
    ):
        assert (folder / name).is_file(), name


def test_packages_are_reproducible(packages: dict[str, Path], tmp_path: Path) -> None:
    subprocess.run([ROOT / "packaging/agent/build", tmp_path], capture_output=True, check=True)
    assert {path.name: path.read_bytes() for path in packages.values()} == {
        path.name: path.read_bytes() for path in tmp_path.iterdir()
    }


def test_removal_leaves_no_files_behind(installed: Machine) -> None:
    assert installed.run(AGENT, "--version").startswith("thalweg-agent ")
    files = installed.changed()
    own = {AGENT, *UNITS, "/etc/default/thalweg-agent", "/etc/default/thalweg-tune"}
    assert own <= files
    assert all(file in own or "/doc/thalweg-agent/" in file for file in files)

    installed.write("/etc/default/thalweg-agent", 'RECORD_OPTIONS="--sample 1/10"\n')
    installed.write("/var/lib/thalweg/records/old.parquet", "rows")
    installed.run("dpkg", "--remove", "thalweg-agent")
    kept = {"/etc/default/thalweg-agent", "/etc/default/thalweg-tune", "/var/lib/thalweg/records/old.parquet"}
    assert installed.changed() == kept
    installed.run("dpkg", "--purge", "thalweg-agent")
    assert installed.changed() == set()


def test_an_upgrade_keeps_local_configuration(installed: Machine, packages: dict[str, Path]) -> None:
    installed.write("/etc/default/thalweg-agent", 'RECORD_OPTIONS="--sample 1/10"\n')
    installed.run("dpkg", "--install", str(packages[".deb"]))
    assert "1/10" in installed.run("cat", "/etc/default/thalweg-agent")


def test_packages_notify_the_service_manager(machine: Machine, packages: dict[str, Path]) -> None:
    machine.run("mkdir", "-p", "/run/systemd/system")
    machine.write("/usr/bin/systemctl", '#!/bin/sh\necho "$*" >>/run/said\n', "755")

    def said(*command: str) -> list[str]:
        machine.run("sh", "-c", ": >/run/said")
        machine.run(*command)
        return machine.run("cat", "/run/said").splitlines()

    install = ("dpkg", "--install", str(packages[".deb"]))
    assert said(*install) == ["daemon-reload"], "installation starts no service"
    assert "try-restart thalweg-agent.service thalweg-tune.service" in said(*install)
    removed = said("dpkg", "--remove", "thalweg-agent")
    both = "thalweg-agent.service thalweg-tune.service"
    assert removed == [f"stop {both}", f"--quiet disable {both}", "daemon-reload"]


def test_systemd_accepts_the_unit(installed: Machine) -> None:
    if shutil.which("systemd-analyze") is None:
        skip_or_fail("there is no systemd-analyze")
    done = subprocess.run(
        installed.command("systemd-analyze", "verify", *UNITS), capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


class Service:
    """The service with the command line of its unit, some capabilities, and a socket for notifications of systemd."""

    def __init__(self, machine: Machine, rights: list[str], of: str = UNIT) -> None:
        self.machine = machine
        bounds = ",".join(["-all", *(f"+{right.removeprefix('CAP_').lower()}" for right in rights)])
        *line, options = unit(machine, "ExecStart", of)
        assert options == {UNIT: "$RECORD_OPTIONS", TUNE_UNIT: "$TUNE_OPTIONS"}[of]
        start = ["setpriv", f"--bounding-set={bounds}", "--no-new-privs", *line, "--listen", "127.0.0.1:0"]
        address = f"\0thalweg-test-{os.getpid()}-{id(self)}"
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.bind(address)
            manager.setblocking(False)
            environment = {"PATH": os.environ["PATH"], "NOTIFY_SOCKET": address.replace("\0", "@")}
            self.process = subprocess.Popen(machine.command(*start), env=environment, stderr=subprocess.PIPE, text=True)
            wait_until(lambda: self.process.poll() is not None or told(manager) == b"READY=1")

    def is_recording(self) -> bool:
        return self.process.poll() is None

    def status(self) -> dict[str, object]:
        return dict(json.loads(self.machine.run(AGENT, "status", "--json")))

    def end(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        self.process.communicate()
        return self.process.returncode


def told(manager: socket.socket) -> bytes:
    try:
        return manager.recv(100)
    except BlockingIOError:
        return b""


def test_the_service_records_with_the_capabilities_of_its_unit(installed: Machine) -> None:
    service = Service(installed, unit(installed, "CapabilityBoundingSet"))
    assert service.is_recording(), service.process.communicate()
    assert str(service.status()["listen"]).startswith("127.0.0.1:")
    assert "recording" in installed.run(AGENT, "status")
    assert installed.run("stat", "-c", "%a %u", "/run/thalweg/agent.sock").split() == ["600", "0"]
    assert service.end() == 0
    assert "/run" not in installed.run("find", "/run/thalweg", "-type", "s")


@pytest.fixture
def container() -> Iterator[str]:
    """Open a connection in another network namespace by another user's process, and yield the server's address. The
    address is unique on this machine, unlike 127.0.0.1 with the same port.
    """
    script = (
        "import socket, sys\n"
        "server = socket.create_server(('127.84.72.87', 0))\n"
        "client = socket.create_connection(server.getsockname())\n"
        "accepted = server.accept()\n"
        "print('{}:{}'.format(*server.getsockname()), flush=True)\n"
        "sys.stdin.read()\n"
    )
    user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "/usr/bin/python3", "-c", script]
    line = ["unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh", *user]
    with subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.communicate()


def finds(machine: Machine, rights: list[str], connection: str = "") -> bool:
    """Return whether the service records with these capabilities, and reports a connection that was open before it
    started.
    """
    service = Service(machine, rights)
    try:
        return service.is_recording() and connection in machine.run(AGENT, "top", "--once")
    finally:
        service.end()


def without_each(rights: list[str]) -> Iterator[list[str]]:
    for right in rights:
        yield [other for other in rights if other != right]


def test_every_capability_of_the_unit_is_needed(installed: Machine, container: str) -> None:
    rights = unit(installed, "CapabilityBoundingSet")
    assert finds(installed, rights, container)
    assert [fewer for fewer in without_each(rights) if finds(installed, fewer, container)] == []


def test_the_service_records_with_the_reduced_capabilities_of_the_unit(installed: Machine) -> None:
    rights = unit(installed, "#   CapabilityBoundingSet")
    assert finds(installed, rights)
    assert [fewer for fewer in without_each(rights) if finds(installed, fewer)] == []


def test_the_tuning_service_needs_the_same_capabilities(installed: Machine) -> None:
    rights = unit(installed, "CapabilityBoundingSet", TUNE_UNIT)
    assert rights == unit(installed, "CapabilityBoundingSet")
    for enough in (rights, unit(installed, "#   CapabilityBoundingSet", TUNE_UNIT)):
        service = Service(installed, enough, TUNE_UNIT)
        assert service.is_recording(), service.process.communicate()
        assert json.loads(installed.run(AGENT, "tune", "status", "--json"))["trouble"] is None
        assert service.end() == 0
    assert installed.run("stat", "-c", "%a", "/var/lib/thalweg/tune.json").strip() == "600"
