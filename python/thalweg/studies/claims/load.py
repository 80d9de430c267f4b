"""Lists and loads studies."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib.resources import files
from pathlib import Path

from pydantic import ValidationError

from thalweg import scenario
from thalweg.errors import ThalwegError, ThalwegErrors
from thalweg.scenario import Document
from thalweg.scenario.document import read
from thalweg.scenario.mistakes import Mistakes, by_line
from thalweg.scenario.model_mistakes import Described, translate
from thalweg.scenario.positions import dotted
from thalweg.scenario.text import words
from thalweg.studies.claims import check_claims
from thalweg.studies.claims.models import Claims

READY_MADE = Path(str(files("thalweg") / "data" / "studies")).resolve()

CLAIMS = "claims.toml"
STORY = "README.md"
FOUND = "found.json"

CALLED = {
    "PaperFigure": "Figure",
    "PolicyRange": "Range",
    "PolicyRule": "Rule",
    "RecordsPart": "Records",
    "StudyMeasure": "Made",
    "StudyPart": "Part",
}
"""Names of tables in errors, if they differ from their class."""

CHECKED = Described(Claims, CLAIMS, CALLED)

ALL = "all"


@dataclass(frozen=True)
class Study:
    """A checked study."""

    name: str
    folder: Path
    claims: Claims
    documents: Mapping[str, Document] = field(default_factory=dict)
    """Scenario as written of each part that has one."""

    @cached_property
    def story(self) -> str:
        """The text of the README in Markdown; empty without a README."""
        file = self.folder / STORY
        return file.read_text(encoding="utf-8") if file.is_file() else ""


def ready_made() -> dict[str, Path]:
    """Return the folders of the studies that come with thalweg, by name."""
    return {file.parent.name: file.parent for file in sorted(READY_MADE.glob(f"*/{CLAIMS}"))}


def find(name: str) -> Path:
    """Return the folder of a study, given by the name of a bundled one or by its folder.

    Raises:
        ThalwegError: If it does not exist.
    """
    studies = ready_made()
    if name in studies:
        return studies[name]
    folder = Path(name)
    if (folder / CLAIMS).is_file():
        return folder
    if folder.is_dir():
        raise ThalwegError(
            "no-study",
            f"`{name}` is not a study: it has no {CLAIMS}",
            place=name,
            hint="docs/reference/studies.md describes the parts of a study",
        )
    raise ThalwegError(
        "unknown-study",
        f"there is no study `{name}`",
        place=name,
        found=name,
        expected=f"a folder with {CLAIMS}, or one of {', '.join([*studies, ALL])}",
        hint=words.did_you_mean(name, [*studies, ALL]) or "thalweg studies",
    )


def load(folder: Path) -> Study:
    """Read and check a study.

    Raises:
        ThalwegErrors: If claims.toml or a scenario has mistakes.
        ThalwegError: If a file cannot be read or is not TOML.
    """
    document = read(folder / CLAIMS)
    try:
        claims = Claims.model_validate(document.raw)
    except ValidationError as error:
        raise ThalwegErrors(_errors(translate(error, CHECKED, document.raw), document)) from None
    documents = {
        name: scenario.load(folder / part.scenario)
        for name, part in claims.parts.items()
        if part.scenario is not None and part.records is None
    }
    mistakes = Mistakes()
    check_claims.check(claims, documents, mistakes)
    if mistakes.entries:
        raise ThalwegErrors(_errors(mistakes, document))
    return Study(folder.resolve().name, folder, claims, documents)


def _errors(mistakes: Mistakes, document: Document) -> list[ThalwegError]:
    return by_line(
        mistake.error(dotted(mistake.key_path), document.source(mistake.key_path)) for mistake in mistakes.entries
    )
