"""A real systemd runs the packaged units of the agent: sandbox, capabilities, restarts, upgrade and removal.

systemd is the first process of temporary namespaces, on a copy of this machine's files.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import polars as pl
import pytest
from left_out import skip_or_fail
from machine import Machine
from waiting import wait_until

SYSTEMD = Path("/lib/systemd/systemd")
UNIT = "/usr/lib/systemd/system/thalweg-agent.service"
AGENT = "thalweg-agent.service"
TUNE = "thalweg-tune.service"
RIGHTS = {"CAP_SYS_PTRACE": 19, "CAP_SYS_ADMIN": 21}
"""Capabilities of the units, with their numbers (linux/capability.h)."""
FILTERED = "2"
"""Value of `Seccomp` in /proc/PID/status for a process whose system calls are filtered."""
MAX_EXPOSED = 3.0
"""Maximum exposure of the service on systemd's scale from 0 to 10, on which less than 5 is OK."""

TRAFFIC = """\
import socket
for _ in range(5):
    with socket.create_server(("127.0.0.1", 0)) as server:
        with socket.create_connection(server.getsockname()) as client:
            sender, _ = server.accept()
            with sender:
                sender.sendall(bytes(10_000))
            while client.recv(65536):
                pass
"""


class Systemd:
    """A running systemd on a copy of this machine."""

    def __init__(self, machine: Machine) -> None:
        mounts = (line.split() for line in Path("/proc/self/mounts").read_text().splitlines())
        mount = next((Path(words[1]) for words in mounts if words[2] == "cgroup2"), None)
        if mount is None or not SYSTEMD.exists():
            skip_or_fail("there is no systemd, or no cgroup v2")
        self.machine = machine
        self.cgroup = mount / f"thalweg-test-systemd-{os.getpid()}"
        self.cgroup.mkdir()
        boot = ["unshare", "--pid", "--fork", "--kill-child", "--mount", "--cgroup", "--net", "--uts", "--ipc"]
        boot += [str(Path(__file__).with_name("boot-systemd")), f"{machine.folder}/root"]
        enter = ["nsenter", f"--target={machine.keeper.pid}", "--mount"]
        script = f'echo $$ >"{self.cgroup}/cgroup.procs" && exec "$@"'
        self.process = subprocess.Popen([*enter, "sh", "-c", script, "sh", *boot])
        self.first = 0
        wait_until(self._is_up)

    def _is_up(self) -> bool:
        assert self.process.poll() is None, "systemd does not start"
        self.first = self.first or child_of(self.process.pid)
        run = Path(f"/proc/{self.first}/root/run")
        # Until boot-systemd has changed the root, /run is this machine's, which may belong to another systemd.
        return bool(self.first) and (run / "units").exists() and (run / "systemd/private").exists()

    def command(self, *words: str) -> list[str]:
        """Return the command line that runs a command within systemd's namespaces."""
        spaces = ["--mount", "--pid", "--net", "--cgroup", "--uts", "--ipc", "--root", "--wd=/"]
        return ["nsenter", f"--target={self.first}", *spaces, *words]

    def run(self, *words: str, code: int = 0) -> str:
        """Run a command within systemd's namespaces; it must exit with this code."""
        done = subprocess.run(self.command(*words), capture_output=True, text=True, check=False)
        assert done.returncode == code, f"{words}\n{done.stdout}\n{done.stderr}\n{self.said()}"
        return done.stdout

    def show(self, name: str, unit: str = AGENT) -> str:
        """Return a property of a unit."""
        return self.run("systemctl", "show", "--value", f"--property={name}", unit).strip()

    def keepers(self) -> set[int]:
        """Return the watchdog processes, which keep a service's programs attached if it is killed."""
        paths = self.run("sh", "-c", "grep -lz tune-keeper /proc/[0-9]*/cmdline || true").split()
        # The command line of the searching process also contains the word.
        return {int(path.split("/")[2]) for path in paths if self.is_agent(path.removesuffix("/cmdline"))}

    def is_agent(self, process: str) -> bool:
        with suppress(OSError):
            return self.file(f"{process}/exe").readlink().name == "thalweg-agent"
        return False

    def start(self) -> None:
        self.run("systemctl", "start", AGENT)

    def file(self, path: str) -> Path:
        """Return the path of a file of systemd's root, as seen from the test."""
        return Path(f"/proc/{self.first}/root{path}")

    def said(self) -> str:
        """Return the output of the agent; there is no journal."""
        with suppress(FileNotFoundError):
            return self.file("/run/said").read_text()
        return ""

    def install(self) -> None:
        """Install the units of the package, with drop-ins for output and restarts, and one that makes connections."""
        for unit in (AGENT, TUNE):
            self.run("ln", "-s", str(Path(UNIT).with_name(unit)), f"/run/units/{unit}")
            drop_in = self.file(f"/run/units/{unit}.d")
            drop_in.mkdir()
            (drop_in / "said.conf").write_text(
                "[Service]\nStandardOutput=append:/run/said\nStandardError=append:/run/said\nRestartSec=0\n"
            )
        self.file("/run/traffic.py").write_text(TRAFFIC)
        self.file("/run/units/traffic.service").write_text(
            "[Service]\nType=oneshot\nExecStart=/usr/bin/python3 /run/traffic.py\n"
        )
        self.run("systemctl", "daemon-reload")

    def status(self) -> dict[str, dict[str, int]]:
        return dict(json.loads(self.run("/usr/bin/thalweg-agent", "status", "--json")))

    def carry(self, connections: int) -> None:
        """Open five connections, and wait until `connections` closes have their rows."""
        self.run("systemctl", "start", "traffic.service")
        wait_until(lambda: self.status()["counters"]["close_rows"] >= connections)

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        wait_until(self._is_gone)

    def _is_gone(self) -> bool:
        """Remove systemd's cgroups from the innermost outwards; return whether all are removed."""
        with suppress(OSError):
            for folder, _, _ in os.walk(self.cgroup, topdown=False):
                Path(folder).rmdir()
        return not self.cgroup.exists()


