"""Checks the requirements of a build: programs, headers, disk space."""

import platform
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from thalweg.errors import Exit, ThalwegError

PROGRAMS = {
    "make": "make",
    "gcc": "gcc",
    "ld": "binutils",
    "flex": "flex",
    "bison": "bison",
    "bc": "bc",
    "gzip": "gzip",
}
"""Programs that a kernel build needs, each with its Debian package."""

UNPACKING = {"apt-get": "apt", "dpkg": "dpkg", "tar": "tar", "xz": "xz-utils"}
"""Additional requirements for fetching and unpacking the distribution's source package."""

HEADER = "sys/ptrace.h"
"""A header of the C library, because user-mode Linux is a program of the host."""

BUILD_BYTES = 300 * 10**6
"""Disk space for the objects of a build, with a margin."""

SOURCE_BYTES = 1900 * 10**6
"""Disk space for unpacking a source package, with a margin."""


def check(folder: Path, *, needs_source: bool) -> None:
    """Check everything that a build in `folder` requires.

    Raises:
        ThalwegError: If something is missing; missing programs and headers are reported together.
    """
    programs = PROGRAMS | (UNPACKING if needs_source else {})
    if platform.machine() != "x86_64":
        raise ThalwegError(
            "no-uml",
            f"user-mode Linux requires x86-64; this machine is {platform.machine()}",
            hint="to list the engines that run here: thalweg doctor",
            exit_code=Exit.MISSING,
        )
    if needs_source and not shutil.which("apt-get"):
        raise ThalwegError(
            "no-apt",
            "apt-get, which fetches the source package of the distribution, is missing",
            hint="unpack the source of Linux 6.1 or later, and run: thalweg kernel build --source DIR",
            exit_code=Exit.MISSING,
        )
    missing = {program: package for program, package in programs.items() if not shutil.which(program)}
    if "gcc" not in missing and not _has_header():
        missing[f"<{HEADER}>"] = "libc6-dev"
    if missing:
        packages = " ".join(dict.fromkeys(missing.values()))
        raise ThalwegError(
            "no-toolchain",
            f"building a kernel requires programs that are not installed: {', '.join(missing)}",
            hint=f"sudo apt-get install {packages}",
            exit_code=Exit.MISSING,
        )
    _check_disk(folder, BUILD_BYTES + (SOURCE_BYTES if needs_source else 0))


def compiler() -> str:
    """Return the identity of the compiler and the linker: different ones may produce a different program."""
    return "\n".join(_first_line([program, "--version"]) for program in ("gcc", "ld"))


def _first_line(command: list[str]) -> str:
    return next(iter(subprocess.run(command, capture_output=True, text=True, check=False).stdout.splitlines()), "")


def _has_header() -> bool:
    process = subprocess.run(
        ["gcc", "-E", "-x", "c", "-"], input=f"#include <{HEADER}>\n", capture_output=True, text=True, check=False
    )
    return process.returncode == 0


def _check_disk(folder: Path, needed: int) -> None:
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise ThalwegError(
            "no-space",
            f"the build needs {needed / 1e9:.1f} GB in `{folder}`, and {free / 1e9:.1f} GB are free",
            place=str(folder),
            hint=elsewhere(),
            exit_code=Exit.CANNOT_WRITE,
        )


def elsewhere() -> str:
    """Describe how to build in a folder on another file system."""
    return (
        "free some space, or build elsewhere: XDG_CACHE_HOME=/other/place thalweg kernel build (set it for runs, too)"
    )


def disk_is_full(lines: Iterator[str]) -> bool:
    """Return whether a program's output reports that the disk is full."""
    return any("No space left on device" in line for line in lines)
