"""The state of a search in an SQLite file, which survives interruptions and is shared by several processes.

Optuna stores the candidates as trials and proposes the next one. Proposals depend only on the seed, the number of the
candidate and the earlier candidates, so that an interrupted search of one process resumes identically.

A process locks the candidate that it evaluates. If it is killed, another process takes over its candidate.
"""

import hashlib
import json
import sqlite3
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import optuna
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler, NSGAIISampler, RandomSampler, TPESampler
from optuna.storages import RDBStorage
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState
from sqlalchemy.exc import DBAPIError

from thalweg.errors import Exit, ThalwegError
from thalweg.scenario.document import Value
from thalweg.search import locks
from thalweg.search.candidates import Candidate
from thalweg.search.table import Search

FILE = "search.db"
STUDY = "search"

POPULATION = 24
"""Number of candidates in a generation of NSGA-II."""

WAIT_S = 60
"""Timeout of SQLite while another process writes."""

POLL_S = 0.5

CANDIDATE, FOUND, DEFAULT = "candidate", "found", "default"
"""Attributes of Optuna's trials and study: a candidate's number, its results, and the default's results."""


@dataclass(frozen=True)
class Claimed:
    """A candidate that this process evaluates."""

    number: int
    settings: dict[str, Value]
    trial: int
    lock: IO[bytes]


class Store:
    """The candidates of a search."""

    def __init__(self, folder: Path, search: Search, seed: int) -> None:
        """Open the store in `folder`, or create it.

        Raises:
            ThalwegError: If it cannot be written or read, or has more candidates than the budget.
        """
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self._folder, self._search, self._seed = folder, search, seed
        self._known: dict[int, Candidate] = {}
        self._space = {parameter.address: parameter.distribution() for parameter in search.parameters}
        self._sampler = _Proposals(seed, is_single=len(search.objectives) == 1)
        with self.exclusive(), _explained(folder):
            if not (folder / FILE).exists():
                self._make()
            storage = self._storage(folder / FILE)
            self._study = optuna.load_study(study_name=STUDY, storage=storage, sampler=self._sampler)
            self._check_budget()

    def _check_budget(self) -> None:
        """Check that the store has no more candidates than the budget: results would include all of them.

        Raises:
            ThalwegError: If it has more.
        """
        count = _count(self._study.get_trials(deepcopy=False))
        if count > self._search.budget:
            raise ThalwegError(
                "small-budget",
                f"the budget is {self._search.budget}, but `{self._folder}` has {count} candidates",
                place=str(self._folder),
                expected=f"a budget of {count} or more",
                hint=f"repeat the command with --budget {count}, or with another directory: --out DIR",
            )

    def _make(self) -> None:
        """Create the file atomically, because the process may be killed."""
        new = self._folder / f"{FILE}.new"
        for part in (new, new.with_name(f"{new.name}-journal")):
            part.unlink(missing_ok=True)
        storage = self._storage(new)
        goals = StudyDirection.MINIMIZE, StudyDirection.MAXIMIZE
        directions = [goals[objective.is_maximised] for objective in self._search.objectives]
        optuna.create_study(storage=storage, study_name=STUDY, directions=directions)
        storage.engine.dispose()
        new.replace(self._folder / FILE)

    @staticmethod
    def _storage(file: Path) -> RDBStorage:
        def connect() -> sqlite3.Connection:
            return sqlite3.connect(file, timeout=WAIT_S, check_same_thread=False)

        # The file name is relative, because `?` and `%` in a folder's name would be interpreted as parts of the URL.
        return RDBStorage(f"sqlite:///{FILE}", engine_kwargs={"creator": connect})

    def exclusive(self) -> AbstractContextManager[None]:
        """Return an exclusive lock among all processes of this search."""
        return locks.exclusive(self._folder / "lock")

    @property
    def default(self) -> Candidate | None:
        """Results of the scenario as written."""
        document = self._study.user_attrs.get(DEFAULT)
        return _candidate(None, json.loads(document)) if document else None

    def keep_default(self, candidate: Candidate) -> None:
        """Store the results of the scenario as written."""
        with _explained(self._folder):
            self._study.set_user_attr(DEFAULT, _result(candidate))

    def evaluated(self) -> list[Candidate]:
        """Return the evaluated candidates, by number."""
        with _explained(self._folder):
            trials = self._study.get_trials(deepcopy=False)
        for trial in trials:
            if trial.number not in self._known and FOUND in trial.user_attrs and trial.state != TrialState.RUNNING:
                result = json.loads(trial.user_attrs[FOUND])
                self._known[trial.number] = _candidate(trial.user_attrs[CANDIDATE], result)
        return sorted(self._known.values(), key=lambda candidate: candidate.number or 0)

    def claim(self) -> Claimed | None:
        """Take over a candidate of a killed process, or propose a new one; None if the budget is used."""
        with self.exclusive(), _explained(self._folder):
            trials = self._study.get_trials(deepcopy=False)
            for trial in trials:
                if trial.state == TrialState.RUNNING and (lock := self._lock(trial.number)):
                    if self._study.get_trials(deepcopy=False)[trial.number].state != TrialState.RUNNING:
                        lock.close()  # another process has finished it in the meantime
                    elif CANDIDATE in trial.user_attrs:
                        return self._claimed(trial, trial.user_attrs[CANDIDATE], lock)
                    else:
                        lock.close()
                        self._study.tell(
                            trial.number, state=TrialState.FAIL
                        )  # its process was killed during the proposal
            number = _count(trials)
            if number >= self._search.budget:
                return None
            return self._proposed(number)

    def _proposed(self, number: int) -> Claimed:
        self._sampler.begin(number)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            trial = self._study.ask(self._space)
        lock = self._lock(trial.number)
        assert lock, "no other process knows of it"
        trial.set_user_attr(CANDIDATE, number)
        return self._claimed(trial, number, lock)

    def _claimed(self, trial: "FrozenTrial | optuna.Trial", number: int, lock: IO[bytes]) -> Claimed:
        settings = {
            parameter.address: parameter.setting(trial.params[parameter.address])
            for parameter in self._search.parameters
        }
        return Claimed(number, settings, trial.number, lock)

    def is_shared(self) -> bool:
        """Return whether another process is evaluating a candidate."""
        with self.exclusive(), _explained(self._folder):
            for trial in self._study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
                lock = self._lock(trial.number)
                if lock is None:
                    return True
                lock.close()
        return False

    def wait(self) -> None:
        """Wait briefly for another process."""
        time.sleep(POLL_S)

    def keep(self, claimed: Claimed, candidate: Candidate) -> None:
        """Store the results of a candidate, and report them to Optuna."""
        with _explained(self._folder):
            trial = optuna.Trial(self._study, self._study.get_trials(deepcopy=False)[claimed.trial]._trial_id)
            trial.set_user_attr(FOUND, _result(candidate))
            if candidate.is_measured:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # a killed process may have set the constraint
                    excesses = candidate.excesses(self._search)
                    for constraint, excess in zip(self._search.constraints, excesses, strict=True):
                        trial.set_constraint(constraint.text, excess)
                self._study.tell(claimed.trial, candidate.objectives(self._search))
            else:
                self._study.tell(claimed.trial, state=TrialState.FAIL)
        claimed.lock.close()

    def importances(self) -> list[dict[str, float]]:
        """Return, for each objective, the fraction of its variance that each parameter explains (fANOVA); empty if
        there are too few candidates, or if their settings or values do not differ.
        """
        trials = self._study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        varied = [name for name in self._space if len({trial.params[name] for trial in trials}) > 1]
        shares: list[dict[str, float]] = []
        for number in range(len(self._search.objectives)):
            if len(trials) < MIN_FOR_IMPORTANCE or not varied or len({t.values[number] for t in trials}) < 2:
                shares.append({})
                continue
            shares.append(
                optuna.importance.get_param_importances(
                    self._study,
                    evaluator=optuna.importance.FanovaImportanceEvaluator(seed=_hashed(self._seed, "importance")),
                    target=lambda trial, number=number: trial.values[number],  # type: ignore[misc]
                    params=varied,
                )
            )
        return shares

    def _lock(self, trial: int) -> IO[bytes] | None:
        """Lock a trial until the returned file is closed; None if another process holds the lock."""
        return locks.taken(self._folder / "locks" / str(trial))


