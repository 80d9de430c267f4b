"""The kernel that `thalweg kernel build` has built is complete, and its time is virtual."""

import contextlib
import gzip
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from thalweg.kernel import Kernel, store
from thalweg.kernel.fragment import Fragment

WITHIN_S = 120
"""Timeout of a guest, in seconds."""

HOUR_S = 3600


@pytest.fixture
def guest(built_kernel: Kernel, tmp_path: Path) -> Path:
    """Return the output folder of a guest that slept for an hour."""
    power_off = "import ctypes; ctypes.CDLL(None).reboot(0x4321FEDC)"
    (tmp_path / "init").write_text(
        f"#!/bin/sh\ncd {tmp_path}\nexport PATH=/usr/bin:/bin\nmount -t proc proc /proc\n"
        f"cat /proc/version > version\ncat /proc/config.gz > config.gz\n"
        f"cat /proc/sys/net/ipv4/tcp_available_congestion_control > algorithms\n"
        f"cat /proc/uptime > before\nsleep {HOUR_S}\ncat /proc/uptime > after\n"
        f"exec {sys.executable} -c '{power_off}'\n"
    )
    (tmp_path / "init").chmod(0o755)
    words = [str(built_kernel.folder / "linux"), "mem=128M", "time-travel=inf-cpu", "root=none", "rootfstype=hostfs"]
    words += ["rw", f"init={tmp_path}/init", f"uml_dir={tmp_path}/", "con=null", "con0=fd:0,fd:1", "quiet"]
    with (tmp_path / "console").open("wb") as console:
        process = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=console, stderr=console, start_new_session=True
        )
        try:
            process.wait(WITHIN_S)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    assert (tmp_path / "after").exists(), (tmp_path / "console").read_text(errors="replace")
    return tmp_path


def test_kernel_json_matches_the_kernel(built_kernel: Kernel) -> None:
    process = subprocess.run([built_kernel.folder / "linux", "--version"], capture_output=True, text=True)
    assert process.stdout.strip() == built_kernel.release
    assert store.sha256(built_kernel.folder / "linux") == built_kernel.linux_sha256
    assert store.sha256(built_kernel.folder / "config") == built_kernel.config_sha256


def test_an_hour_of_virtual_time_takes_little_real_time(guest: Path, built_kernel: Kernel) -> None:
    before, after = (float((guest / name).read_text().split()[0]) for name in ("before", "after"))
    assert HOUR_S <= after - before < HOUR_S + 1
    assert (guest / "version").read_text().startswith(f"Linux version {built_kernel.release} ")


def test_the_guest_reports_its_build_configuration(guest: Path, built_kernel: Kernel) -> None:
    config = gzip.decompress((guest / "config.gz").read_bytes()).decode()
    assert config == (built_kernel.folder / "config").read_text()
    for option, value in Fragment.ours().options.items():
        assert f"{option}={value}\n" in config or option == "CONFIG_NET_SCH_DUALPI2", "which Linux 6.17 brought"


def test_every_configured_congestion_control_is_available(guest: Path) -> None:
    algorithms = "reno cubic bbr dctcp htcp vegas westwood illinois bic veno yeah hybla"
    assert set((guest / "algorithms").read_text().split()) >= set(algorithms.split())
