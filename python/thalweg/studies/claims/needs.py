"""Measures that a study uses, so that no others are computed."""

from collections.abc import Iterator, Mapping

from thalweg.analysis import MEASURES
from thalweg.checks import expressions
from thalweg.studies.claims.keys import sides
from thalweg.studies.claims.models import Claim, Claims, PaperFigure, Quantity, StudyMeasure, Tree
from thalweg.studies.claims.study_measures import LEAST, MOST

TYPICAL = "goodput"
"""Measure that selects the repetition of a figure over time: the one with the median value."""


def needed(claims: Claims) -> frozenset[str]:
    """Return the measures that the claims, figures and trees of a study use."""
    measures = {TYPICAL}
    for quantity in _quantities(claims):
        measures |= sources(quantity.measure, claims.measures)
    return frozenset(measures)


def sources(measure: str, study_measures: Mapping[str, StudyMeasure]) -> frozenset[str]:
    """Return the inputs of a measure: itself, or the names in the study's own expression."""
    if measure not in study_measures:
        return frozenset({measure})
    used = (
        name.removeprefix(LEAST).removeprefix(MOST) for name in expressions.names(study_measures[measure].expression)
    )
    return frozenset(name for name in used if name in MEASURES)


def _quantities(claims: Claims) -> Iterator[Quantity]:
    compared: list[Claim | PaperFigure | Tree] = [*claims.claims, *claims.figures]
    for item in (*compared, *([claims.tree] if claims.tree else [])):
        if item.value is not None:
            yield from sides(item.value, item.against, ())
