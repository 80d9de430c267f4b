"""Which measures a study looks at, so that nothing else is computed."""

from collections.abc import Iterator, Mapping

from thalweg.analysis import MEASURES
from thalweg.checks import expressions
from thalweg.studies.claims.keys import sides
from thalweg.studies.claims.models import Claim, Claims, PaperFigure, Quantity, StudyMeasure, Tree
from thalweg.studies.claims.study_measures import LEAST, MOST

TYPICAL = "goodput"
"""A figure over time shows the repetition whose goodput is the median."""


def needed(claims: Claims) -> frozenset[str]:
    """Name the measures that claims, figures and the tree of a study are made of."""
    wanted = {TYPICAL}
    for quantity in _quantities(claims):
        wanted |= sources(quantity.measure, claims.measures)
    return frozenset(wanted)


def sources(measure: str, own: Mapping[str, StudyMeasure]) -> frozenset[str]:
    """Name what a measure is computed from: itself, or what the study's own expression names."""
    if measure not in own:
        return frozenset({measure})
    named = (name.removeprefix(LEAST).removeprefix(MOST) for name in expressions.names(own[measure].expression))
    return frozenset(name for name in named if name in MEASURES)


def _quantities(claims: Claims) -> Iterator[Quantity]:
    compared: list[Claim | PaperFigure | Tree] = [*claims.claims, *claims.figures]
    for each in (*compared, *([claims.tree] if claims.tree else [])):
        if each.value is not None:
            yield from sides(each.value, each.against, ())
