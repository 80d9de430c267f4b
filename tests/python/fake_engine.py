"""A fake thalweg-engine, configured by environment variables, for tests of the Python side.

FAKE_ENGINE selects its behaviour in a run: finish (the second experiment is untrustworthy), finish-deaf (it then
ignores SIGINT), fail, fail-alike (both experiments, with a message of two lines), wait (for a signal), ignore (the
signal), refuse, full (disk), die, abort (out of memory) or babble. A plan always has two experiments.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

EXPERIMENTS = [{"id": f"{number:08x}{0:08x}", "experiment": number, "repetition": 0} for number in range(2)]

HONOURS = [
    *("name", "about", "source", "duration", "repetitions", "seed", "start_jitter", "sample_interval"),
    *("path.rate", "path.rtt", "path.buffer"),
    *("flow.name", "flow.cc=name", "flow.size", "flow.start", "flow.repeat.gap", "flow.repeat.until"),
]

CAPABILITIES = {
    "format": 1,
    "version": "0.2.0",
    "engines": [
        {
            "name": "sim",
            "available": True,
            "why_not": None,
            "version": "2",
            "about": "pretends",
            "cc": [{"name": name, "about": "", "params": {}} for name in ("cubic", "bbr")],
            "honours": HONOURS,
        },
        {
            "name": "kernel",
            "available": False,
            "why_not": "user namespaces are switched off.\n"
            "sudo sysctl kernel.unprivileged_userns_clone=1\nhint: or be root",
            "version": "2",
            "about": "pretends too",
            "cc": [],
            "honours": [],
        },
    ],
}


def write(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def complain(text: str) -> None:
    sys.stderr.write(text + "\n")


def say(event: str, **rest: Any) -> None:
    write(json.dumps({"event": event, **rest}))


def refuse(code: int, slug: str, message: str, hint: str) -> None:
    say("error", code=slug, place="runs/x", found="something", expected="something else", hint=hint, message=message)
    complain(f"thalweg-engine: {message}")
    sys.exit(code)


def run(behaviour: str, out: Path) -> None:
    plan = json.load(sys.stdin)
    if behaviour == "refuse":
        refuse(2, "other-run", "the run directory is of another plan", "name another --out")
    if behaviour == "full":
        refuse(3, "disk-full", "no space left on device", "free some space")
    say("plan", experiments=2, present=0, pending=2, threads=1)
    say("started", **EXPERIMENTS[0])
    if behaviour == "die":
        complain("it all went wrong")
        os.kill(os.getpid(), signal.SIGKILL)
    if behaviour == "abort":
        complain("memory allocation of 8 bytes failed\nstack backtrace:\n   0: rust_oom")
        os.kill(os.getpid(), signal.SIGABRT)
    if behaviour in ("wait", "ignore"):
        wait(behaviour)
    if behaviour == "babble":
        write("this is not JSON")
    if behaviour == "fail-alike":
        for experiment in EXPERIMENTS:
            say("failed", **experiment, code="no-cc", message="no congestion control `bbr`\nhint: modprobe tcp_bbr")
        say("done", finished=0, failed=2, present=0, seconds=0.2)
        sys.exit(1)
    write_run(out, plan, "" if behaviour == "fail" else "the host was busy")
    say("finished", **EXPERIMENTS[0], seconds=0.1, simulated_s=1.0, packets=5)
    say("started", **EXPERIMENTS[1])
    if behaviour == "fail":
        say("failed", **EXPERIMENTS[1], code="bug", message="inflight became negative")
    else:
        say("finished", **EXPERIMENTS[1], seconds=0.1, simulated_s=1.0, packets=5, measured={"relay_cpu_percent": 7})
        say("untrustworthy", id=EXPERIMENTS[1]["id"], experiment=1, repetition=0, reason="the host was busy")
    if behaviour == "finish-deaf":
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    say("done", finished=1, failed=1, present=0, seconds=0.2)
    sys.exit(1 if behaviour == "fail" else 0)


def write_run(out: Path, plan: Any, mark: str) -> None:
    """Write a run whose first experiment is finished; with a mark, the second one is finished as well and marked."""
    tables = """
import sys
from pathlib import Path
from synthetic_runs import SyntheticRun, experiment
made = SyntheticRun(Path(sys.argv[1]), [experiment(0), experiment(1)])
made.transfer(0, 0)
if sys.argv[2]:
    made.transfer(1, 0, untrustworthy=sys.argv[2])
made.write()
"""
    # This process runs without site-packages, so that it starts quickly; writing tables needs them.
    paths = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    with tempfile.TemporaryDirectory() as folder:  # the name is valid UTF-8, which writing tables requires
        words = [sys.executable, "-c", tables, folder, mark]
        subprocess.run(words, env=os.environ | {"PYTHONPATH": paths}, check=True)
        shutil.copytree(folder, out, dirs_exist_ok=True)
    command = os.environ.get("THALWEG_COMMAND")
    meta = json.loads((out / "run.json").read_text())
    (out / "run.json").write_text(json.dumps(meta | {"plan": plan, "command": command and json.loads(command)}))


def wait(behaviour: str) -> None:
    """Log each SIGINT, and exit at the first one, except if the behaviour is `ignore`."""

    def stop(number: int, frame: object) -> None:
        with Path("asked").open("a") as log:
            log.write(f"{number}\n")
        if behaviour == "wait":
            say("interrupted")
            sys.exit(130)

    signal.signal(signal.SIGINT, stop)
    say("listening")
    while True:
        time.sleep(60)


def main() -> None:
    match sys.argv[1:]:
        case ["capabilities", "--json", *_]:
            write(json.dumps(CAPABILITIES))
        case ["run", "--plan", "-", "--out", out, *_]:
            run(os.environ.get("FAKE_ENGINE", "finish"), Path(out))
        case _:
            complain("error: unrecognized subcommand")
            sys.exit(2)


if __name__ == "__main__":
    main()
