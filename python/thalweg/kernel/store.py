"""The store of built kernels, and the selection of the one that the engine uses.

~/.cache/thalweg/uml/6.1.192-0a1b2c3d4e5f/    a kernel: `linux`, `config` and `kernel.json`
~/.cache/thalweg/uml/current                  a link to the selected one
~/.cache/thalweg/uml/build-*/                 a running or killed build; the next build removes it
~/.cache/thalweg/uml/build.log                output of the last build
~/.cache/thalweg/uml/lock                     held during a build
"""

import fcntl
import hashlib
import json
import os
import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from thalweg.errors import Exit, ThalwegError

VARIABLE = "THALWEG_UML_KERNEL"
"""Environment variable that names the folder of the kernel to run, in place of `current`."""

FORMAT = 1

BINARY = "linux"
DESCRIPTION = "kernel.json"
CONFIG = "config"
BUILDING = "build-"


@dataclass(frozen=True)
class KeptKernel(ABC):
    """A kernel in the cache: its path, and the fields that all kernel.json files share."""

    folder: Path
    release: str
    source: str

    @property
    def name(self) -> str:
        """Name of the kernel in `thalweg kernel use`."""
        return self.folder.name

    @property
    @abstractmethod
    def link(self) -> Path:
        """Symbolic link to the selected kernel."""

    @property
    @abstractmethod
    def target(self) -> Path:
        """Target of the link if this kernel is selected."""

    def use(self) -> None:
        """Select this kernel; the update of `link` is atomic."""
        new = self.link.with_name(f".{self.link.name}-{os.getpid()}")
        new.unlink(missing_ok=True)
        new.symlink_to(self.target)
        new.replace(self.link)

    def remove(self) -> None:
        """Remove this kernel and the link to it; the description is removed before the other files."""
        if self.link.is_symlink() and self.link.readlink() == self.target:
            self.link.unlink()
        (self.folder / DESCRIPTION).unlink()
        shutil.rmtree(self.folder)


@dataclass(frozen=True)
class Kernel(KeptKernel):
    """A kernel that was built for virtual time."""

    source_sha256: str
    config_sha256: str
    linux_sha256: str
    built: str

    @property
    def link(self) -> Path:
        """Symbolic link to the kernel that the engine uses."""
        return place() / "current"

    @property
    def target(self) -> Path:
        """Target of the link if the engine uses this kernel."""
        return Path(self.name)

    def is_whole(self) -> bool:
        """Return whether the program is unchanged since it was built."""
        try:
            return sha256(self.folder / BINARY) == self.linux_sha256
        except OSError:
            return False

    def describe(self) -> None:
        """Write kernel.json, without which the folder does not count as a kernel."""
        fields = {name: value for name, value in asdict(self).items() if name != "folder"}
        text = json.dumps({"format": FORMAT} | fields, indent=2) + "\n"
        (self.folder / DESCRIPTION).write_text(text, encoding="utf-8")


def place() -> Path:
    """Return the folder of all kernels; it need not exist."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base and Path(base).is_absolute() else Path.home() / ".cache") / "thalweg" / "uml"


def read(folder: Path) -> Kernel | None:
    """Read the kernel in a folder; None if the folder has no kernel."""
    try:
        fields = json.loads((folder / DESCRIPTION).read_text(encoding="utf-8"))
        if fields.pop("format") != FORMAT or not (folder / BINARY).is_file():
            return None
        return Kernel(folder=folder, **fields)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


def kernels() -> list[Kernel]:
    """Return all kernels, the newest first."""
    folders = place().iterdir() if place().is_dir() else ()
    entries = (read(folder) for folder in folders if not folder.is_symlink() and folder.is_dir() and _is_kept(folder))
    return sorted(
        (kernel for kernel in entries if kernel), key=lambda kernel: (kernel.built, kernel.name), reverse=True
    )


def current() -> Kernel | None:
    """Return the kernel that the engine uses, if there is one."""
    folder = os.environ.get(VARIABLE)
    return read(Path(folder) if folder else (place() / "current").resolve())


def named(name: str) -> Kernel:
    """Find a kernel by its name.

    Raises:
        ThalwegError: If the name is unknown.
    """
    present = kernels()
    for kernel in present:
        if kernel.name == name:
            return kernel
    listed = ", ".join(kernel.name for kernel in present)
    raise ThalwegError(
        "no-kernel",
        f"there is no kernel `{name}`",
        place="NAME",
        found=name,
        expected=f"one of {listed}" if present else None,
        hint="thalweg kernel list" if present else "thalweg kernel build",
        exit_code=Exit.USAGE if present else Exit.MISSING,
    )


def keep(finished: Path, name: str) -> Kernel:
    """Move a finished folder to its final path, replacing an existing one."""
    kernel = read(replace(finished, place() / name))
    assert kernel, f"{place() / name} was just made"
    return kernel


def replace(finished: Path, target: Path) -> Path:
    """Move a finished folder to `target`; an existing one is moved aside. Returns `target`."""
    if target.exists():
        target.rename(finished.with_name("old"))
    finished.rename(target)
    return target


@contextmanager
def building() -> Iterator[Path]:
    """Remove the remains of killed builds, and yield a new folder for a build, which is removed afterwards.

    Raises:
        ThalwegError: If another build is running.
    """
    place().mkdir(parents=True, exist_ok=True)
    with (place() / "lock").open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            raise _busy(lock.read().strip()) from None
        lock.truncate(0)
        lock.write(f"{os.getpid()}\n")
        lock.flush()
        for stale in place().glob(f"{BUILDING}*/"):
            shutil.rmtree(stale, ignore_errors=True)
        folder = place() / f"{BUILDING}{os.getpid()}"
        folder.mkdir()
        try:
            yield folder
        finally:
            with suppress(OSError):
                lock.truncate(0)
            shutil.rmtree(folder, ignore_errors=True)


def sha256(file: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal."""
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _is_kept(folder: Path) -> bool:
    return not folder.name.startswith(BUILDING)


def _busy(process: str) -> ThalwegError:
    return ThalwegError(
        "build-running",
        f"another build is running in `{place()}`" + (f" (process {process})" if process else ""),
        place=str(place()),
        hint="wait until it has finished, and run the same command again",
        exit_code=Exit.FAILED,
    )
