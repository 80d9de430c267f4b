#!/usr/bin/env python3
"""Records the DCTCP of a guest's kernel as fixtures for crates/cc/tests/lockstep.

    .venv/bin/python tools/lockstep_guest.py           some minutes; no root, no KVM
    .venv/bin/python tools/lockstep_guest.py --scene lossy

The recorder calls functions of the kernel's DCTCP module. The recorder and the engine run in a guest with a kernel
from `thalweg kernel fetch`, which has the module. The guest's time is virtual, so that load of the
machine does not affect the recordings. docs/concepts/fidelity.md describes them.
"""

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "bench")]

from thalweg.kernel import guests  # noqa: E402
from thalweg.kernel.guests import GuestKernel  # noqa: E402
from tuner import guest  # noqa: E402

RECORDINGS = ROOT / "crates" / "cc" / "tests" / "lockstep" / "recordings"
RECORDER = ROOT / "target" / "release" / "thalweg-lockstep"
ENGINE = ROOT / ".venv" / "bin" / "thalweg-engine"
MODULES = ("drivers/net/veth.ko", "net/ipv4/inet_diag.ko", "net/ipv4/tcp_diag.ko", "net/ipv4/tcp_dctcp.ko")
SCRIPT = """\
# The receiver must acknowledge marks as DCTCP does. It has the default algorithm, which new namespaces inherit.
sysctl -qw net.ipv4.tcp_congestion_control=dctcp
thalweg-lockstep --algorithm dctcp --engine /bin/thalweg-engine --out /results @OPTIONS@ >/results/said 2>&1 ||
    touch /results/failed
"""
INSTRUCTION_NS = 1
"""Virtual nanoseconds per instruction. At 4 ns, the guest is too slow for the packets of the scene `fast`."""


def why_not(kernel: GuestKernel | None, programs: list[Path]) -> str | None:
    """Return the missing requirement for running guests, as text; None if nothing is missing."""
    if reason := guest.why_not(kernel):
        return reason
    absent = [str(program) for program in programs if not program.exists()]
    return f"{', '.join(absent)} missing; run: make setup lockstep" if absent else None


def main() -> None:
    """Record the requested scenes."""
    parser = argparse.ArgumentParser(description="Record the DCTCP of a guest's kernel, for crates/cc/tests/lockstep.")
    parser.add_argument("--scene", metavar="NAME", help="record only this scene")
    parser.add_argument("--out", type=Path, default=RECORDINGS, metavar="DIR", help="folder of recordings")
    parser.add_argument("--recorder", type=Path, default=RECORDER, metavar="FILE", help="the program thalweg-lockstep")
    parser.add_argument("--engine", type=Path, default=ENGINE, metavar="FILE", help="the engine that runs the scenes")
    chosen = parser.parse_args()
    kernel = guests.current()
    if reason := why_not(kernel, [chosen.recorder, chosen.engine]):
        print(f"lockstep: dctcp is not recorded: {reason}", file=sys.stderr)
        return
    assert kernel is not None
    print(f"lockstep: recording dctcp on Linux {kernel.release} in a guest")
    files = {"bin/thalweg-lockstep": chosen.recorder, "bin/thalweg-engine": chosen.engine}
    script = SCRIPT.replace("@OPTIONS@", f"--scene {chosen.scene}" if chosen.scene else "")
    with tempfile.TemporaryDirectory(prefix="thalweg-lockstep-") as folder:
        results = guest.run(Path(folder), kernel, MODULES, files, script, instruction_ns=INSTRUCTION_NS)
        for recording in sorted(results.glob("*.txt.gz")):
            shutil.copy(recording, chosen.out)
        print((results / "said").read_text(), end="")
        if (results / "failed").exists():
            raise SystemExit("lockstep: not all scenes of dctcp were recorded; the reason is above")


if __name__ == "__main__":
    main()
