"""Finds from records of live servers where an algorithm helps users and where it hurts.

    answer = advise([Path("/var/lib/thalweg/records")], Question(segments=("prefix",)))
    answer.headline
    [(part.title, part.verdict, part.reason) for part in answer.parts]
    policy_rules.text(answer)      # the policy that follows

An engine (DuckDB or Spark) aggregates the records; Python reads only the counts.
docs/concepts/advice.md describes the method and its reasons; docs/reference/advise.md lists options and thresholds.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from thalweg.advise.answers.answer import (
    NO_DIFFERENCE,
    NOT_COMPARABLE,
    NOT_ENOUGH,
    Age,
    Answer,
    Caution,
    Comparison,
    Gain,
    Part,
    Since,
    Sized,
    Step,
)
from thalweg.advise.counting.engines import DuckDb, QueryEngine, QueryFailed, Spark
from thalweg.advise.judging import judge
from thalweg.advise.question import Design, Question
from thalweg.advise.statistics.effects import QUANTILES, Arm, Difference, Effect
from thalweg.errors import Exit, ThalwegError
from thalweg.processes import asked_to_end
from thalweg.records.find import TRIES, FoundFiles, LeftOutFile, find, nothing
from thalweg.results.parquet import damaged

__all__ = [
    "NOT_COMPARABLE",
    "NOT_ENOUGH",
    "NO_DIFFERENCE",
    "QUANTILES",
    "Age",
    "Answer",
    "Arm",
    "Caution",
    "Comparison",
    "Design",
    "Difference",
    "DuckDb",
    "Effect",
    "Gain",
    "Part",
    "QueryEngine",
    "Question",
    "Since",
    "Sized",
    "Spark",
    "Step",
    "advise",
]


def advise(
    places: Sequence[Path],
    question: Question | None = None,
    *,
    table: Path | None = None,
    engine: Callable[[], QueryEngine] = DuckDb,
) -> Answer:
    """Evaluate the records in files and folders; `table` maps networks to attributes such as AS and country.

    Raises:
        ThalwegError: If there are no records, if they or the table do not fit the question, or if the engine fails.
    """
    with asked_to_end():
        return _tried(places, question or Question(), table, engine)


def _tried(places: Sequence[Path], question: Question, table: Path | None, engine: Callable[[], QueryEngine]) -> Answer:
    bad: dict[Path, LeftOutFile] = {}
    for _ in range(TRIES):
        files = _without(find(places), bad, places)
        running = engine()
        try:
            return judge(running, files, question, table)
        except QueryFailed as error:
            gone = [file for file in files.files if not file.exists()]
            damaged = {} if gone else _damaged(files, running)
            if not gone and not damaged:
                raise _failed(error, running.name) from error
            bad |= damaged
        finally:
            running.close()
    raise _failed(QueryFailed("files were repeatedly removed while they were read"), running.name)


def _without(found: FoundFiles, bad: Mapping[Path, LeftOutFile], places: Sequence[Path]) -> FoundFiles:
    files = {file: schema for file, schema in found.files.items() if file not in bad}
    if not files:
        raise nothing(places, list(bad.values()))
    return FoundFiles(files, [*found.left_out, *bad.values()])


def _damaged(files: FoundFiles, running: QueryEngine) -> dict[Path, LeftOutFile]:
    """Return the files that Arrow cannot decode; without such files, those that the engine cannot decode."""
    bad = dict(damaged(files.files)) or dict(running.damaged(files.files))
    return {file: LeftOutFile(file, f"its rows are damaged: {why}") for file, why in bad.items()}


def _failed(error: Exception, engine: str) -> ThalwegError:
    return ThalwegError(
        "engine-failed",
        f"{engine} could not read the records: {error}",
        hint="check whether the disk for temporary files is full (df -h $TMPDIR /tmp), or raise --memory",
        exit_code=Exit.FAILED,
    )
