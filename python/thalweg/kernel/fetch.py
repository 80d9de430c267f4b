"""Fetches a kernel for guests from a distribution's package, without root and without installing anything.

Only modules that a guest can need are kept.
"""

import datetime
import errno
import fcntl
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from thalweg.errors import Exit, ThalwegError
from thalweg.kernel import commands, guests, store, suites
from thalweg.kernel.commands import Log
from thalweg.kernel.guests import GuestKernel
from thalweg.kernel.source import AptPackage, printed
from thalweg.processes import asked_to_end

PACKAGE = "linux-image-cloud-amd64"
"""Default package, which depends on the distribution's kernel for virtual machines."""

PROGRAMS = {"apt-get": "apt", "apt-cache": "apt", "dpkg-deb": "dpkg"}

KEPT = (
    "net/",
    "lib/",
    "crypto/",
    "arch/",
    "kernel/",
    "drivers/virtio/",
    "drivers/net/",
    "drivers/char/",
    "drivers/vhost/",
    "fs/9p/",
    "fs/fscache/",
    "fs/netfs/",
    "fs/overlayfs/",
)

NAME_DIGITS = 8
"""Digits of the checksum that are appended to a release if two packages share it."""


class FetchListener(Protocol):
    """Shows the progress of a fetch."""

    def phase(self, text: str) -> None:
        """Show the start of a phase."""


@dataclass(frozen=True)
class Fetched:
    """Result of a fetch."""

    kernel: GuestKernel
    is_new: bool


def fetch(package: str, suite: str | None, listener: FetchListener, *, is_forced: bool = False) -> Fetched:
    """Fetch the kernel of a package, unless it exists, and make guests use it.

    `package` may be a metapackage that depends on a kernel package. `suite`, such as bookworm-backports, need not be
    among apt's sources.

    Raises:
        ThalwegError: If a requirement is missing or a step fails.
        KeyboardInterrupt: After a signal.
    """
    _check_programs()
    try:
        guests.place().mkdir(parents=True, exist_ok=True)
        with asked_to_end(), _fetching() as folder:
            log = Log(guests.place() / "fetch.log")
            try:
                options = suites.apt_options(folder, suite, listener, log) if suite else []
                found = _find(package, suite, options)
                there = next((each for each in guests.kernels() if each.package_sha256 == found.checksum), None)
                if there and there.is_whole() and not is_forced:
                    there.use()
                    return Fetched(there, is_new=False)
                kernel = _unpack(found, options, folder, listener, log)
            finally:
                log.close()
            kernel.use()
            return Fetched(kernel, is_new=True)
    except OSError as error:
        raise _explained(error) from error


def _check_programs() -> None:
    missing = {program: package for program, package in PROGRAMS.items() if not shutil.which(program)}
    if missing:
        raise ThalwegError(
            "no-apt",
            f"missing programs: {', '.join(missing)}; kernels are fetched as Debian packages",
            hint="use your own kernel: thalweg run FILE --engine vm --kernel IMAGE --modules DIR",
            exit_code=Exit.MISSING,
        )


def _find(package: str, suite: str | None, options: Sequence[str]) -> AptPackage:
    """Look up a package in apt, or the kernel package that it depends on."""
    depends = commands.read(["apt-cache", *options, "depends", package]) or ""
    named = re.search(r"Depends: (linux-image-\S+)", depends)
    name = named[1] if named else package
    place = commands.read(["apt-get", *options, "download", "--print-uris", name])
    found = printed(place) if place else None
    if not found:
        where = f" in {suite}" if suite else ""
        raise ThalwegError(
            "no-package",
            f"apt has no package `{package}`{where}",
            place="PACKAGE",
            found=package,
            expected="a kernel's package, such as linux-image-cloud-amd64 or linux-image-amd64",
            hint="apt-cache search linux-image"
            + ("" if suite else "\nor, if its package lists are old: sudo apt-get update"),
            exit_code=Exit.MISSING,
        )
    return AptPackage(name, *found)


def _unpack(found: AptPackage, options: Sequence[str], folder: Path, listener: FetchListener, log: Log) -> GuestKernel:
    listener.phase(f"fetching {found.about} ({found.size_bytes / 1e6:.0f} MB)")
    sandbox = [] if options else ["-oAPT::Sandbox::User="]
    commands.run(["apt-get", *options, *sandbox, "download", found.name], f"fetching {found.name}", log, folder=folder)
    package = next(folder.glob("*.deb"))
    commands.run(["dpkg-deb", "-x", package.name, "package"], "unpacking the package", log, folder=folder)
    unpacked = folder / "package"
    image = next(iter(sorted(unpacked.glob("boot/vmlinuz-*"))), None)
    modules = next(iter(sorted(unpacked.glob("*/modules/*")) or sorted(unpacked.glob("usr/lib/modules/*"))), None)
    if image is None or modules is None:
        raise ThalwegError(
            "no-kernel",
            f"the package {found.name} contains no kernel",
            place="PACKAGE",
            found=found.name,
            expected="a kernel's package, such as linux-image-cloud-amd64 or linux-image-amd64",
        )
    made = folder / "made"
    made.mkdir()
    shutil.copyfile(image, made / guests.IMAGE)
    _keep_modules(modules, made / guests.MODULES)
    release = image.name.removeprefix("vmlinuz-")
    kernel = GuestKernel(
        folder=made,
        release=release,
        source=found.about,
        package_sha256=found.checksum,
        image_sha256=store.sha256(made / guests.IMAGE),
        fetched=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
    )
    kernel.describe()
    return guests.keep(made, _name(release, found))


def _keep_modules(modules: Path, target: Path) -> None:
    tree = modules / "kernel"
    for file in sorted(tree.rglob("*.ko*")):
        inside = file.relative_to(tree)
        if inside.as_posix().startswith(KEPT):
            (target / inside).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target / inside)


def _name(release: str, found: AptPackage) -> str:
    """Return the release, with a part of the checksum if another package with the same release exists."""
    there = {kernel.name: kernel for kernel in guests.kernels()}.get(release)
    if there is None or there.package_sha256 == found.checksum:
        return release
    return f"{release}-{found.checksum.rpartition(':')[2][:NAME_DIGITS]}"


@contextmanager
def _fetching() -> Iterator[Path]:
    """Yield a new folder for a fetch, and remove it afterwards; a second fetch waits for the first one."""
    with (guests.place() / "lock").open("a+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for left in guests.place().glob(f"{guests.FETCHING}*/"):
            shutil.rmtree(left, ignore_errors=True)
        folder = guests.place() / f"{guests.FETCHING}folder"
        folder.mkdir()
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _explained(error: OSError) -> ThalwegError:
    is_full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    what = error.filename or guests.place()
    return ThalwegError(
        "no-space" if is_full else "cannot-write",
        f"`{what}`: {(error.strerror or str(error)).lower()}",
        place=str(what),
        hint="XDG_CACHE_HOME=/other/place thalweg kernel fetch",
        exit_code=Exit.CANNOT_WRITE,
    )
