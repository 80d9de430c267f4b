"""Splits missing experiments into shards for the cluster executors, and merges these into the run directory."""

import json
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from thalweg import run
from thalweg.engine_output import EngineEvent, is_event
from thalweg.errors import Exit, ThalwegError
from thalweg.executors.work import ExperimentKey, Work
from thalweg.results import open_run
from thalweg.run import Outcome

MAX_SHARD = 500
"""Maximum number of experiments in a shard; `Work.shards` takes precedence."""

ENDS = ("finished", "failed")
REPLAYED = (*ENDS, "untrustworthy")
"""Events of a shard that are passed to the listener once the shard has been merged."""


class Joined:
    """The run directory of a plan, into which shards are merged."""

    def __init__(self, work: Work) -> None:
        """Create the run directory, or check that the existing one belongs to this plan.

        Raises:
            ThalwegError: If it belongs to another plan, engine or version, or cannot be written.
        """
        self._work = work
        run.execute(work.plan, work.out, binary=work.binary, command=work.command, due=[])
        due = work.due
        if due is None:
            due = [(experiment.experiment, experiment.repetition) for experiment in work.plan.experiments]
        present = _present(work.out)
        self.missing = [key for key in due if key not in present]
        self.outcome = Outcome(experiments=len(due), present=len(due) - len(self.missing))

    def begin(self, at_a_time: int) -> None:
        """Report the planned work; `at_a_time` is the maximum number of experiments that run in parallel."""
        outcome = self.outcome
        self._work.listener(
            {
                "event": "plan",
                "experiments": outcome.experiments,
                "present": outcome.present,
                "pending": len(self.missing),
                "threads": at_a_time,
            }
        )

    def split(self, shards: int) -> list[list[ExperimentKey]]:
        """Split the missing experiments: shard I of N gets every N-th experiment.

        Adjacent experiments, such as the repetitions of a point, are thus distributed over the shards.
        """
        count = self._work.shards or max(shards, -(-len(self.missing) // MAX_SHARD))
        return [shard for first in range(count) if (shard := self.missing[first::count])]

    def add(self, folder: Path, events: Sequence[EngineEvent]) -> None:
        """Merge the run directory of a shard, and report its events.

        Raises:
            ThalwegError: If the shard is of another version of results, or the run directory cannot be written.
        """
        _merge(self._work.binary, self._work.out, folder)
        # If a shard was restarted, only the last end event of an experiment counts.
        last = {(event["id"], event["event"] in ENDS): event for event in events if event["event"] in REPLAYED}
        for event in last.values():
            self.outcome.note(event)
            self._work.listener(event)

    def finish(self, *, is_interrupted: bool = False) -> Outcome:
        """Return the outcome."""
        code = Exit.INTERRUPTED if is_interrupted else Exit.FAILED if self.outcome.failed else Exit.FINE
        return replace(self.outcome, exit_code=code)


def refuse_real_time(work: Work, executor: str) -> None:
    """Reject engines that run in real time: shards on one machine would disturb each other's measurements."""
    from thalweg import engine

    name = work.plan.engine
    if engine.choose(name, engine.capabilities(name)).is_real_time:
        raise ThalwegError(
            "real-time-engine",
            f"the engine `{name}` runs in real time, and experiments on the same machine would disturb each other",
            place="--executor",
            found=executor,
            expected=f"an engine in simulated time, or {name} on this machine",
            hint="--executor local",
        )


def events_of(lines: str) -> list[EngineEvent]:
    """Parse the events that an engine has printed; other lines are ignored."""
    events = []
    for line in lines.splitlines():
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if is_event(event):
            events.append(event)
    return events


def refusal(event: EngineEvent, where: str, code: int = Exit.FAILED) -> ThalwegError:
    """Return the error for an engine's `error` event; `where` describes what failed."""
    codes = {int(exit_code) for exit_code in Exit}
    return ThalwegError(
        event["code"],
        f"{where}: {event['message']}",
        found=event.get("found") or None,
        hint=event.get("hint") or None,
        exit_code=Exit(code) if code in codes else Exit.FAILED,
    )


def _present(out: Path) -> set[ExperimentKey]:
    try:
        existing = open_run(out)
    except ThalwegError as error:
        if error.code != "empty-run":
            raise
        return set()
    complete = set(existing.finished_ids)
    return {
        (experiment["experiment"], experiment["repetition"])
        for experiment in existing.meta["experiments"]
        if experiment["id"] in complete
    }


def _merge(binary: Path, out: Path, folder: Path) -> None:
    process = subprocess.run(
        [str(binary), "merge", "--out", str(out), str(folder)], capture_output=True, text=True, check=False
    )
    if process.returncode != 0:
        for event in events_of(process.stdout):
            if event["event"] == "error":
                raise refusal(event, "a shard cannot be merged", process.returncode)
        raise ThalwegError(
            "engine-died",
            f"the engine could not merge a shard (exit code {process.returncode})",
            found=process.stderr.strip() or None,
            hint="the same command resumes from the merged experiments",
            exit_code=Exit.FAILED,
        )
