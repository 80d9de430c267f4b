"""Builds a kernel: source, configuration, compiler; then one folder with the complete result.

A kernel's key is a hash of its source, options, compiler, linker and, if it is enlarged, register size. These determine
the program, because it does not contain the time, place and user of its build.
"""

import datetime
import errno
import hashlib
import os
import re
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from thalweg.errors import Exit, ThalwegError
from thalweg.kernel import commands, fragment, registers, store, suites, toolchain
from thalweg.kernel.commands import Log
from thalweg.kernel.fragment import Fragment
from thalweg.kernel.source import KernelSource, SourcePackage, SourceTree
from thalweg.kernel.store import Kernel
from thalweg.processes import asked_to_end

RECIPE = "1"
"""Incremented when the build steps change the program for the same source, options and compiler."""

KEY_DIGITS = 12

STEP = re.compile(r"^  [A-Z]+ +(\S+\.o)\b")
"""Line that make prints for each object file."""


class BuildListener(Protocol):
    """Shows the progress of a build."""

    def phase(self, text: str) -> None:
        """Show the start of a phase."""

    def step(self, name: str) -> None:
        """Show the object that is being built."""


@dataclass(frozen=True)
class Order:
    """Specification of a build."""

    tree: Path | None = None
    """A developer's own tree; None: the distribution's source package."""
    suite: str | None = None
    """Suite of the distribution for the source package; None: apt's own sources."""
    config: Path | None = None
    """File of options that are added to those of the engine."""
    jobs: int | None = None
    """Parallel compilers; None: one per available CPU."""
    is_forced: bool = False


@dataclass(frozen=True)
class Built:
    """Result of a build."""

    kernel: Kernel
    is_new: bool
    notes: list[str]
    """Optional features that a new kernel lacks."""


def build(order: Order, listener: BuildListener) -> Built:
    """Build a kernel, unless it exists, and make the engine use it.

    Raises:
        ThalwegError: If a requirement is missing, the build fails, or the store cannot be written.
        KeyboardInterrupt: After a signal.
    """
    registers_bytes = registers.size_bytes()
    fragments = [Fragment.ours()]
    if registers_bytes > registers.USUAL_BYTES:
        fragments.append(registers.stacks())
    if order.config:
        fragments.append(Fragment.load(order.config))
    options = fragment.merged(fragments)
    try:
        store.place().mkdir(parents=True, exist_ok=True)
        toolchain.check(store.place(), needs_source=order.tree is None)
        listener.phase("inspecting the source")
        with tempfile.TemporaryDirectory(prefix="thalweg-apt-") as lists:
            source = _source(order, Path(lists), listener)
            if order.tree and registers.is_too_small(order.tree, registers_bytes):
                raise _too_small(order.tree, registers_bytes)
            key = _key(source, options, registers_bytes)
            existing = None if order.is_forced else _built_kernel(key)
            if existing:
                existing.use()
                return Built(existing, is_new=False, notes=[])
            with asked_to_end(), store.building() as folder:
                return _Build(order, fragments, registers_bytes, source, listener, folder).run(key)
    except OSError as error:
        raise _explained(error) from error


def _source(order: Order, lists: Path, listener: BuildListener) -> KernelSource:
    """Return the source for an order; `lists` is a folder for apt, needed until the source is unpacked."""
    if order.tree:
        return SourceTree.find(order.tree)
    if not order.suite:
        return SourcePackage.find()
    log = Log(store.place() / "build.log")
    try:
        return SourcePackage.find(suites.apt_options(lists, order.suite, listener, log))
    finally:
        log.close()


