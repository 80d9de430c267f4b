"""Writing a file: all of it, or nothing."""

import os
import tempfile
from pathlib import Path


def replace(output: Path, content: bytes) -> None:
    """Write a file, in folders that are made; one that is there is replaced only by a complete one.

    A pipe or a device (`/dev/stdout`) is written to, and never replaced.

    Raises `OSError` if it cannot be written.
    """
    output.parent.mkdir(parents=True, exist_ok=True)
    if output.exists() and not output.is_file():
        with output.open("wb") as through:
            through.write(content)
    else:
        _replace(output.resolve(), content)


def _replace(output: Path, content: bytes) -> None:
    handle, name = tempfile.mkstemp(dir=output.parent, prefix=f".{output.name}.", suffix=".part")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
            os.fchmod(file.fileno(), 0o666 & ~_umask())
        temporary.replace(output)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
