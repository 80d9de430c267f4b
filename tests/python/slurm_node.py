"""A Slurm cluster with one node on this machine: Debian's munged, slurmctld and slurmd, in a separate folder."""

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch")
START_WITHIN_S = 20


def missing() -> str:
    """Return why Slurm cannot run here; empty if it can run."""
    lacking = [program for program in PROGRAMS if shutil.which(program, path=_path()) is None]
    if lacking:
        return f"Slurm is not installed ({', '.join(lacking)}): tools/bootstrap slurm"
    return "" if os.geteuid() == 0 else "Slurm's daemons need root"


@contextmanager
def node(folder: Path, cpus: int) -> Iterator[dict[str, str]]:
    """Start the cluster; yield the environment for its commands."""
    host = socket.gethostname().partition(".")[0]
    key = folder / "munge.key"
    key.write_bytes(os.urandom(128))
    key.chmod(0o400)
    config = folder / "slurm.conf"
    config.write_text(_config(folder, host, cpus))
    environment = os.environ | {"SLURM_CONF": str(config), "PATH": _path()}
    socket_file = folder / "munge.socket"
    munged = ["munged", "--foreground", "--force", f"--key-file={key}", f"--socket={socket_file}"]
    munged += [f"--{name}-file={folder}/munge.{name}" for name in ("pid", "seed", "log")]
    commands = [munged, ["slurmctld", "-D"], ["slurmd", "-D", "-N", host]]
    started: list[subprocess.Popen[bytes]] = []
    try:
        with (folder / "daemons.log").open("wb") as log:
            for command in commands:
                started.append(subprocess.Popen(command, env=environment, stdout=log, stderr=log))
                _wait_for(socket_file.exists, "munged did not start", folder)
        _wait_for(lambda: _is_idle(environment), "the node is not idle", folder)
        yield environment
    finally:
        for daemon in reversed(started):
            daemon.terminate()
            daemon.wait(START_WITHIN_S)


def _path() -> str:
    return f"{os.environ['PATH']}:/usr/sbin:/sbin"


def _is_idle(environment: dict[str, str]) -> bool:
    done = subprocess.run(
        ["sinfo", "--noheader", "--format=%T"], env=environment, capture_output=True, text=True, check=False
    )
    return done.stdout.strip() == "idle"


def _wait_for(condition, why: str, folder: Path) -> None:
    deadline = time.monotonic() + START_WITHIN_S
    while not condition():
        assert time.monotonic() < deadline, f"{why}\n{(folder / 'daemons.log').read_text(errors='replace')[-3000:]}"
        time.sleep(0.1)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _config(folder: Path, host: str, cpus: int) -> str:
    return f"""\
ClusterName=thalweg
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={_free_port()}
SlurmdPort={_free_port()}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SlurmdParameters=config_overrides
MpiDefault=none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
MinJobAge=300
KillWait=5
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""
