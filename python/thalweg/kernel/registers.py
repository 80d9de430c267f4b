"""The size of a processor's register state, which user-mode Linux needs at build time.

Newer versions query the machine. Linux 6.1 saves at most 2696 bytes of floating-point and vector registers, enough for
AVX-512. The host's kernel restores only the complete state, which has 11008 bytes with AMX; programs in the guest then
exit immediately. Therefore the size in an unpacked source is replaced by this machine's, and the guest's stacks, which
hold the saved registers, are enlarged.
"""

import ctypes
import os
import re
import subprocess
import sys
from pathlib import Path

from thalweg.kernel.fragment import Fragment

USUAL_BYTES = 2696
"""Maximum size in versions of Linux whose source has a constant."""

PLACE = Path("arch/x86/um/user-offsets.c")
NUMBER = re.compile(rf"(DEFINE_LONGS\(HOST_FP_SIZE, ){USUAL_BYTES}(\);)")

STACK_ORDER = "4"
"""log2 of the number of pages of a stack."""

PTRACE_ATTACH, PTRACE_DETACH, PTRACE_GETREGSET = 16, 17, 0x4204
NT_X86_XSTATE = 0x202


class _Buffer(ctypes.Structure):
    """A struct iovec."""

    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


def size_bytes() -> int:
    """Query the size of a program's register state from the host's kernel; USUAL_BYTES if it is not reported."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p)
    libc.ptrace.restype = ctypes.c_long
    content = ctypes.create_string_buffer(1 << 16)
    buffer = _Buffer(ctypes.cast(content, ctypes.c_void_p), len(content))
    with subprocess.Popen([sys.executable, "-ISc", "input()"], stdin=subprocess.PIPE) as asleep:
        try:
            if libc.ptrace(PTRACE_ATTACH, asleep.pid, None, None) != 0:
                return USUAL_BYTES
            os.waitpid(asleep.pid, os.WUNTRACED)
            is_reported = libc.ptrace(PTRACE_GETREGSET, asleep.pid, NT_X86_XSTATE, ctypes.addressof(buffer)) == 0
            libc.ptrace(PTRACE_DETACH, asleep.pid, None, None)
            return buffer.length if is_reported else USUAL_BYTES
        finally:
            asleep.kill()


def is_too_small(tree: Path, needed_bytes: int) -> bool:
    """Return whether a source saves fewer bytes than needed."""
    if needed_bytes <= USUAL_BYTES:
        return False
    try:
        return NUMBER.search((tree / PLACE).read_text(encoding="utf-8")) is not None
    except FileNotFoundError:
        return False


def enlarge(tree: Path, needed_bytes: int) -> None:
    """Replace the size in an unpacked source with the required one."""
    text = (tree / PLACE).read_text(encoding="utf-8")
    (tree / PLACE).write_text(NUMBER.sub(rf"\g<1>{needed_bytes}\g<2>", text), encoding="utf-8")


def stacks() -> Fragment:
    """Return the options for larger stacks."""
    return Fragment(
        "the size of registers", {"CONFIG_KERNEL_STACK_ORDER": STACK_ORDER}, {"CONFIG_KERNEL_STACK_ORDER": 1}
    )
