"""The store of guest kernels, and the selection of the default one.

~/.cache/thalweg/vm/kernels/6.1.0-56-cloud-amd64/    `vmlinuz`, `modules` and `kernel.json`
~/.cache/thalweg/vm/current                          a link to the selected one
~/.cache/thalweg/vm/fetch-*/                         a running or killed fetch; the next one removes it
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from thalweg.kernel import store
from thalweg.kernel.store import DESCRIPTION, KeptKernel

IMAGE_VARIABLE = "THALWEG_VM_KERNEL"
"""Environment variable that names the image of the kernel to run, in place of `current`."""

MODULES_VARIABLE = "THALWEG_VM_MODULES"
"""Environment variable that names the folder of its modules."""

FORMAT = 1

IMAGE = "vmlinuz"
MODULES = "modules"
FETCHING = "fetch-"


@dataclass(frozen=True)
class GuestKernel(KeptKernel):
    """A fetched kernel for guests."""

    package_sha256: str
    image_sha256: str
    fetched: str

    @property
    def link(self) -> Path:
        """The link to the kernel that guests run."""
        return place() / "current"

    @property
    def target(self) -> Path:
        """Target of the link if this kernel is selected."""
        return Path("kernels", self.name)

    @property
    def image(self) -> Path:
        """Path of the bootable image."""
        return self.folder / IMAGE

    @property
    def modules(self) -> Path:
        """Folder of its modules."""
        return self.folder / MODULES

    def is_whole(self) -> bool:
        """Return whether the image is unchanged since it was fetched."""
        try:
            return store.sha256(self.image) == self.image_sha256
        except OSError:
            return False

    def describe(self) -> None:
        """Write kernel.json, without which the folder does not count as a kernel."""
        fields = {name: value for name, value in asdict(self).items() if name != "folder"}
        description = {"format": FORMAT, "image": IMAGE, "modules": MODULES} | fields
        (self.folder / DESCRIPTION).write_text(json.dumps(description, indent=2) + "\n", encoding="utf-8")


def place() -> Path:
    """Return the folder of the store; it need not exist."""
    return store.place().with_name("vm")


def read(folder: Path) -> GuestKernel | None:
    """Read the kernel in a folder; None if the folder has no kernel."""
    try:
        fields = json.loads((folder / DESCRIPTION).read_text(encoding="utf-8"))
        if fields.pop("format") != FORMAT or fields.pop("image") != IMAGE or fields.pop("modules") != MODULES:
            return None
        kernel = GuestKernel(folder=folder, **fields)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None
    return kernel if kernel.image.is_file() else None


def kernels() -> list[GuestKernel]:
    """Return all kernels, the latest first."""
    folder = place() / "kernels"
    guests = (read(entry) for entry in (folder.iterdir() if folder.is_dir() else ()))
    return sorted((kernel for kernel in guests if kernel), key=lambda each: (each.fetched, each.name), reverse=True)


def current() -> GuestKernel | None:
    """Return the kernel that guests run by default."""
    return read((place() / "current").resolve())


def keep(finished: Path, name: str) -> GuestKernel:
    """Move a finished folder to its final path, replacing an existing one."""
    target = place() / "kernels" / name
    target.parent.mkdir(parents=True, exist_ok=True)
    kernel = read(store.replace(finished, target))
    assert kernel, f"{target} was just made"
    return kernel
