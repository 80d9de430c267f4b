"""The source of a kernel: the distribution's source package, or a developer's own tree.

The identity of a source is known before it is fetched or built, so that an existing kernel is detected immediately.
"""

import hashlib
import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from thalweg.errors import Exit, ThalwegError
from thalweg.kernel import commands, store
from thalweg.kernel.commands import Log

META = "linux-source"
"""Package that depends on the one with the source of the distribution's own kernel."""

OLDEST = (6, 1)
"""Oldest supported kernel version; virtual time was not tested with older ones."""

PARTS = ("Makefile", "Kconfig", "arch/um/Kconfig", "scripts/Makefile.build")
"""Files that every kernel source with user-mode Linux contains."""

TIME_TRAVEL = "UML_TIME_TRAVEL_SUPPORT"

LEFT_OUT = {"": {".git", "Documentation"}, "tools": {"testing"}}
"""Folders of a tree that its checksum excludes, because the kernel is not built from them."""

ARCHITECTURES = {"um", "x86"}

CONFIGURED = (".config", "include/config", "arch/um/include/generated")
"""Files and folders of a build inside the tree; if one exists, make refuses to build outside of the tree."""


class KernelSource(Protocol):
    """A kernel's source."""

    @property
    def about(self) -> str:
        """Description of the source, for kernel.json and for users."""

    @property
    def identity(self) -> str:
        """Checksum by which the source is identified before it is fetched."""

    def unpack(self, folder: Path, log: Log) -> tuple[Path, str]:
        """Return the tree and the SHA-256 of the source; `folder` is for fetched files."""

    def check_unchanged(self) -> None:
        """Check that the source has not changed since the start of the build.

        Raises:
            ThalwegError: If it has.
        """


@dataclass(frozen=True)
class AptPackage:
    """A package that apt can fetch."""

    name: str
    version: str
    checksum: str
    size_bytes: int

    @property
    def about(self) -> str:
        """Name and version."""
        return f"{self.name} {self.version}"


@dataclass(frozen=True)
class SourcePackage(AptPackage):
    """The distribution's source package, which apt fetches."""

    options: tuple[str, ...] = ()

    @property
    def identity(self) -> str:
        """Checksum of the package in apt's lists."""
        return self.checksum

    @classmethod
    def find(cls, options: Sequence[str] = ()) -> "SourcePackage":
        """Look up the source of the distribution's kernel in apt, with these options.

        Raises:
            ThalwegError: If apt does not find it.
        """
        depends = commands.read(["apt-cache", *options, "depends", META]) or ""
        named = re.search(rf"Depends: ({META}-[\w.]+)", depends)
        packages = commands.read(["apt-cache", *options, "pkgnames", f"{META}-"]) if not named else None
        name = named[1] if named else newest((packages or "").split())
        place = name and commands.read(["apt-get", *options, "download", "--print-uris", name])
        found = place and printed(place)
        if not name or not found:
            raise ThalwegError(
                "no-source",
                "apt has no source package of a kernel",
                expected=f"a package such as {META}-6.1",
                hint="sudo apt-get update\nor use a source tree: thalweg kernel build --source DIR",
                exit_code=Exit.MISSING,
            )
        return cls(name, *found, options=tuple(options))

    def unpack(self, folder: Path, log: Log) -> tuple[Path, str]:
        """Fetch the package and unpack it; the package contains a second archive."""
        commands.run(["apt-get", *self.options, "download", self.name], f"fetching {self.name}", log, folder=folder)
        package = next(folder.glob(f"{self.name}_*.deb"))
        checksum = store.sha256(package)
        commands.run(["dpkg", "-x", package.name, "package"], "unpacking the package", log, folder=folder)
        package.unlink()
        archive = next((folder / "package" / "usr" / "src").rglob("linux-source-*.tar.*"))
        commands.run(["tar", "-xf", str(archive)], "unpacking the source", log, folder=folder)
        shutil.rmtree(folder / "package")
        tree = next(folder.glob("linux-source-*/Makefile")).parent
        check(tree)
        return tree, checksum

    def check_unchanged(self) -> None:
        """Do nothing, because no other process uses the unpacked files."""


@dataclass(frozen=True)
class SourceTree:
    """A developer's own tree, which is only read."""

    folder: Path
    about: str
    identity: str

    @classmethod
    def find(cls, folder: Path) -> "SourceTree":
        """Inspect a tree.

        Raises:
            ThalwegError: If it is not a kernel's, is too old, lacks virtual time, or was configured in place.
        """
        tree = folder.resolve()
        check(tree)
        for left in CONFIGURED:
            if (tree / left).exists():
                raise ThalwegError(
                    "configured-tree",
                    f"`{folder}` was configured or built in place: make refuses it for `{left}`",
                    place="--source",
                    hint=f"make -C {folder} ARCH=um mrproper    (removes .config and all objects in it)\n"
                    f"or keep it, and use a copy: git -C {folder} worktree add ../clean HEAD && "
                    f"git -C {folder} diff HEAD | git -C {folder}/../clean apply",
                )
        return cls(tree, _about(tree), tree_sha256(tree))

    def unpack(self, folder: Path, log: Log) -> tuple[Path, str]:
        """Return the tree in place, without copying it."""
        return self.folder, self.identity

    def check_unchanged(self) -> None:
        """Check that the tree did not change during the build; otherwise the kernel would mix two versions."""
        if tree_sha256(self.folder) != self.identity:
            raise ThalwegError(
                "changed-tree",
                f"`{self.folder}` changed during the build",
                place="--source",
                hint="run the same command again",
                exit_code=Exit.FAILED,
            )


