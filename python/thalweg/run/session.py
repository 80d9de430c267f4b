"""Runs a user's command on a path: starts the engine with this terminal, and waits for it."""

import json
import os
import signal
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Any

from thalweg.engine_output import EngineEvent, is_event
from thalweg.errors import Exit, ThalwegError, shortage
from thalweg.plan import Plan
from thalweg.processes import ends_with_parent
from thalweg.run.directory import RUNS
from thalweg.run.execute import refused
from thalweg.scratch import Scratch

PREFIX = "thalweg-shell-"


@dataclass
class Ended:
    """Outcome of a session."""

    exit_code: int
    """Exit code of the command; 128 plus the number of the signal that ended it."""
    was_held: bool = False
    """Whether the command ran and the run directory is complete."""
    connections: "list[Connection]" = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    """Reasons why the numbers of the session are untrustworthy."""


@dataclass(frozen=True)
class Connection:
    """A connection or UDP flow of a session, in the direction that carried more data."""

    protocol: str
    source: str
    """Address and port of the sender."""
    target: str
    cc: str | None
    """Congestion control; None if it is not TCP, or closed before it was sampled."""
    seconds: float
    """From its first packet to its last delivery."""
    bytes: int
    """Payload that left the path; for TCP each byte once."""
    packets: int
    retransmits: int | None
    lost_packets: int
    rtt_us: float | None
    """Median of TCP's smoothed round-trip times."""
    delay_us: float | None
    """Median of the one-way delays of the packets on the path."""


def connections_of(journal: Path) -> list[Connection]:
    """Return the connections of a session, from the journal of its run directory or from a file of events."""
    return [_connection(event) for event in _events(journal) if event["event"] == "connection"]


def _connection(event: EngineEvent) -> Connection:
    line = dict[str, Any](event)
    return Connection(
        protocol=line["protocol"],
        source=line["from"],
        target=line["to"],
        cc=line["cc"],
        seconds=(line["end_us"] - line["start_us"]) / 1e6,
        bytes=line["bytes"],
        packets=line["packets"],
        retransmits=line["retransmits"],
        lost_packets=line["lost_packets"],
        rtt_us=line["rtt_us"],
        delay_us=line["delay_us"],
    )


def new_directory(plan: Plan, folder: Path = RUNS) -> Path:
    """Create a run directory named after the plan and the time, because every session is a separate run."""
    name = f"{plan.name}-shell-{datetime.now():%Y%m%d-%H%M%S}"
    for number in count(1):
        directory = folder / (name if number == 1 else f"{name}-{number}")
        with suppress(FileExistsError):
            directory.mkdir(parents=True)
            return directory
    raise AssertionError("numbers have no end")


def hold(plan: Plan, out: Path, *, binary: Path, arguments: Sequence[str], command: Sequence[str]) -> Ended:
    """Run a command on the path of a plan, and wait for it to exit.

    Args:
        plan: A plan of one experiment.
        out: The run directory.
        binary: `thalweg-engine`.
        arguments: Further arguments of `thalweg-engine shell`, the command among them.
        command: The command line as typed, which the run directory stores.

    Raises:
        ThalwegError: If the engine cannot be started, refuses the plan, or cannot run the command.
    """
    with Scratch(PREFIX) as folder:
        plan_file, events_file = folder / "plan.json", folder / "events.jsonl"
        plan_file.write_text(plan.model_dump_json(), encoding="utf-8")
        files = ["--plan", str(plan_file), "--out", str(out), "--events", str(events_file)]
        code = _wait([str(binary), "shell", *files, *arguments], command)
        events, connections = list(_events(events_file)), connections_of(events_file)
    for event in events:
        if event["event"] == "error":
            raise refused(event, code)
    was_held = any(event["event"] == "finished" for event in events)
    reasons = [event["reason"] for event in events if event["event"] == "untrustworthy"]
    return Ended(code if code >= 0 else 128 - code, was_held, connections, reasons)


def _wait(words: Sequence[str], command: Sequence[str]) -> int:
    environment = os.environ | {"THALWEG_COMMAND": json.dumps(list(command))}
    try:
        engine = subprocess.Popen(words, env=environment, preexec_fn=ends_with_parent())
    except OSError as error:
        raise shortage(error) or ThalwegError(
            "bad-engine",
            f"`{words[0]}` cannot be started: {(error.strerror or '').lower()}",
            place=words[0],
            hint="thalweg doctor",
            exit_code=Exit.MISSING,
        ) from None
    with _signals_of(engine):
        return engine.wait()


@contextmanager
def _signals_of(engine: subprocess.Popen[bytes]) -> Iterator[None]:
    """Ignore SIGINT and SIGQUIT, which the command also receives from the terminal, and forward termination signals.

    Python delivers signals only to the main thread; in other threads this does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def leave(number: int, frame: object) -> None:
        pass

    def pass_on(number: int, frame: object) -> None:
        with suppress(ProcessLookupError):
            engine.send_signal(signal.SIGTERM)

    handlers = {signal.SIGINT: leave, signal.SIGQUIT: leave, signal.SIGTERM: pass_on, signal.SIGHUP: pass_on}
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _events(file: Path) -> Iterator[EngineEvent]:
    with suppress(FileNotFoundError):
        for line in file.read_text(encoding="utf-8").splitlines():
            with suppress(ValueError):
                event = json.loads(line)
                if is_event(event):
                    yield event
