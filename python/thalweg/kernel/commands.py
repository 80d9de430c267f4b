"""Starts the programs of a build, logs their output to one file, and terminates them when thalweg exits.

`run` gives each a separate process group, so that a Ctrl-C reaches only thalweg, which terminates the whole group,
including compilers that make has started.
"""

import os
import signal
import subprocess
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from thalweg.errors import Exit, ThalwegError
from thalweg.kernel.toolchain import disk_is_full, elsewhere
from thalweg.processes import ends_with_parent

SHOWN = 20

GRACE_S = 5

OURS = {
    "LC_ALL": "C",
    "KBUILD_BUILD_TIMESTAMP": "Thu Jan  1 00:00:00 UTC 1970",
    "KBUILD_BUILD_USER": "thalweg",
    "KBUILD_BUILD_HOST": "thalweg",
    "KBUILD_BUILD_VERSION": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
}
"""Environment for a reproducible build that writes nothing into the source."""

NOT_OURS = ("MAKE", "MFLAGS", "KBUILD_", "KCONFIG_", "CONFIG_", "GNUMAKE")
"""Prefixes of variables that would change a build: those of an outer `make`, or of a kernel developer's shell."""

NAMES_NOT_OURS = {"ARCH", "SUBARCH", "CROSS_COMPILE", "LLVM", "O", "V", "W", "C", "CF", "LOCALVERSION", "INSTALL_PATH"}


class Log:
    """Output of the programs of a build, in one file."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self._opened: IO[bytes] = file.open("wb", buffering=0)
        self._last: deque[str] = deque(maxlen=SHOWN)

    def write(self, line: bytes) -> None:
        """Add a line."""
        self._opened.write(line)
        self._last.append(line.decode(errors="replace").rstrip())

    def close(self) -> None:
        """Close the log."""
        self._opened.close()

    def failed(self, action: str, code: int) -> ThalwegError:
        """Return the error for a failed program: a full disk, or the end of the log."""
        if disk_is_full(iter(self._last)):
            return ThalwegError(
                "no-space",
                f"{action} failed: the disk is full",
                place=str(self.file.parent),
                hint=elsewhere(),
                exit_code=Exit.CANNOT_WRITE,
            )
        lines = "".join(f"\n  | {line}" for line in self._last if line)
        why = f"signal {-code}" if code < 0 else f"exit code {code}"
        return ThalwegError(
            "build-failed",
            f"{action} failed ({why}); its last output:{lines}",
            hint=f"to read the log: less {self.file}",
            exit_code=Exit.FAILED,
        )


def run(
    command: Sequence[str], action: str, log: Log, *, folder: Path, listener: Callable[[str], None] = lambda line: None
) -> None:
    """Run a program, and call `listener` with each line that it prints.

    Raises:
        ThalwegError: If it fails.
    """
    log.write(f"$ {' '.join(command)}\n".encode())
    with _started(command, folder) as program:
        assert program.stdout
        for line in program.stdout:
            log.write(line)
            listener(line.decode(errors="replace"))
        code = program.wait()
    if code != 0:
        raise log.failed(action, code)


def read(command: Sequence[str]) -> str | None:
    """Run a program without the log; return its output, or None if it fails."""
    try:
        process = subprocess.run(command, env=environment(), capture_output=True, text=True, errors="replace")
    except OSError:
        return None
    return process.stdout if process.returncode == 0 else None


def environment() -> dict[str, str]:
    """Return the environment of a reproducible build."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in NAMES_NOT_OURS and not name.startswith(NOT_OURS)
    }
    return kept | OURS


@contextmanager
def _started(command: Sequence[str], folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    program = subprocess.Popen(
        command,
        cwd=folder,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        process_group=0,
        preexec_fn=ends_with_parent(),
    )
    with program:
        try:
            yield program
        except BaseException:
            _end(program)
            raise


def _end(program: subprocess.Popen[bytes]) -> None:
    """Terminate a program and all processes that it has started."""
    with suppress(ProcessLookupError):
        os.killpg(program.pid, signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        program.wait(GRACE_S)
    with suppress(ProcessLookupError):
        os.killpg(program.pid, signal.SIGKILL)