def child_of(process: int) -> int:
    """Return the process that another one has started; 0: none."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            if int(stat.read_text().rpartition(")")[2].split()[1]) == process:
                return int(stat.parent.name)
    return 0


@pytest.fixture
def systemd(installed: Machine) -> Iterator[Systemd]:
    """Start a systemd with the units installed but not started."""
    systemd = Systemd(installed)
    try:
        systemd.install()
        yield systemd
    finally:
        systemd.end()


def test_the_service_records_in_its_sandbox_until_it_is_stopped(systemd: Systemd) -> None:
    systemd.start()
    assert systemd.show("ActiveState") == "active"
    main = int(systemd.show("MainPID"))
    status = dict(
        line.split(":\t", 1) for line in systemd.file(f"/proc/{main}/status").read_text().splitlines() if ":\t" in line
    )
    rights = sum(1 << number for number in RIGHTS.values())
    assert (int(status["CapBnd"], 16), int(status["CapEff"], 16)) == (rights, rights)
    assert (status["NoNewPrivs"].strip(), status["Seccomp"].strip()) == ("1", FILTERED)
    systemd.carry(10)
    assert systemd.run("stat", "-c", "%a", "/run/thalweg/agent.sock", "/var/lib/thalweg").split() == ["600", "700"]

    systemd.run("systemctl", "stop", AGENT)
    assert (systemd.show("Result"), systemd.show("ExecMainStatus")) == ("success", "0")
    assert "recording has ended: 10 connections closed" in systemd.said()
    files = list(systemd.file("/var/lib/thalweg/records").glob("*.parquet"))
    rows = pl.concat([pl.read_parquet(file) for file in files]).filter(kind="close")
    assert sorted(rows["direction"]) == ["in"] * 5 + ["out"] * 5
    assert set(rows.filter(direction="in")["acked_bytes"]) == {10_000}


def test_a_killed_service_restarts_and_resumes_its_folder(systemd: Systemd) -> None:
    systemd.start()
    systemd.carry(10)
    systemd.run("systemctl", "kill", "--signal=KILL", AGENT)
    wait_until(lambda: systemd.show("NRestarts") == "1" and systemd.show("ActiveState") == "active")
    systemd.carry(10)
    systemd.run("systemctl", "stop", AGENT)
    assert systemd.show("Result") == "success"


@pytest.mark.parametrize("unit", [AGENT, TUNE])
def test_a_reload_or_sighup_does_not_stop_the_service(systemd: Systemd, unit: str) -> None:
    systemd.run("systemctl", "start", unit)
    main = systemd.show("MainPID", unit)
    systemd.run("systemctl", "reload", unit)
    systemd.run("systemctl", "kill", "--signal=HUP", unit)
    wait_until(lambda: systemd.said().count("SIGHUP: reloading the settings") >= 1)
    systemd.carry(10)
    assert (systemd.show("ActiveState", unit), systemd.show("MainPID", unit)) == ("active", main)
    if unit == TUNE:
        assert len(systemd.keepers()) == 1, "the new process has one watchdog, too"
    systemd.run("systemctl", "stop", unit)
    assert systemd.show("Result", unit) == "success"


def test_options_come_from_the_configuration_file_and_invalid_ones_do_not_restart(systemd: Systemd) -> None:
    options = systemd.file("/etc/default/thalweg-agent")
    options.write_text('RECORD_OPTIONS="--sample 1/7 --no-metrics"\n')
    systemd.start()
    status = systemd.status()
    assert (status["sampled_one_in"], status["listen"]) == (7, None)
    systemd.run("systemctl", "stop", AGENT)

    options.write_text('RECORD_OPTIONS="--sample 2/3"\n')
    systemd.run("systemctl", "start", AGENT, code=1)
    assert (systemd.show("ActiveState"), systemd.show("ExecMainStatus")) == ("failed", "2")
    assert systemd.show("NRestarts") == "0"
    assert "1/10" in systemd.said()


def test_an_upgrade_restarts_and_a_removal_stops_the_running_service(
    systemd: Systemd, packages: dict[str, Path]
) -> None:
    shutil.copy(packages[".deb"], systemd.file("/run/agent.deb"))
    install = ("dpkg", "--install", "/run/agent.deb")
    systemd.run(*install)
    assert systemd.show("ActiveState") == "inactive", "installation starts no service"
    systemd.start()
    before = systemd.show("MainPID")
    systemd.run(*install)
    assert systemd.show("ActiveState") == "active"
    assert systemd.show("MainPID") not in (before, "0")
    systemd.run("dpkg", "--remove", "thalweg-agent")
    assert systemd.show("MainPID") == "0"
    assert "recording has ended" in systemd.said().splitlines()[-1]


def test_the_tuning_service_replaces_the_recorder_and_survives_a_kill(systemd: Systemd) -> None:
    systemd.start()
    systemd.run("systemctl", "start", TUNE)
    assert (systemd.show("ActiveState"), systemd.show("ActiveState", TUNE)) == ("inactive", "active")
    (keeper,) = systemd.keepers()
    systemd.carry(10)
    main = systemd.show("MainPID", TUNE)
    systemd.run("kill", "-KILL", main)
    wait_until(lambda: systemd.show("NRestarts", TUNE) == "1" and systemd.show("ActiveState", TUNE) == "active")
    (other,) = systemd.keepers()
    assert other != keeper, "the new one has its own"
    systemd.carry(10)
    systemd.run("systemctl", "stop", TUNE)
    assert (systemd.show("Result", TUNE), systemd.show("ExecMainStatus", TUNE)) == ("success", "0")
    assert systemd.keepers() == set()
    assert "recording has ended: 10 connections closed" in systemd.said()
    assert json.loads(systemd.file("/var/lib/thalweg/tune.json").read_text())["format"] == 1


def test_between_a_kill_and_a_restart_the_holder_process_keeps_the_choices(systemd: Systemd) -> None:
    # The last drop-in takes precedence; its name sorts after that of `said.conf`.
    slow = systemd.file(f"/run/units/{TUNE}.d/slow.conf")
    slow.write_text("[Service]\nRestartSec=1h\n")
    systemd.run("systemctl", "daemon-reload")
    systemd.run("systemctl", "start", TUNE)
    (keeper,) = systemd.keepers()
    systemd.run("kill", "-KILL", systemd.show("MainPID", TUNE))
    wait_until(lambda: systemd.show("SubState", TUNE) == "auto-restart")
    # By default, systemd terminates all processes of a service before it waits for the restart; this unit sets
    # KillMode=process.
    assert systemd.keepers() == {keeper}
    # `start` would wait until the restart delay of an hour has passed.
    systemd.run("systemctl", "restart", TUNE)
    (other,) = systemd.keepers()
    assert other != keeper
    systemd.run("systemctl", "stop", TUNE)
    assert systemd.keepers() == set()


@pytest.mark.parametrize("unit", [AGENT, TUNE])
def test_systemd_rates_the_exposure_of_the_service_low(installed: Machine, unit: str) -> None:
    bound = f"--threshold={10 * MAX_EXPOSED:.0f}"
    path = str(Path(UNIT).with_name(unit))
    line = installed.command("systemd-analyze", "security", "--offline=true", bound, path)
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
