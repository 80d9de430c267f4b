"""Runs a study on an engine, part by part, and judges its claims."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from thalweg.analysis import Evidence, copies_caution, evidence
from thalweg.engine import Capabilities, Engine
from thalweg.errors import Exit, ThalwegError
from thalweg.report.text.claim_verdicts import UNJUDGED
from thalweg.results import Run, open_run
from thalweg.run import Outcome
from thalweg.studies.claims.load import Study
from thalweg.studies.claims.models import Claim
from thalweg.studies.claims.needs import needed
from thalweg.studies.claims.planned_part import PlannedPart, prepare
from thalweg.studies.judging.data import PartData
from thalweg.studies.judging.judge import judge
from thalweg.studies.judging.judged import Judged
from thalweg.studies.running import record_parts
from thalweg.studies.running.rounds import ExperimentKey, Schedule, finished

RUNS = Path("runs") / "studies"


class PartRunner(Protocol):
    """Runs experiments of a part, and shows the progress."""

    def __call__(self, planned_part: PlannedPart, directory: Path, due: Sequence[ExperimentKey]) -> Outcome:
        """Run the due experiments in the directory."""


@dataclass
class Reproduced:
    """Results of a study on one engine."""

    study: Study
    engine: Engine
    planned_parts: Mapping[str, PlannedPart]
    judged: dict[str, Judged] = field(default_factory=dict)
    """Results by the id of the claim."""
    parts: dict[str, PartData] = field(default_factory=dict)
    directories: dict[str, Path] = field(default_factory=dict)
    outcomes: list[Outcome] = field(default_factory=list)
    experiments: int = 0
    """Number of requested or existing experiments, on which the verdicts are based."""
    seconds: float = 0.0

    @property
    def exit_code(self) -> Exit:
        """The largest exit code of its runs; FINE if nothing was run."""
        return max((outcome.exit_code for outcome in self.outcomes), default=Exit.FINE)

    @property
    def failed(self) -> int:
        """Number of experiments that failed in this run."""
        return sum(len(outcome.failed) for outcome in self.outcomes)

    @property
    def is_judged(self) -> bool:
        """Whether any claim has a verdict that is not in `UNJUDGED`."""
        return any(judged.verdict not in UNJUDGED for judged in self.judged.values())

    @property
    def evidence(self) -> list[Evidence]:
        """Usable evidence of each part with a run; the sentences name the directory."""
        runs = [data.run for data in self.parts.values() if data.run]
        evidence_by_path = [(run.path, evidence(run)) for run in runs]
        return [Evidence(item.extent, item.caution and f"in {path}: {item.caution}") for path, item in evidence_by_path]

    @property
    def cautions(self) -> list[str]:
        """Sentences about unusable experiments and copied repetitions; they name the directory."""
        runs = [data.run for data in self.parts.values() if data.run]
        copies = [f"in {run.path}: {caution}" for run in runs if (caution := copies_caution(run))]
        return [*(item.caution for item in self.evidence if item.caution), *copies]

    @property
    def is_fresh(self) -> bool:
        """Whether everything was run now, without reusing results."""
        return bool(self.outcomes) and not any(outcome.present for outcome in self.outcomes)


def plan(study: Study, engine: Engine, capabilities: Capabilities, *, quick: bool) -> Reproduced:
    """Plan all parts of a study.

    Raises:
        ThalwegErrors: If the overrides of claims.toml are invalid, or the default engine, without a set-up, does not
            support a scenario.
    """
    planned_parts = {
        part: prepare(study, part, engine, capabilities.engines, quick=quick) for part in study.claims.parts
    }
    return Reproduced(study, engine, planned_parts)


def folder(study: Study, engine: str, out: Path, *, quick: bool) -> Path:
    """Return the folder of a study's run directories on an engine."""
    return out / study.name / (f"{engine}-quick" if quick else engine)


def run(
    planned: Reproduced,
    directory: Path,
    runner: PartRunner,
    clock: Callable[[], float] = time.monotonic,
    report: Callable[[str], None] = lambda _: None,
) -> None:
    """Run the missing experiments of every part into `directory`, and judge the claims; after Ctrl-C, the claims are
    still judged.

    Points whose claims have tolerances may get fewer repetitions than planned (`Schedule`).
    """
    start, claims = clock(), planned.study.claims.claims
    planned.parts = {part: _data(planned, part, None) for part in planned.planned_parts}
    schedules = {
        part: Schedule(planned_part.plan) for part, planned_part in planned.planned_parts.items() if planned_part.plan
    }
    planned.directories = {part: planned.planned_parts[part].directory(directory) for part in schedules}
    tolerant = {part for claim in claims if claim.judge.tolerance is not None for part in _parts(claim)}
    due = {part: schedule.first(may_stop_early=part in tolerant) for part, schedule in schedules.items()}
    drawn_from = _judge_records(planned, directory, runner, report)
    while any(due.values()):
        for part in due:
            if due[part] and planned.exit_code is not Exit.INTERRUPTED:
                planned.outcomes.append(_run_part(planned, part, due[part], runner))
        planned.judged = {claim.id: judge(claim, planned.parts) for claim in claims}
        if planned.exit_code is Exit.INTERRUPTED:
            break
        due = {part: schedule.next(part, claims, planned.judged) for part, schedule in schedules.items()}
    else:
        for part, schedule in schedules.items():
            schedule.note(planned.directories[part])
    if not planned.judged:  # no part with a scenario was run
        planned.judged = {claim.id: judge(claim, planned.parts) for claim in claims}
    finished_pairs = {part: finished(planned.parts[part].run) for part in schedules}
    planned.experiments = drawn_from + sum(
        len(schedule.asked | finished_pairs[part]) for part, schedule in schedules.items()
    )
    planned.seconds = clock() - start


def _judge_records(planned: Reproduced, directory: Path, runner: PartRunner, report: Callable[[str], None]) -> int:
    parts = {
        part: planned_part for part, planned_part in planned.planned_parts.items() if planned_part.records is not None
    }
    if not parts:
        return 0
    outcomes: list[Outcome] = []
    try:
        pools = record_parts.simulated(next(iter(parts.values())), directory, runner, outcomes)
        planned.directories |= {part: directory / part for part in parts}
        planned.parts |= record_parts.judged(parts, pools, directory, report)
    except KeyboardInterrupt:
        outcomes.append(Outcome(Exit.INTERRUPTED))
    planned.outcomes += outcomes
    return sum(outcome.experiments for outcome in outcomes)


def _parts(claim: Claim) -> set[str]:
    return {claim.part, (claim.against.part if claim.against else None) or claim.part}


def _run_part(planned: Reproduced, part: str, due: Sequence[ExperimentKey], runner: PartRunner) -> Outcome:
    planned_part, directory = planned.planned_parts[part], planned.directories[part]
    before = planned.parts[part].run or _opened(directory)
    if set(due) <= finished(before):
        outcome = Outcome(experiments=len(due), present=len(due))
        run = before
    else:
        outcome = runner(planned_part, directory, due)
        run = _opened(directory)
    planned.parts[part] = _data(planned, part, run)
    return outcome


def _data(planned: Reproduced, part: str, run: Run | None) -> PartData:
    claims = planned.study.claims
    return PartData(planned.planned_parts[part], run, claims.measures, needed(claims))


def _opened(directory: Path) -> Run | None:
    try:
        return open_run(directory)
    except ThalwegError as error:
        if error.code not in ("empty-run", "no-run"):  # no experiment is complete yet
            raise
        return None
