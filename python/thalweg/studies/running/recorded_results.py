"""Latest results of a study, per engine and set, in found.json beside its claims.toml."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import NotRequired, TypedDict

from thalweg.errors import ThalwegError
from thalweg.report.files import replace
from thalweg.report.text.claim_verdicts import ClaimVerdict
from thalweg.studies.claims.load import CLAIMS, FOUND, Study
from thalweg.studies.judging.judged import Judged
from thalweg.studies.running.reproduce import Reproduced

FORMAT = 1
DIGITS = 6

HELD = "holds"


class RecordedClaim(TypedDict):
    """Result for a claim."""

    verdict: ClaimVerdict
    value: float | None
    low: float | None
    high: float | None
    n: int | None
    points: int
    where: NotRequired[str]
    note: NotRequired[str]


class RecordedSet(TypedDict):
    """An engine's results for the full set or the quick set."""

    result_version: str
    seconds: float | None
    experiments: int
    claims: dict[str, RecordedClaim]


Recorded = dict[str, dict[str, RecordedSet]]
"""Results by engine, then by set."""


@dataclass(frozen=True)
class Broken:
    """A claim that held when it was recorded, but no longer does."""

    engine: str
    claim: str
    now: Judged


def size(*, quick: bool) -> str:
    """Return the name of the set in found.json."""
    return "quick" if quick else "full"


def read(study: Study) -> Recorded:
    """Return the latest results by engine, then by set; empty if nothing was recorded.

    Raises:
        ThalwegError: If the file is damaged.
    """
    file = study.folder / FOUND
    if not file.is_file():
        return {}
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        engines = content["engines"] if content["format"] == FORMAT else None
    except (ValueError, KeyError, TypeError):
        engines = None
    if not isinstance(engines, dict):
        raise ThalwegError(
            "damaged-found",
            f"`{file}` was not written by `--record`",
            place=str(file),
            hint=f"thalweg reproduce {study.name} --record",
        )
    return engines


def recorded(study: Study, reproduced: Reproduced, *, quick: bool) -> RecordedSet | None:
    """Return the latest recorded results of this engine; None if nothing was recorded."""
    return read(study).get(reproduced.engine.name, {}).get(size(quick=quick))


def record(study: Study, reproduced: Reproduced, *, quick: bool) -> Path:
    """Write the current results, keep those of other engines and sets, and return the file.

    If some experiments already existed, an earlier duration of the same number of experiments is kept.

    Raises:
        ThalwegError: If the file is damaged.
        OSError: If the file cannot be written.
    """
    engines, name = read(study), size(quick=quick)
    before = engines.get(reproduced.engine.name, {}).get(name)
    kept = before.get("seconds") if before and before.get("experiments") == reproduced.experiments else None
    seconds = round(reproduced.seconds, 1) if reproduced.is_fresh else kept
    engines.setdefault(reproduced.engine.name, {})[name] = {
        "result_version": reproduced.engine.version,
        "seconds": seconds,
        "experiments": reproduced.experiments,
        "claims": {id: _claim(judged) for id, judged in reproduced.judged.items()},
    }
    file = study.folder / FOUND
    content = {"format": FORMAT, "engines": {engine: engines[engine] for engine in sorted(engines)}}
    replace(file, (json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode())
    return file


def broken(study: Study, reproduced: Reproduced, *, quick: bool) -> list[Broken]:
    """Return the claims that held when they were recorded and do not hold now."""
    before = recorded(study, reproduced, quick=quick)
    claims = before.get("claims", {}) if before else {}
    held_ids = [id for id, claim in claims.items() if claim["verdict"] == HELD]
    removed = Judged("cannot run here", note=f"{CLAIMS} no longer has this claim")
    return [
        Broken(reproduced.engine.name, id, now)
        for id in held_ids
        if (now := reproduced.judged.get(id, removed)).verdict != HELD
    ]


def _claim(judged: Judged) -> RecordedClaim:
    claim = RecordedClaim(
        verdict=judged.verdict,
        value=_rounded(judged.value),
        low=_rounded(judged.low),
        high=_rounded(judged.high),
        n=judged.n,
        points=judged.points,
    )
    if judged.where:
        claim["where"] = judged.where
    if judged.note:
        claim["note"] = judged.note
    return claim


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.{DIGITS}g}")
