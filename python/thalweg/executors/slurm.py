"""The executor `slurm`: the shards are the tasks of a job array, on a file system that all nodes share.

A node needs the engine at the same path, and no Python. A task that ends without a result is submitted again; the
engine then resumes from the completed experiments. The partition, account and time limit come from sbatch's own
environment variables: SBATCH_PARTITION, SBATCH_ACCOUNT, SBATCH_TIMELIMIT.
"""

import json
import shlex
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from thalweg.errors import Exit, ThalwegError
from thalweg.executors.shards import Joined, events_of, refusal, refuse_real_time
from thalweg.executors.work import Work
from thalweg.processes import asked_to_end
from thalweg.run import Outcome
from thalweg.scratch import Scratch

SHARDS = 16
"""Default number of tasks, more if shards would exceed `MAX_SHARD`; the number of nodes is unknown."""

MAX_ATTEMPTS = 3

LOOK_EVERY_S = 1.0
END_WITHIN_S = 15.0

PROGRAMS = ("sbatch", "squeue", "scancel")

NO_PROGRAM = 127
"""Exit code of a shell if the program is missing."""


def check() -> None:
    """Check that Slurm's commands are installed.

    Raises:
        ThalwegError: If one is not.
    """
    for program in PROGRAMS:
        if shutil.which(program) is None:
            raise ThalwegError(
                "no-slurm",
                f"the executor slurm needs the command {program}, which is not on the PATH",
                place="--executor",
                hint="run thalweg on a machine that can submit jobs to the cluster, or install slurm-client",
                exit_code=Exit.MISSING,
            )


def execute(work: Work) -> Outcome:
    """Run the work as a job array.

    Raises:
        ThalwegError: If the engine runs in real time, or the run directory, Slurm or a node cannot be used.
    """
    refuse_real_time(work, "slurm")
    joined = Joined(work)
    if not joined.missing:
        joined.begin(0)
        return joined.finish()
    with Scratch(f".{work.out.name}-slurm-", work.out.parent.resolve()) as folder, asked_to_end():
        shards = joined.split(min(SHARDS, len(joined.missing)))
        joined.begin(len(shards) * (work.threads or 1))
        (folder / "plan.json").write_text(work.plan.model_dump_json(), encoding="utf-8")
        for number, due in enumerate(shards):
            (folder / f"{number}.due").write_text(json.dumps(due), encoding="utf-8")
        (folder / "task.sh").write_text(_script(work, folder), encoding="utf-8")
        job = _Job(folder, work.threads or 1, set(range(len(shards))))
        try:
            for number in job.finished():
                _add(joined, folder, number)
        except KeyboardInterrupt:
            work.listener({"event": "stopping"})
            for number in job.stopped():
                _add(joined, folder, number)
            return joined.finish(is_interrupted=True)
        finally:
            job.cancel()
        return joined.finish()


def _script(work: Work, folder: Path) -> str:
    """Return the script of a task; the file with the engine's exit code is either complete or absent."""
    engine, directory = shlex.quote(str(work.binary.resolve())), shlex.quote(str(folder))
    return f"""#!/bin/sh
cd {directory} || exit 1
n=$SLURM_ARRAY_TASK_ID
{engine} run --plan plan.json --out "$n" --due "$n.due" --threads {work.threads or 1} >>"$n.events" 2>"$n.errors" &
engine=$!
trap 'kill -TERM $engine' TERM
wait $engine
code=$?
while kill -0 $engine 2>/dev/null; do wait $engine; code=$?; done
echo $code >"$n.code.part" && mv "$n.code.part" "$n.code"
"""


