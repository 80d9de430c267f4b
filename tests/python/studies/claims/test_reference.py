"""docs/reference/studies.md describes every key, and its example is a valid study."""

import shutil
import tomllib
from pathlib import Path

import pytest
from pydantic import BaseModel
from thalweg import studies
from thalweg.studies.claims import models

ROOT = Path(__file__).parents[4]
PAGE = (ROOT / "docs/reference/studies.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "table",
    [
        models.StudyPart,
        models.RecordsPart,
        models.Setup,
        models.Quantity,
        models.Claim,
        models.Judge,
        models.PaperFigure,
        models.StudyMeasure,
    ],
)
def test_every_key_is_documented(table: type[BaseModel]) -> None:
    keys = {field.alias or name for name, field in table.model_fields.items()}
    documented = [key for key in keys for text in (f"`{key}`", f"`{key}.", f".{key}`", f"{key} = ") if text in PAGE]
    assert keys == set(documented)


def test_the_example_is_a_study(tmp_path: Path) -> None:
    example = PAGE.partition("```toml\n")[2].partition("```")[0]
    assert tomllib.loads(example)["claims"]
    (tmp_path / "claims.toml").write_text(example, encoding="utf-8")
    shutil.copy(ROOT / "studies/itc18-mixed-workload/mixes.toml", tmp_path)
    assert [claim.id for claim in studies.load(tmp_path).claims.claims] == ["large-cubic-yields"]