@dataclass(frozen=True)
class _Build:
    order: Order
    fragments: list[Fragment]
    registers_bytes: int
    source: KernelSource
    listener: BuildListener
    folder: Path

    def run(self, key: str) -> Built:
        """Execute all steps, and store the result."""
        log = Log(store.place() / "build.log")
        try:
            if isinstance(self.source, SourcePackage):
                size = f"{self.source.size_bytes / 1e6:.0f} MB"
                self.listener.phase(f"fetching and unpacking {self.source.about} ({size})")
            tree, source_sha256 = self.source.unpack(self.folder, log)
            if registers.is_too_small(tree, self.registers_bytes):
                registers.enlarge(tree, self.registers_bytes)
            self.listener.phase("configuring")
            make = self._make(tree)
            notes = self._configure(make, tree, log)
            jobs = self.order.jobs or len(os.sched_getaffinity(0))
            self.listener.phase(f"compiling with {jobs} processes (minutes on few cores)")
            self._compile(make, jobs, log)
        finally:
            log.close()
        self.source.check_unchanged()
        kernel = self._collect(key, source_sha256)
        kernel.use()
        return Built(kernel, is_new=True, notes=notes)

    @property
    def _objects(self) -> Path:
        return self.folder / "objects"

    def _make(self, tree: Path) -> list[str]:
        """Return the make command that all targets share; it does not write to the tree."""
        for path in (tree, self.folder):
            if re.search(r"[\s:]", str(path)):
                raise ThalwegError(
                    "bad-path",
                    f"a kernel cannot be built in a path with blanks or colons: `{path}`",
                    hint="move the source" if path == tree else "XDG_CACHE_HOME=/other/place thalweg kernel build",
                )
        self._objects.mkdir()
        wrapper = self.folder / "Kconfig"
        text = (tree / "Kconfig").read_text(encoding="utf-8")
        ticks = fragment.merged(self.fragments)[fragment.TICKS]
        wrapper.write_text(fragment.wrapper(text, ticks), encoding="utf-8")
        return ["make", "-C", str(tree), f"O={self._objects}", "ARCH=um", f"KBUILD_KCONFIG={wrapper}"]

    def _configure(self, make: list[str], tree: Path, log: Log) -> list[str]:
        wanted = self.folder / "wanted.config"
        wanted.write_text(fragment.write(fragment.merged(self.fragments)), encoding="utf-8")
        commands.run(
            [*make, f"KCONFIG_ALLCONFIG={wanted}", "allnoconfig"], "configuring the kernel", log, folder=self.folder
        )
        config = (self._objects / ".config").read_text(encoding="utf-8")
        return fragment.missing(self.fragments, config, tree)

    def _compile(self, make: list[str], jobs: int, log: Log) -> None:
        def listen(line: str) -> None:
            if found := STEP.match(line):
                self.listener.step(found[1])

        commands.run([*make, f"-j{jobs}", "linux"], "compiling the kernel", log, folder=self.folder, listener=listen)

    def _collect(self, key: str, source_sha256: str) -> Kernel:
        made = self.folder / "made"
        made.mkdir()
        linux, config = made / store.BINARY, made / store.CONFIG
        shutil.copy2(self._objects / "linux", linux)
        strip = shutil.which("strip")
        if strip:
            commands.read([strip, "--strip-all", str(linux)])
        shutil.copyfile(self._objects / ".config", config)
        release = (self._objects / "include" / "config" / "kernel.release").read_text(encoding="utf-8").strip()
        kernel = Kernel(
            folder=made,
            release=release,
            source=self.source.about,
            source_sha256=source_sha256,
            config_sha256=store.sha256(config),
            linux_sha256=store.sha256(linux),
            built=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        )
        kernel.describe()
        return store.keep(made, f"{release}-{key}")


def _key(source: KernelSource, options: dict[str, str], registers_bytes: int) -> str:
    parts = [RECIPE, source.identity, fragment.write(options), toolchain.compiler()]
    if registers_bytes > registers.USUAL_BYTES:
        parts.append(str(registers_bytes))
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:KEY_DIGITS]


def _too_small(tree: Path, registers_bytes: int) -> ThalwegError:
    """Return the error that no program would run in a kernel of this source on this machine."""
    return ThalwegError(
        "small-registers",
        f"programs on this machine have {registers_bytes} bytes of registers, but `{tree}` saves"
        f" {registers.USUAL_BYTES}",
        place="--source",
        expected="a newer Linux, which determines the size itself",
        hint=f"in {tree / registers.PLACE}, change HOST_FP_SIZE from {registers.USUAL_BYTES} to {registers_bytes}",
    )


def _built_kernel(key: str) -> Kernel | None:
    """Return the kernel with a key; one whose program was modified later is ignored."""
    return next((kernel for kernel in store.kernels() if kernel.name.endswith(f"-{key}") and kernel.is_whole()), None)


def _explained(error: OSError) -> ThalwegError:
    what = f"`{error.filename}`" if error.filename else f"`{store.place()}`"
    is_full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    return ThalwegError(
        "no-space" if is_full else "cannot-write",
        f"{what}: {(error.strerror or str(error)).lower()}",
        place=str(error.filename or store.place()),
        hint=toolchain.elsewhere(),
        exit_code=Exit.CANNOT_WRITE,
    )
