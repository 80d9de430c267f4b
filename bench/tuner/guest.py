"""Boots a guest with a distribution's kernel, runs a script in it, and returns a folder.

The guest's time is virtual: QEMU counts the executed instructions, each of which takes 4 ns by default, and skips idle
times (qemu(1), `-icount`). Other load of the machine therefore does not affect the results; a second of the
guest's time may take more or less than a second.
"""

import base64
import lzma
import os
import shutil
import subprocess
from pathlib import Path

from thalweg.kernel.guests import GuestKernel

TOOLS = ("ip", "tc", "ethtool", "busybox")
NEEDED = (*TOOLS, "qemu-system-x86_64", "ldd")
RESULTS = "results"
"""The folder that is returned, at the root of the guest."""
PATIENCE_S = 1800
BEGIN, END = "guest: results begin", "guest: results end"
INIT = f"""#!/bin/busybox sh
/bin/busybox --install -s /busybox
export PATH=/bin:/busybox
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev
mount -t cgroup2 cgroup /sys/fs/cgroup
for module in /modules/*; do insmod $module; done
ip link set lo up
sh -e /script && echo && echo "{BEGIN}" && tar -cz -C / {RESULTS} | base64 && echo "{END}"
poweroff -f
"""
# CMPXCHG16B is disabled as for the engine vm: QEMU 7.2 miscomputes flags after it, and kernels run without it.
QEMU = (
    *("qemu-system-x86_64", "-accel", "tcg,thread=single", "-rtc", "clock=vm"),
    *("-cpu", "max,-cx16", "-smp", "1", "-m", "1024", "-nographic", "-no-reboot", "-nic", "none"),
    *("-append", "console=ttyS0 panic=-1 quiet mitigations=off"),
)


def find(tool: str) -> Path | None:
    """Return the path of a program; system folders may be missing from PATH."""
    program = shutil.which(tool, path=os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"]))
    return Path(program) if program else None


def why_not(kernel: GuestKernel | None) -> str | None:
    """Return the missing requirement for running guests, as text; None if nothing is missing."""
    missing = [tool for tool in NEEDED if not find(tool)]
    if missing:
        return f"there is no {', '.join(missing)}: tools/bootstrap vm"
    return "no kernel for guests is installed; to install one, type: thalweg kernel fetch" if kernel is None else None


def run(
    folder: Path,
    kernel: GuestKernel,
    modules: tuple[str, ...],
    files: dict[str, Path],
    script: str,
    *,
    instruction_ns: int = 4,
) -> Path:
    """Boot, run the script with `sh -e`, and return its results.

    `files` are additional files, by their paths in the guest. `instruction_ns` must be a power of two.
    """
    root = folder / "root"
    for name in ("bin", "busybox", "modules", "proc", "sys/fs/cgroup", "dev", "tmp", "run", "etc", RESULTS):
        (root / name).mkdir(parents=True)
    programs = {f"bin/{tool}": busybox for tool in TOOLS if (busybox := find(tool))} | files
    libraries = {library for program in programs.values() for library in libraries_of(program)}
    for place, source in programs.items() | {(str(library).lstrip("/"), library) for library in libraries}:
        (root / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, root / place)
    for number, module in enumerate(modules):
        (root / "modules" / f"{number}.ko").write_bytes(unpacked(kernel.modules / module))
    (root / "script").write_text(script)
    (root / "init").write_text(INIT)
    (root / "init").chmod(0o755)
    (root / "bin" / "sh").symlink_to("/bin/busybox")
    archive = folder / "initramfs"
    pack = 'cd "$1" && find . | busybox cpio -o -H newc >"$2" 2>/dev/null'
    subprocess.run(["sh", "-c", pack, "sh", root, archive], check=True)
    clock = ["-icount", f"shift={instruction_ns.bit_length() - 1},sleep=off"]
    line = [*QEMU, *clock, "-kernel", str(kernel.image), "-initrd", str(archive)]
    silent = subprocess.DEVNULL
    done = subprocess.run(line, stdin=silent, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    lines = done.stdout.replace("\r", "").splitlines()
    if END not in lines:
        raise SystemExit("the guest did not finish its script:\n" + "\n".join([*lines[-20:], done.stderr]))
    packed = base64.b64decode("".join(lines[lines.index(BEGIN) + 1 : lines.index(END)]))
    subprocess.run(["tar", "-xz", "-C", folder], input=packed, check=True)
    return folder / RESULTS


def libraries_of(program: Path) -> set[Path]:
    """Return the libraries with which a program is linked; empty for a static one."""
    output = subprocess.run(["ldd", program], capture_output=True, text=True, check=False).stdout
    return {Path(word) for word in output.split() if word.startswith("/")}


def unpacked(module: Path) -> bytes:
    """Return the content of a module, which may be compressed with xz."""
    if module.exists():
        return module.read_bytes()
    return lzma.decompress(module.with_name(f"{module.name}.xz").read_bytes())
