"""`--kernel IMAGE` and `--modules DIR`: select the kernel of the guests of the engine `vm`."""

import os
from pathlib import Path
from typing import Annotated

from thalweg.cli.options import option
from thalweg.errors import Exit, ThalwegError

Kernel = Annotated[
    str | None,
    option(
        "--kernel",
        "IMAGE",
        "vm: guest kernel, an image (bzImage) or a name from `thalweg kernel list`."
        " [default: the one marked used there]",
    ),
]
Modules = Annotated[
    Path | None,
    option(
        "--modules",
        "DIR",
        "Folder with the modules of that kernel. [default: those of a fetched kernel; none for an image]",
    ),
]


def choose(kernel: str | None, modules: Path | None, engine_name: str) -> None:
    """Make the engine use a kernel; None: its default.

    Raises:
        ThalwegError: If the kernel or the folder of modules does not exist, there are modules without a kernel, or the
            engine has no guests.
    """
    from thalweg.kernel import guests

    if kernel is None and modules is None:
        return
    if kernel is None:
        raise ThalwegError("bad-usage", "--modules requires --kernel IMAGE", place="--modules", found=str(modules))
    if engine_name != "vm":
        raise ThalwegError(
            "bad-usage",
            f"--kernel applies to guests, and the engine `{engine_name}` has none",
            place="--kernel",
            found=kernel,
            hint=f"--engine vm --kernel {kernel}",
        )
    if modules is not None and not modules.is_dir():
        raise ThalwegError("no-modules", f"there is no folder `{modules}`", place="--modules", found=str(modules))
    fetched = next((guest for guest in guests.kernels() if guest.name == kernel), None)
    if fetched:
        _set(fetched.image, modules or fetched.modules)
        return
    image = Path(kernel)
    if not image.is_file():
        names = ", ".join(guest.name for guest in guests.kernels())
        raise ThalwegError(
            "no-kernel",
            f"there is no kernel `{kernel}`",
            place="--kernel",
            found=kernel,
            expected=f"an image, or one of {names}" if names else "an image, such as arch/x86/boot/bzImage",
            hint="thalweg kernel fetch",
            exit_code=Exit.USAGE,
        )
    _set(image, modules)


def _set(image: Path, modules: Path | None) -> None:
    """Set the environment variables of the engine, which is started several times."""
    from thalweg.kernel import guests

    os.environ[guests.IMAGE_VARIABLE] = str(image.absolute())
    if modules is None:
        os.environ.pop(guests.MODULES_VARIABLE, None)
    else:
        os.environ[guests.MODULES_VARIABLE] = str(modules.absolute())
