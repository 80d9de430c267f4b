"""The status of a run: finished, failed, missing and untrustworthy experiments."""

from dataclasses import dataclass

from thalweg.results import Run, Untrustworthy


@dataclass(frozen=True)
class Failure:
    """An experiment whose last attempt failed."""

    experiment: int
    repetition: int
    code: str
    message: str


@dataclass(frozen=True)
class Status:
    """Progress of a run."""

    expected: int
    finished: int
    failures: list[Failure]
    untrustworthy: list[Untrustworthy]
    not_needed: int = 0
    """Planned experiments that a study did not need."""

    @property
    def missing(self) -> int:
        """Number of needed experiments that neither finished nor failed."""
        return self.expected - self.finished - len(self.failures) - self.not_needed


def status(run: Run) -> Status:
    """Return the progress of the run; a failure that a later attempt repaired does not count."""
    finished = set(run.finished_ids)
    failures = [
        Failure(entry["experiment"], entry["repetition"], str(event.get("code", "")), str(event.get("message", "")))
        for entry in run.meta["experiments"]
        if (event := run.failed.get(entry["id"]))
    ]
    not_needed = sum(
        (entry["experiment"], entry["repetition"]) in run.not_needed
        for entry in run.meta["experiments"]
        if entry["id"] not in finished and entry["id"] not in run.failed
    )
    return Status(len(run.expected_ids), len(finished), failures, list(run.untrustworthy), not_needed)
