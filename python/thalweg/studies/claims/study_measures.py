"""Measures defined by a study: arithmetic over measures of a flow, and over their extremes among comparable points.

bpftune's cost is an example: the distance of an algorithm from the minimum round-trip time and the maximum delivery
rate that any algorithm reached on the same path.
"""

from collections.abc import Mapping

import polars as pl

from thalweg.analysis import MEASURES
from thalweg.checks import expressions
from thalweg.studies.claims.keys import DERIVED
from thalweg.studies.claims.models import StudyMeasure

LEAST, MOST = "least_", "most_"
"""Prefixes of a measure: its minimum and maximum among points that differ only in the keys `among`."""

NAMES = tuple(
    prefix + name for prefix in ("", LEAST, MOST) for name, measure in MEASURES.items() if measure.of == "flow"
)


def compute(measure: StudyMeasure, values: pl.DataFrame, points: pl.DataFrame) -> pl.DataFrame:
    """Compute a measure from the values of others: experiment, repetition, value.

    `values` has a row per experiment, repetition and measure of one flow. Extremes are taken within one repetition, so
    that repetitions remain independent.
    """
    known_names = [name for name in NAMES if name in MEASURES]
    wide = values.pivot(on="measure", index=["experiment", "repetition"], values="value")
    wide = wide.with_columns(pl.lit(None, pl.Float64).alias(name) for name in known_names if name not in wide.columns)
    shared_keys = [key for key in _swept(points) if key not in measure.among]
    wide = wide.join(points.select("experiment", *shared_keys), on="experiment", how="inner", maintain_order="left")
    best = (
        extreme
        for name in known_names
        for extreme in (
            pl.col(name).min().over("repetition", *shared_keys).alias(LEAST + name),
            pl.col(name).max().over("repetition", *shared_keys).alias(MOST + name),
        )
    )
    rows = wide.with_columns(best)
    results = [expressions.value(measure.expression, _numbers(row)) for row in rows.iter_rows(named=True)]
    return rows.select("experiment", "repetition").with_columns(pl.Series("value", results, dtype=pl.Float64))


def _swept(points: pl.DataFrame) -> list[str]:
    return [name for name in points.columns if name != "experiment" and name not in DERIVED]


def _numbers(row: Mapping[str, float | None]) -> dict[str, float | None]:
    return {name: row[name] for name in NAMES}
