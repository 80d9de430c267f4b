"""What a study found last, per engine and size: found.json beside its claims.toml, kept in version control."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from thalweg.errors import ThalwegError
from thalweg.report.files import replace
from thalweg.studies.claims.load import CLAIMS, FOUND, Study
from thalweg.studies.judging.judge import Judged
from thalweg.studies.running.reproduce import Reproduced

FORMAT = 1
DIGITS = 6
"""Significant digits that are kept: what lies below is no finding."""

HELD = "holds"


@dataclass(frozen=True)
class Broken:
    """A claim that held when it was recorded, and does not now."""

    engine: str
    claim: str
    now: Judged


def size(*, quick: bool) -> str:
    """Name what was run, as found.json does."""
    return "quick" if quick else "full"


def read(study: Study) -> dict[str, Any]:
    """Read what was found last: engine, then size, then what; empty if nothing was recorded.

    Raises `ThalwegError` if the file is damaged.
    """
    file = study.folder / FOUND
    if not file.is_file():
        return {}
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        engines = found["engines"] if found["format"] == FORMAT else None
    except (ValueError, KeyError, TypeError):
        engines = None
    if not isinstance(engines, dict):
        raise ThalwegError(
            "damaged-found",
            f"`{file}` is not what `--record` writes",
            place=str(file),
            hint=f"thalweg reproduce {study.name} --record",
        )
    return engines


def recorded(study: Study, reproduced: Reproduced, *, quick: bool) -> Mapping[str, Any] | None:
    """Give what was found last by this engine; None if nothing was."""
    found: Mapping[str, Any] | None = read(study).get(reproduced.engine.name, {}).get(size(quick=quick))
    return found


def record(study: Study, reproduced: Reproduced, *, quick: bool) -> Path:
    """Write what was found now; what others found stays. Gives the file.

    Where some of it was there already, the time that it took is kept from before, if that was as many experiments.
    """
    engines, name = read(study), size(quick=quick)
    before = engines.get(reproduced.engine.name, {}).get(name, {})
    kept = before.get("seconds") if before.get("experiments") == reproduced.experiments else None
    seconds = round(reproduced.seconds, 1) if reproduced.is_fresh else kept
    engines.setdefault(reproduced.engine.name, {})[name] = {
        "result_version": reproduced.engine.version,
        "seconds": seconds,
        "experiments": reproduced.experiments,
        "claims": {id: _entry(judged) for id, judged in reproduced.judged.items()},
    }
    file = study.folder / FOUND
    content = {"format": FORMAT, "engines": {each: engines[each] for each in sorted(engines)}}
    replace(file, (json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode())
    return file


def broken(study: Study, reproduced: Reproduced, *, quick: bool) -> list[Broken]:
    """Give the claims that held when they were recorded and do not hold now."""
    before = recorded(study, reproduced, quick=quick) or {}
    held = [id for id, entry in before.get("claims", {}).items() if entry["verdict"] == HELD]
    gone = Judged("cannot run here", note=f"{CLAIMS} has no such claim any more")
    return [
        Broken(reproduced.engine.name, id, now)
        for id in held
        if (now := reproduced.judged.get(id, gone)).verdict != HELD
    ]


def _entry(judged: Judged) -> dict[str, Any]:
    entry: dict[str, Any] = {"verdict": judged.verdict}
    for key in ("value", "low", "high"):
        value = getattr(judged, key)
        entry[key] = None if value is None else float(f"{value:.{DIGITS}g}")
    entry |= {"n": judged.n, "points": judged.points}
    entry |= {key: text for key in ("where", "note") if (text := getattr(judged, key))}
    return entry
