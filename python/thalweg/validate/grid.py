"""The scenarios on which two engines are compared.

Each bundled scenario varies one or a few keys around a common centre, because the full product would take too long on
real-time engines.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path

from thalweg import scenario
from thalweg.errors import ThalwegError
from thalweg.scenario import Document, rows
from thalweg.scenario.document import READY_MADE
from thalweg.scenario.sweep import Assignment
from thalweg.scenario.text import quantities
from thalweg.scenario.text.words import did_you_mean
from thalweg.scenario.values import table

FOLDER = READY_MADE / "validate"

QUICK_DURATION = "10s"

FEW = 2
"""Maximum number of values of a swept key in a quick comparison, which keeps the first and the last."""


@dataclass(frozen=True)
class Grid:
    """Checked scenarios, with the settings for the comparison."""

    documents: list[Document]
    left_out: int = 0
    """Number of sweep points that a quick comparison omits."""

    @property
    def cells(self) -> int:
        """Number of sweep points of all scenarios."""
        return sum(_points(document) for document in self.documents)


def ready_made() -> dict[str, Path]:
    """Return the bundled scenarios by name."""
    return {file.stem: file for file in sorted(FOLDER.glob("*.toml"))}


def load_grid(names: Sequence[str], *, quick: bool = False, repetitions: int | None = None) -> Grid:
    """Load scenarios by file or by the names of bundled ones; an empty list selects all bundled ones.

    `quick` keeps the ends of each swept list, and runs one repetition of at most `QUICK_DURATION`; `repetitions` takes
    precedence.

    Raises:
        ThalwegError: If a scenario does not exist or has mistakes, or two have the same name.
    """
    files = [_file(name) for name in dict.fromkeys(names)] or list(ready_made().values())
    full_documents = [scenario.load(file, _settings(file, quick, repetitions)) for file in files]
    documents = [_thinned(document) for document in full_documents] if quick else full_documents
    _check_names(documents)
    return Grid(documents, sum(_points(document) for document in full_documents) - Grid(documents).cells)


def _file(name: str) -> Path:
    scenarios = ready_made()
    if name in scenarios:
        return scenarios[name]
    if name.endswith(".toml") or Path(name).exists():
        return Path(name)
    raise ThalwegError(
        "unknown-grid",
        f"there is no grid `{name}`",
        place="--grid",
        found=name,
        expected=f"a scenario file, or one of {', '.join(scenarios)}",
        hint=did_you_mean(name, list(scenarios)),
    )


def _settings(file: Path, quick: bool, repetitions: int | None) -> Assignment:
    settings: Assignment = {}
    if quick:
        settings["repetitions"] = 1
        duration = scenario.load(file).raw.get("duration")
        if not isinstance(duration, str) or quantities.time(duration) > quantities.time(QUICK_DURATION):
            settings["duration"] = QUICK_DURATION
    if repetitions is not None:
        settings["repetitions"] = repetitions
    return settings


def _thinned(document: Document) -> Document:
    swept = table(document.raw, "sweep")
    lists = {key: values for key, values in swept.items() if isinstance(values, list) and key != rows.KEY}
    ends = {key: values if len(values) <= FEW else [values[0], values[-1]] for key, values in lists.items()}
    sweep = {**swept, **ends}
    return replace(document, raw=document.raw | {"sweep": sweep}) if sweep else document


def _points(document: Document) -> int:
    return prod(len(axis.choices) for axis in document.axes)


def _check_names(documents: Sequence[Document]) -> None:
    """Reject two scenarios with the same name, because their cells could not be distinguished."""
    files: dict[str, Path] = {}
    for document in documents:
        name = str(document.raw["name"])
        if name in files:
            raise ThalwegError(
                "same-name",
                f"two scenarios of the grid are named `{name}`: `{files[name]}` and `{document.file}`",
                place="--grid",
                hint="rename one of them",
            )
        files[name] = document.file
