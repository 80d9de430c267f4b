"""Shared code of the tests of `advise` on synthetic traffic."""

from pathlib import Path
from typing import Any

import polars as pl
from synthetic_traffic import write
from thalweg.advise import Answer, Question, advise

BY_PREFIX = Question(segments=("retransmits",), replicates=300)


def answer(folder: Path, frame: pl.DataFrame, question: Question = BY_PREFIX, **options: Any) -> Answer:
    write(folder / "some.parquet", frame)
    return advise([folder], question, **options)


def verdicts(result: Answer) -> dict[str, str]:
    return {part.title: part.verdict for part in result.parts}


def codes(result: Answer) -> set[str]:
    return {caution.code for caution in result.cautions}
