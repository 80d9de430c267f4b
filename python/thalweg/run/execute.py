"""Runs a plan: starts the engine, passes the plan, reads its events, and stops it cleanly."""

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from thalweg import printable
from thalweg.engine import Engine
from thalweg.engine_output import EngineEvent, is_event
from thalweg.errors import Exit, ThalwegError, shortage
from thalweg.plan import Plan
from thalweg.processes import ends_with_parent
from thalweg.run.signals import forwarding


@dataclass
class Outcome:
    """Outcome of a run."""

    exit_code: Exit = Exit.FINE
    experiments: int = 0
    present: int = 0
    """Number of experiments that were complete before."""
    finished: int = 0
    failed: list[EngineEvent] = field(default_factory=list)
    untrustworthy: list[EngineEvent] = field(default_factory=list)

    def note(self, event: EngineEvent) -> None:
        """Count an event."""
        match event["event"]:
            case "plan":
                self.experiments, self.present = event["experiments"], event["present"]
            case "finished":
                self.finished += 1
            case "failed":
                self.failed.append(event)
            case "untrustworthy":
                self.untrustworthy.append(event)


def execute(
    plan: Plan | bytes,
    out: Path,
    *,
    binary: Path,
    threads: int | None = None,
    command: Sequence[str] = (),
    listener: Callable[[EngineEvent], None] = lambda event: None,
    due: Sequence[tuple[int, int]] | None = None,
) -> Outcome:
    """Run the missing experiments of a plan in a run directory.

    Ctrl-C and similar signals are forwarded to the engine, which stops cleanly; the listener then receives an
    additional event `stopping`.

    Args:
        plan: A plan, or a plan in JSON.
        out: The run directory.
        binary: `thalweg-engine`.
        threads: Maximum number of parallel experiments; None: the engine's default.
        command: The user's command, which the run directory stores.
        listener: Receives every event.
        due: Experiments and repetitions to run; None: all.

    Raises:
        ThalwegError: If the engine cannot be started, refuses the plan, cannot write the run directory, or dies.
    """
    arguments = [str(binary), "run", "--plan", "-", "--out", str(out)]
    if threads is not None:
        arguments += ["--threads", str(threads)]
    with _listed(due) as listed:
        return _execute(plan, out, [*arguments, *listed], command, listener)


@contextmanager
def _listed(due: Sequence[tuple[int, int]] | None) -> Iterator[list[str]]:
    if due is None:
        yield []
        return
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(list(due), file)
        file.flush()
        yield ["--due", file.name]


def _execute(
    plan: Plan | bytes,
    out: Path,
    arguments: Sequence[str],
    command: Sequence[str],
    listener: Callable[[EngineEvent], None],
) -> Outcome:
    environment = os.environ | {"THALWEG_COMMAND": json.dumps(list(command))} if command else dict(os.environ)
    outcome, refusal = Outcome(), None
    with tempfile.TemporaryFile() as stderr_file, _started(arguments, environment, stderr_file) as engine:
        feeder = threading.Thread(target=_feed, args=(engine, _json(plan)), daemon=True)
        feeder.start()
        with forwarding(engine, lambda: listener({"event": "stopping"})) as interrupt:
            for event in _events(engine):
                refusal = event if event["event"] == "error" else refusal
                outcome.note(event)
                listener(event)
            code = engine.wait()
        feeder.join()
        stderr_file.seek(0)
        words = stderr_file.read().decode(errors="replace").strip()
    # The signal may arrive twice, before the engine installs its handler, or after the last experiment: the exit code
    # does not show it then, but callers with several plans must not start the next one.
    if interrupt.is_asked and (code < 0 or code in (Exit.FINE, Exit.FAILED)):
        code = Exit.INTERRUPTED
    if refusal:
        raise refused(refusal, code)
    if code not in (Exit.FINE, Exit.FAILED, Exit.INTERRUPTED):
        raise _died(code, words, out)
    outcome.exit_code = Exit(code)
    return outcome


def real_time_s(plan: Plan, engine: Engine) -> float | None:
    """Return the total time of the experiments on a real-time engine, in seconds; None on other engines, or if unknown.
    An experiment without a duration ends when its flows complete, at an unknown time.
    """
    durations = [experiment.duration_ns for experiment in plan.experiments]
    if not engine.is_real_time or None in durations:
        return None
    return sum(duration or 0 for duration in durations) / 1e9


@contextmanager
def _started(
    arguments: Sequence[str], environment: dict[str, str], stderr_file: IO[bytes]
) -> Iterator[subprocess.Popen[bytes]]:
    """Start the engine in a separate process group, so that it receives a Ctrl-C only once, from this process."""
    try:
        engine = subprocess.Popen(
            arguments,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr_file,
            process_group=0,
            preexec_fn=ends_with_parent(),
        )
    except OSError as error:
        raise shortage(error) or ThalwegError(
            "bad-engine",
            f"`{arguments[0]}` cannot be started: {(error.strerror or '').lower()}",
            place=arguments[0],
            hint="thalweg doctor",
            exit_code=Exit.MISSING,
        ) from None
    with engine:
        try:
            yield engine
        finally:
            if engine.poll() is None:
                engine.terminate()


def _json(plan: Plan | bytes) -> bytes:
    return plan if isinstance(plan, bytes) else plan.model_dump_json().encode()


def _feed(engine: subprocess.Popen[bytes], plan: bytes) -> None:
    """Write the plan to the engine; an engine that exits early reports the reason itself."""
    assert engine.stdin
    with suppress(BrokenPipeError), engine.stdin:
        engine.stdin.write(plan)


def _events(engine: subprocess.Popen[bytes]) -> Iterator[EngineEvent]:
    assert engine.stdout
    for line in engine.stdout:
        try:
            event = json.loads(line)
        except ValueError:
            sys.stderr.write(printable.lines(line.decode(errors="replace")))
            continue
        if is_event(event):
            yield event


def refused(event: EngineEvent, code: int) -> ThalwegError:
    """Return the error for an engine's refusal event."""
    codes = {int(exit_code) for exit_code in Exit}
    return ThalwegError(
        event["code"],
        event["message"],
        place=event["place"] or None,
        found=event["found"] or None,
        expected=None if event["expected"] in event["message"] else event["expected"],
        hint=event["hint"] or None,
        exit_code=Exit(code) if code in codes else Exit.FAILED,
    )


def _died(code: int, words: str, out: Path) -> ThalwegError:
    why = f"signal {-code}" if code < 0 else f"exit code {code}"
    hint = f"finished experiments are in `{out}`; the same command resumes"
    words = words.partition("stack backtrace:")[0].strip()
    has_no_memory = "memory allocation" in words
    if code == -9 or has_no_memory:
        hint += "\nif memory was short, use fewer --threads"
    exit_code = Exit.TEMPORARY if has_no_memory else Exit.FAILED
    return ThalwegError(
        "engine-died",
        f"the engine terminated unexpectedly ({why})",
        found=words or None,
        hint=hint,
        exit_code=exit_code,
    )