@dataclass
class _Job:
    """Array jobs over the same folder: the first one, and those of resubmitted tasks."""

    folder: Path
    cpus: int
    waiting: set[int]
    attempts: dict[int, int] = field(default_factory=dict)
    ids: list[str] = field(default_factory=list)

    def finished(self) -> Iterator[int]:
        """Submit all tasks, and yield each as it ends; a task that ends without a result is submitted again.

        Raises:
            ThalwegError: If a task has ended without a result `MAX_ATTEMPTS` times, or Slurm refuses a command.
        """
        self._submit(self.waiting)
        while self.waiting:
            # The queue is read before the files, because a task writes its file before it leaves the queue.
            queued = self._queued()
            yield from self._ended()
            if lost := self.waiting - queued:
                time.sleep(LOOK_EVERY_S)  # a shared file system may show a file with delay
                yield from self._ended()
                self._again(lost & self.waiting)
            time.sleep(LOOK_EVERY_S if self.waiting else 0)

    def stopped(self) -> Iterator[int]:
        """Cancel the remaining tasks, and yield those that have created a run directory."""
        self.cancel()
        deadline = time.monotonic() + END_WITHIN_S
        while self._queued() and time.monotonic() < deadline:
            time.sleep(LOOK_EVERY_S)
        yield from [number for number in sorted(self.waiting) if (self.folder / str(number) / "run.json").exists()]

    def cancel(self) -> None:
        """Cancel the remaining tasks."""
        if self.waiting and self.ids:
            subprocess.run(["scancel", *self.ids], capture_output=True, check=False)

    def _ended(self) -> Iterator[int]:
        for number in sorted(self.waiting):
            if (self.folder / f"{number}.code").exists():
                self.waiting.discard(number)
                yield number

    def _again(self, lost: set[int]) -> None:
        for number in lost:
            if self.attempts[number] >= MAX_ATTEMPTS:
                raise ThalwegError(
                    "worker-died",
                    f"task {number} of the job {self.ids[-1]} ended {MAX_ATTEMPTS} times without a result",
                    found=_errors(self.folder, number),
                    hint="if it exceeded its time limit, set SBATCH_TIMELIMIT; the same command resumes",
                    exit_code=Exit.FAILED,
                )
        if lost:
            self._submit(lost)

    def _submit(self, numbers: set[int]) -> None:
        for number in numbers:
            self.attempts[number] = self.attempts.get(number, 0) + 1
        array = ",".join(map(str, sorted(numbers)))
        options = ["--parsable", f"--array={array}", f"--cpus-per-task={self.cpus}", "--ntasks=1"]
        names = ["--job-name=thalweg", f"--output={self.folder}/%a.log", "--open-mode=append"]
        answer = _slurm(["sbatch", *options, *names, str(self.folder / "task.sh")])
        self.ids.append(answer.strip().partition(";")[0])

    def _queued(self) -> set[int]:
        try:
            lines = _slurm(["squeue", "--noheader", "--array", "--format=%K", f"--jobs={','.join(self.ids)}"])
        except ThalwegError as error:
            if "Invalid job id" in (error.found or ""):  # Slurm forgets a job some time after its end
                return set()
            raise
        return {int(line) for line in lines.split() if line.isdigit()}


def _slurm(command: Sequence[str]) -> str:
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    if process.returncode != 0:
        raise ThalwegError(
            "slurm-refused",
            f"{command[0]} ended with exit code {process.returncode}",
            place="--executor",
            found=process.stderr.strip() or None,
            hint="sinfo     (shows whether the cluster responds, and its partitions)",
            exit_code=Exit.MISSING,
        )
    return process.stdout


def _add(joined: Joined, folder: Path, number: int) -> None:
    events = events_of((folder / f"{number}.events").read_text(encoding="utf-8", errors="replace"))
    code_file = folder / f"{number}.code"
    code = int(code_file.read_text()) if code_file.exists() else int(Exit.INTERRUPTED)
    for event in events:
        if event["event"] == "error":
            raise refusal(event, f"a node could not run shard {number}", code)
    if code not in (Exit.FINE, Exit.FAILED, Exit.INTERRUPTED):
        why = "the engine is not at the same path as on this machine" if code == NO_PROGRAM else f"exit code {code}"
        raise ThalwegError(
            "engine-died",
            f"a node could not run shard {number}: {why}",
            found=_errors(folder, number),
            hint="thalweg must be in a folder that all nodes share; the same command resumes",
            exit_code=Exit.MISSING if code == NO_PROGRAM else Exit.FAILED,
        )
    joined.add(folder / str(number), events)
    shutil.rmtree(folder / str(number))


def _errors(folder: Path, number: int) -> str | None:
    file = folder / f"{number}.errors"
    return (file.read_text(encoding="utf-8", errors="replace").strip() or None) if file.exists() else None
