"""Measurements of a part's run."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from thalweg import analysis
from thalweg.results import Run
from thalweg.scenario.document import TomlValue, Value
from thalweg.scenario.text import quantities
from thalweg.studies.claims.keys import is_one, number, range_of, values_of
from thalweg.studies.claims.models import Quantity, StudyMeasure
from thalweg.studies.claims.needs import sources
from thalweg.studies.claims.planned_part import PlannedPart
from thalweg.studies.claims.study_measures import compute

WindowTexts = tuple[str, str] | None

ROUNDING = 1e-4
"""Relative tolerance of numeric keys, because derived ones are quotients: 1 BDP may be computed as 0.99999."""

AT = ["experiment", "repetition"]


class NotRun(Exception):
    """No point of the run has the quantity; the message gives the reason."""


class NotQuick(NotRun):
    """The quantity has points in the full set, but not in the quick set."""


@dataclass(frozen=True)
class Picked:
    """A quantity at the points that satisfy its conditions."""

    points: pl.DataFrame
    """One row per point: experiment, the keys of the sweep, the derived keys."""
    values: pl.DataFrame
    """One row per repetition with a value: experiment, repetition, value."""
    open_keys: Sequence[str]
    """Sweep keys that the conditions do not fix."""
    part: str


@dataclass
class PartData:
    """Measurements of a part on one engine."""

    planned: PlannedPart
    run: Run | None
    """The run; None if no experiment is complete, or the part is of records."""
    measures: Mapping[str, StudyMeasure] = field(default_factory=dict)
    needed: frozenset[str] | None = None
    """Measures that are used; None: all."""
    _values: dict[WindowTexts, pl.DataFrame] = field(default_factory=dict)
    _points: pl.DataFrame | None = None

    @classmethod
    def of_records(cls, planned_part: PlannedPart, points: pl.DataFrame, values: pl.DataFrame) -> "PartData":
        """Create the data from judged synthetic records: points (experiment, keys) and values (experiment, repetition,
        flow, measure, value).
        """
        return cls(planned_part, None, _values={None: values}, _points=points)

    @property
    def is_empty(self) -> bool:
        """Whether no experiment is complete."""
        return self.run is None and self._points is None

    @property
    def sweep_keys(self) -> list[str]:
        """Sweep keys of the scenario, including those with a single value here, or keys of records."""
        if self.planned.records is not None:
            return self.planned.records.by
        return [*(self.run.sweep_keys if self.run else ()), *self.planned.fixed]

    def points(self) -> pl.DataFrame:
        """Return one row per point: experiment, the keys of the sweep, the derived keys."""
        if self._points is None:
            assert self.run
            fixed = [pl.lit(value).alias(key) for key, value in self.planned.fixed.items()]
            points = self.run.points().with_columns(fixed)
            derived = analysis.derived(self.run)
            self._points = points.join(derived, on="experiment", how="left", maintain_order="left")
        return self._points

    def column(self, key: str) -> list[Value | None]:
        """Return the values of a key at all points; empty if nothing was run."""
        return self.points()[key].to_list() if not self.is_empty and key in self.points().columns else []

    def values(self, window: WindowTexts = None) -> pl.DataFrame:
        """Return the value of every needed measure in every repetition, optionally within a window."""
        if window not in self._values:
            assert self.run
            span = (_seconds(window[0]), _seconds(window[1])) if window else None
            self._values[window] = analysis.repetitions(self.run, window=span, measures=self.needed)
        return self._values[window]

    def pick(self, quantity: Quantity) -> Picked:
        """Select the points and values of a quantity.

        Raises:
            NotRun: If the part was not run, no experiment is complete, or no point satisfies its conditions.
            NotQuick: If only the full set has such points.
        """
        if self.planned.why_not:
            raise NotRun(self.planned.why_not)
        if self.is_empty:
            raise NotRun("no experiment is complete")
        points = chosen(self.points(), quantity.where)
        if not points.height:
            raise self._no_point(quantity.where)
        is_flow = pl.col("flow").is_null() if quantity.flow is None else pl.col("flow") == quantity.flow
        values = self.values(quantity.window).filter(is_flow)
        if (study_measure := self.measures.get(quantity.measure)) is not None:
            values = compute(study_measure, values, self.points())
        else:
            values = values.filter(pl.col("measure") == quantity.measure)
        values = (
            values.drop_nulls("value")
            .join(points.select("experiment"), on="experiment", how="semi")
            .select(*AT, "value")
        )
        open_keys = [key for key in self.sweep_keys if key not in quantity.where or not is_one(quantity.where[key])]
        return Picked(points, values, open_keys, self.planned.part)

    def not_recorded(self, measure: str) -> str | None:
        """Return an input of a measure that the engine does not record; None without one."""
        if self.run is None:
            return None
        lacking = (
            source for source in sorted(sources(measure, self.measures)) if not analysis.is_recorded(self.run, source)
        )
        return next(lacking, None)

    def _no_point(self, conditions: Mapping[str, TomlValue]) -> NotRun:
        """Return an error that states why such points are excluded, or which condition no point satisfies."""
        for experiment, point in self.planned.left_out.items():
            frame = pl.DataFrame([{"experiment": experiment, **point, **self.planned.fixed}])
            if chosen(frame, {key: condition for key, condition in conditions.items() if key in frame.columns}).height:
                return NotRun(self.planned.reasons[experiment])
        full_part = self.planned.whole() if self.planned.whole else None
        is_elsewhere = (
            full_part is not None and full_part.plan is not None and chosen(full_part.points, conditions).height > 0
        )
        kind, scope = (NotQuick, "in the quick set") if is_elsewhere else (NotRun, "here")
        for key, condition in conditions.items():
            if not chosen(self.points(), {key: condition}).height:
                swept = ", ".join(
                    str(condition) for condition in self.points()[key].unique(maintain_order=True).to_list()[:8]
                )
                return kind(f"`{self.planned.part}` is not run at {key} = {_text(condition)} {scope}, only at {swept}")
        return kind(f"`{self.planned.part}` is not run at such a point {scope}")


def chosen(points: pl.DataFrame, conditions: Mapping[str, TomlValue]) -> pl.DataFrame:
    """Return the points that satisfy all conditions."""
    for key, condition in conditions.items():
        points = points.filter(_meets(points[key], condition))
    return points


def _meets(column: pl.Series, condition: TomlValue) -> pl.Series:
    if (limits := range_of(condition)) is not None:
        numbers = pl.Series([number(value) for value in column.to_list()], dtype=pl.Float64)
        low, high = limits.at_least, limits.at_most
        above = numbers > -math.inf if low is None else numbers >= low - ROUNDING * abs(low)
        below = numbers < math.inf if high is None else numbers <= high + ROUNDING * abs(high)
        return above & below
    values = values_of(condition)
    if not column.dtype.is_numeric():
        return column.is_in([value for value in values if isinstance(value, bool) == (column.dtype == pl.Boolean)])
    close = pl.Series([False] * len(column), dtype=pl.Boolean)  # the type is explicit because there may be no rows
    for value in values:
        if isinstance(value, int | float):
            close |= ((column - value).abs() <= ROUNDING * abs(value)).fill_null(value=False)
    return close


def _seconds(text: str) -> float:
    return quantities.time(text) / 1e9


def _text(condition: TomlValue) -> str:
    if isinstance(condition, dict):
        return " and ".join(f"{key.replace('_', ' ')} {value:g}" for key, value in condition.items())
    return " or ".join(map(str, values_of(condition)))