MIN_FOR_IMPORTANCE = 8


class _Proposals(BaseSampler):
    """TPE for one objective, NSGA-II for several; seeded by the search's seed and the candidate's number."""

    def __init__(self, seed: int, *, is_single: bool) -> None:
        self._seed, self._is_single, self._number = seed, is_single, 0
        self.begin(0)

    def begin(self, number: int) -> None:
        """Seed the random numbers for the proposal of a candidate."""
        self._number = number
        seed = _hashed(self._seed, number)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            self._inner: BaseSampler = (
                TPESampler(seed=seed, multivariate=True)
                if self._is_single
                else NSGAIISampler(seed=seed, population_size=POPULATION)
            )

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        return self._inner.infer_relative_search_space(study, trial)

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        return self._inner.sample_relative(study, trial, search_space)

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        sampler = RandomSampler(seed=_hashed(self._seed, self._number, param_name))
        return sampler.sample_independent(study, trial, param_name, param_distribution)

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        self._inner.before_trial(study, trial)

    def after_trial(self, study: Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None) -> None:
        self._inner.after_trial(study, trial, state, values)


def _count(trials: Sequence[FrozenTrial]) -> int:
    """Return the number of candidates that were proposed, including those that are not evaluated yet."""
    return sum(CANDIDATE in trial.user_attrs for trial in trials)


def _hashed(*parts: int | str) -> int:
    return int.from_bytes(hashlib.sha256(json.dumps(parts).encode()).digest()[:4], "big")


def _result(candidate: Candidate) -> str:
    return json.dumps(
        {
            "settings": candidate.settings,
            "values": candidate.values,
            "stopped": candidate.stopped,
            "failed": candidate.failed,
        }
    )


def _candidate(number: int | None, result: dict[str, Any]) -> Candidate:
    return Candidate(number, result["settings"], result["values"], result["stopped"], result["failed"])


@contextmanager
def _explained(folder: Path) -> Iterator[None]:
    try:
        yield
    except (DBAPIError, sqlite3.DatabaseError, optuna.exceptions.StorageInternalError) as error:
        causes = [error, error.__cause__, error.__context__]
        original = next((str(cause.orig) for cause in causes if isinstance(cause, DBAPIError)), str(error))
        raise ThalwegError(
            "cannot-write",
            f"`{folder / FILE}`: {original}",
            place=str(folder / FILE),
            hint="free some space, or choose another path with --out; then run the same command again",
            exit_code=Exit.CANNOT_WRITE,
        ) from None