def check(tree: Path) -> None:
    """Check that a folder is the source of a supported Linux version with virtual time in user-mode Linux.

    Raises:
        ThalwegError: If it is not.
    """
    version = version_of(tree)
    if version is None:
        raise ThalwegError(
            "no-kernel-tree",
            f"`{tree}` is not the source of a Linux kernel",
            place="--source",
            expected="a folder with the kernel's Makefile, Kconfig and arch/um",
        )
    number = tuple(int(part) for part in re.findall(r"\d+", version)[:2])
    if number < OLDEST:
        raise ThalwegError(
            "old-kernel",
            f"Linux {version} is too old",
            place="--source",
            expected=f"{OLDEST[0]}.{OLDEST[1]} or later",
        )
    if f"config {TIME_TRAVEL}" not in (tree / "arch" / "um" / "Kconfig").read_text(encoding="utf-8"):
        raise ThalwegError(
            "no-time-travel",
            f"Linux {version} in `{tree}` has no virtual time in user-mode Linux",
            place="--source",
            expected=f"{TIME_TRAVEL} in arch/um/Kconfig",
        )


def version_of(tree: Path) -> str | None:
    """Read the version of a tree from its Makefile; None if it is not a kernel's."""
    if not all((tree / part).is_file() for part in PARTS):
        return None
    head = (tree / "Makefile").read_text(encoding="utf-8", errors="replace")[:2000]
    found = re.findall(r"^(VERSION|PATCHLEVEL|SUBLEVEL|EXTRAVERSION) *=[ \t]*(.*?)[ \t]*$", head, flags=re.M)
    parts: dict[str, str] = dict(found)
    numbers = [parts.get(part, "") for part in ("VERSION", "PATCHLEVEL", "SUBLEVEL")]
    if not (numbers[0].isdigit() and numbers[1].isdigit()):
        return None
    return ".".join(filter(None, numbers)) + parts.get("EXTRAVERSION", "")


def tree_sha256(tree: Path) -> str:
    """Return one checksum over names and contents of the files of a tree from which a kernel can be built.

    Git's object ids would be faster to read, but do not cover uncommitted changes.
    """
    whole = hashlib.sha256()
    for folder, folders, names in os.walk(tree):
        inside = os.path.relpath(folder, tree)
        inside = "" if inside == "." else inside
        if inside == "arch":
            folders[:] = [name for name in folders if name in ARCHITECTURES]
        folders[:] = sorted(
            name
            for name in folders
            if name not in LEFT_OUT.get(inside, ()) and not Path(folder, name, ".config").exists()
        )
        for name in sorted(names):
            file = Path(folder, name)
            if name in LEFT_OUT.get(inside, ()):  # in an additional worktree `.git` is a file
                continue
            if file.is_symlink():
                content = str(file.readlink()).encode()
            elif file.is_file():
                content = file.read_bytes()
            else:
                continue
            whole.update(f"{inside}/{name}\0{hashlib.sha256(content).hexdigest()}\n".encode(errors="surrogateescape"))
    return whole.hexdigest()


def newest(names: list[str]) -> str | None:
    """Return the package with the highest version.

    >>> newest(["linux-source-6.1", "linux-source-6.12", "linux-source-tools"])
    'linux-source-6.12'
    """
    versions = {
        tuple(map(int, found[1].split("."))): name
        for name in names
        if (found := re.fullmatch(rf"{META}-([\d.]+\d)", name))
    }
    return versions[max(versions)] if versions else None


def printed(line: str) -> tuple[str, str, int] | None:
    """Parse version, checksum and size from the output of `apt-get download --print-uris`.

    >>> printed("'http://x/l_6.1-2_all.deb' linux-source-6.1_6.1-2_all.deb 139 SHA256:ae95")
    ('6.1-2', 'SHA256:ae95', 139)
    """
    found = re.search(r"' (\S+) (\d+) (\w+:[0-9a-f]+)\s*$", line)
    if not found:
        return None
    version = found[1].split("_")[1].replace("%3a", ":")
    return version, found[3], int(found[2])


def _about(tree: Path) -> str:
    """Describe a tree: its path, version, and commit if it is a git repository."""
    git = ["git", "--no-optional-locks", "-C", str(tree)]
    inside = commands.read([*git, "rev-parse", "--show-toplevel"])
    described = commands.read([*git, "describe", "--always"])
    if not described or inside is None or Path(inside.strip()) != tree:
        return f"{tree} {version_of(tree)}"
    is_changed = bool(commands.read([*git, "status", "--porcelain", "--untracked-files=no"]))
    return f"{tree} {version_of(tree)} ({described.strip()}{', changed' if is_changed else ''})"
