"""A disposable copy of this machine: its file system below an overlay in memory, in a mount namespace that is removed
after the test. The overlay contains all changes of the test, except those in /run, /proc, /sys and /dev.
"""

import subprocess
from pathlib import Path

from waiting import wait_until


class Machine:
    """A copy of this machine."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        keeper = ["unshare", "--mount", "--propagation", "private", "cat"]
        self.keeper = subprocess.Popen(keeper, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        ours, theirs = Path("/proc/self/ns/mnt").readlink(), Path(f"/proc/{self.keeper.pid}/ns/mnt")
        wait_until(lambda: theirs.readlink() != ours)
        self.enter(
            "sh",
            "-ec",
            f"""
            mount -t tmpfs tmpfs {folder}
            mkdir {folder}/upper {folder}/work {folder}/root
            mount -t overlay overlay -o lowerdir=/,upperdir={folder}/upper,workdir={folder}/work {folder}/root
            for part in proc sys dev; do mount --rbind /$part {folder}/root/$part; done
            mount -t tmpfs tmpfs {folder}/root/run
            """,
        )

    def enter(self, *command: str) -> str:
        return self._output(["nsenter", f"--target={self.keeper.pid}", "--mount", *command])

    def command(self, *command: str) -> list[str]:
        """Return the command line that runs a command in the copy."""
        return ["nsenter", f"--target={self.keeper.pid}", "--mount", "chroot", f"{self.folder}/root", *command]

    def run(self, *command: str) -> str:
        """Run a command in the copy; it must succeed."""
        return self._output(self.command(*command))

    def _output(self, command: list[str]) -> str:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def changed(self) -> set[str]:
        """Return the files that differ from the machine's, except dpkg's records, logs and caches."""
        files = self.enter("find", f"{self.folder}/upper", "-not", "-type", "d", "-printf", "/%P\n").splitlines()
        return {file for file in files if not file.startswith(("/var/lib/dpkg/", "/var/log/", "/var/cache/"))}

    def write(self, path: str, text: str, mode: str = "644") -> None:
        self.run("sh", "-ec", f'mkdir -p "$(dirname "$1")"; printf %s "$2" >"$1"; chmod {mode} "$1"', "sh", path, text)

    def end(self) -> None:
        self.keeper.kill()
        self.keeper.communicate()
