"""Measures defined by a study, computed from others and from their best values among comparable points."""

import math

import polars as pl
import pytest
from thalweg.studies.claims.models import StudyMeasure
from thalweg.studies.claims.study_measures import compute

COST = StudyMeasure(
    about="How far from the best of both.",
    expression="(rtt_min - least_rtt_min) / least_rtt_min + (most_goodput - goodput) / most_goodput",
    among=["flow.arm.cc"],
)

POINTS = pl.DataFrame(
    [
        {"experiment": number, "path.loss": loss, "flow.arm.cc": cc, "loss": loss}
        for number, (loss, cc) in enumerate((loss, cc) for loss in (0.0, 0.1) for cc in ("cubic", "bbr"))
    ],
    schema_overrides={"experiment": pl.UInt64},
)


def values(rows: list[tuple[int, int, float | None, float | None]]) -> pl.DataFrame:
    tidy = [
        (experiment, repetition, measure, value)
        for experiment, repetition, rtt, goodput in rows
        for measure, value in (("rtt_min", rtt), ("goodput", goodput))
    ]
    schema = {"experiment": pl.UInt64, "repetition": pl.UInt64, "measure": pl.String, "value": pl.Float64}
    return pl.DataFrame(tidy, schema=schema, orient="row")


def test_the_best_is_taken_over_otherwise_equal_points_per_repetition() -> None:
    computed = compute(
        COST,
        values([(0, 0, 2.0, 10.0), (1, 0, 1.0, 5.0), (2, 0, 4.0, 1.0), (3, 0, 4.0, 2.0), (0, 1, 3.0, 7.0)]),
        POINTS,
    )
    costs = {(row[0], row[1]): row[2] for row in computed.iter_rows()}
    # Without loss bbr has the smaller RTT and cubic the larger goodput; at 10 % only the goodput differs; in the second
    # repetition only cubic has values.
    assert costs == {(0, 0): 1.0, (1, 0): 0.5, (2, 0): 0.5, (3, 0): 0.0, (0, 1): 0.0}


def test_points_that_differ_in_a_key_of_the_whole_scenario_are_not_comparable() -> None:
    points = POINTS.rename({"path.loss": "duration"})
    computed = compute(COST, values([(0, 0, 2.0, 10.0), (2, 0, 1.0, 20.0)]), points)
    assert dict(computed.select("experiment", "value").iter_rows()) == {0: 0.0, 2: 0.0}


def test_a_missing_value_leaves_the_measure_empty() -> None:
    computed = compute(COST, values([(0, 0, None, 10.0), (1, 0, 1.0, 5.0)]), POINTS)
    assert dict(computed.select("experiment", "value").iter_rows()) == {0: None, 1: 0.5}


@pytest.mark.parametrize("expression", ["goodput / 0", "1e308 * 1e308 * goodput"])
def test_nan_is_not_a_value(expression: str) -> None:
    computed = compute(COST.model_copy(update={"expression": expression}), values([(0, 0, 1.0, 1.0)]), POINTS)
    assert [value for value in computed["value"] if value is not None and math.isfinite(value)] == []
