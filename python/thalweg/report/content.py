"""Content of a report, from its runs: labels, axes, flows, and measures."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path

import polars as pl

from thalweg import analysis
from thalweg.analysis import MEASURES, Axis, Status
from thalweg.analysis.tables.directions import Direction, of_flow
from thalweg.analysis.tables.series import spread
from thalweg.report.text.labels import point_text
from thalweg.report.text.numbers import Scale, scale_for
from thalweg.results import Run, open_run
from thalweg.results.plan_document import SweptValue

MAX_FLOWS = 40

NEGLIGIBLE = 0.01
"""Maximum fraction of incomplete transfers for a meaningful mean; the last transfers of a flow that lasts until the end
are incomplete.
"""


@dataclass(frozen=True)
class Point:
    """A point of the sweep of one run."""

    run: int
    experiment: int
    values: dict[str, SweptValue | None]


@dataclass(frozen=True)
class Cell:
    """A measure of a flow (or of the path) at a point."""

    n: int
    mean: float
    low: float | None
    high: float | None
    median: float


@dataclass(frozen=True)
class LabelledRun:
    """A run with its label in the report and its measurements."""

    label: str
    run: Run
    status: Status
    repetitions: pl.DataFrame
    """One row per repetition, flow and measure."""
    summary: pl.DataFrame
    """One row per point, flow and measure."""


class Sweep:
    """The points of all runs, the varying keys, and the flows."""

    def __init__(self, runs: Sequence[Run], labels: Sequence[str]) -> None:
        self._runs = runs
        self.labels = labels

    @property
    def is_of_several_runs(self) -> bool:
        """Whether there are several runs."""
        return len(self.labels) > 1

    @property
    def runs_title(self) -> str:
        """Title of the labels: what distinguishes the runs."""
        return "engine" if list(self.labels) == [run.engine for run in self._runs] else "run"

    @cached_property
    def axes(self) -> list[Axis]:
        """Sweep keys with more than one value, in the order of the scenario."""
        keys = list(dict.fromkeys(key for run in self._runs for key in run.sweep_keys))
        points = pl.concat([run.points() for run in self._runs], how="diagonal_relaxed")
        return [
            Axis(axis.key, [*axis.values, None], axis.is_ordered) if points[axis.key].null_count() else axis  # type: ignore[list-item]
            for axis in analysis.axes(points, keys)
        ]

    @cached_property
    def points(self) -> list[Point]:
        """Points of the sweep, run by run."""
        return [
            Point(number, int(row.pop("experiment")), row)
            for number, run in enumerate(self._runs)
            for row in run.points().iter_rows(named=True)
        ]

    @cached_property
    def _points_by_run(self) -> list[list[Point]]:
        return [[point for point in self.points if point.run == number] for number in range(len(self._runs))]

    @cached_property
    def has_same_points_in_runs(self) -> bool:
        """Whether there are several runs, and all have the same points."""
        values = [[point.values for point in points] for points in self._points_by_run]
        return self.is_of_several_runs and all(value == values[0] for value in values)

    @cached_property
    def points_side_by_side(self) -> list[Point]:
        """Points in the order of the sweep, each in all runs if these have the same points; otherwise run by run."""
        if not self.has_same_points_in_runs:
            return self.points
        return [point for same_points in zip(*self._points_by_run, strict=True) for point in same_points]

    @cached_property
    def all_flows(self) -> list[str]:
        """Names of the flows, in the order of the scenario."""
        return list(dict.fromkeys(name for run in self._runs for name in analysis.flow_names(run)))

    @cached_property
    def directions(self) -> list[Direction]:
        """Directions in which data is sent; if none is planned, down."""
        experiments = [entry for run in self._runs for entry in run.plan["experiments"]]
        flows = {of_flow(flow) for entry in experiments for flow in entry["flows"]}
        background = {of_flow(flow) for entry in experiments for flow in entry["background"]}
        return sorted(flows | background) or ["down"]

    @cached_property
    def flows(self) -> list[str]:
        """Names of the flows that are shown: all, or an evenly spaced selection."""
        return spread(self.all_flows, MAX_FLOWS)

    @cached_property
    def ccs(self) -> dict[tuple[int, int, str], str]:
        """Congestion control by run, experiment and flow, as planned."""
        return {
            (number, entry["experiment"], flow["name"]): str(flow["cc"])
            for number, run in enumerate(self._runs)
            for entry in run.plan["experiments"]
            for flow in entry["flows"]
        }

    @cached_property
    def ccs_of_flow(self) -> dict[str, set[str]]:
        """Congestion controls of each flow, over all points and runs."""
        ccs: dict[str, set[str]] = {}
        for (_, _, flow), cc in self.ccs.items():
            ccs.setdefault(flow, set()).add(cc)
        return ccs

    @cached_property
    def _copies(self) -> dict[tuple[int, int], dict[str, int]]:
        return {
            (number, entry["experiment"]): {flow["name"]: flow.get("count", 1) for flow in entry["flows"]}
            for number, run in enumerate(self._runs)
            for entry in run.plan["experiments"]
        }

    def even_share(self, point: Point, flow: str, other: str) -> float:
        """Return the fair share of a flow relative to another one, by their numbers of copies."""
        copies = self._copies[point.run, point.experiment]
        return copies.get(flow, 1) / (copies.get(flow, 1) + copies.get(other, 1))

    def text(self, point: Point) -> str:
        """Return the label of a point: the values of the varying keys, and the run if there are several."""
        setting_text = point_text(point.values, self.axes)
        if not self.is_of_several_runs:
            return setting_text
        return f"{self.labels[point.run]}: {setting_text}" if setting_text else self.labels[point.run]


class Measurements:
    """The summaries of a report's runs, by point, flow and measure."""

    def __init__(self, summaries: Sequence[pl.DataFrame]) -> None:
        self._summaries = summaries

    @cached_property
    def cells(self) -> dict[tuple[int, int, str | None, str], Cell]:
        """Values by run, experiment, flow (None: the path) and measure."""
        return {
            (number, row["experiment"], row["flow"], row["measure"]): Cell(
                row["n"], row["mean"], row["low"], row["high"], row["median"]
            )
            for number, summary in enumerate(self._summaries)
            for row in summary.iter_rows(named=True)
        }

    @cached_property
    def scales(self) -> dict[str, Scale]:
        """Unit and number of digits of each measure."""
        by_measure: dict[str, list[Cell]] = {name: [] for name in MEASURES}
        for (_, _, _, name), cell in self.cells.items():
            if name in by_measure:
                by_measure[name].append(cell)
        scales = {}
        for name, cells in by_measure.items():
            halves = [(cell.high - cell.low) / 2 for cell in cells if cell.high is not None and cell.low is not None]
            scales[name] = scale_for(MEASURES[name].unit, [cell.mean for cell in cells], halves)
        return scales

    @cached_property
    def sized_flows(self) -> set[str]:
        """Flows with at least one completed transfer."""
        return {flow for _, _, flow, measure in self.cells if flow and measure == "completion_time"}

    def cell(self, point: Point, measure: str, flow: str | None = None) -> Cell | None:
        """Return a measure at a point."""
        return self.cells.get((point.run, point.experiment, flow, measure))

    def has(self, measure: str) -> bool:
        """Return whether any point has the measure."""
        return measure in self._measured

    @cached_property
    def _measured(self) -> set[str]:
        return {measure for _, _, _, measure in self.cells}

    def is_cut_off(self, point: Point, flow: str) -> bool:
        """Return whether more than `NEGLIGIBLE` of a flow's transfers were not completed; False if it is not sized."""
        started, completed = self.cell(point, "transfers", flow), self.cell(point, "completed", flow)
        if flow not in self.sized_flows or started is None or completed is None:
            return False
        return completed.mean < (1 - NEGLIGIBLE) * started.mean


class Content:
    """The runs of a report, and their common data."""

    def __init__(self, directories: Sequence[Path]) -> None:
        runs = [open_run(directory) for directory in directories]
        labels = _labels(runs)
        statuses = [analysis.status(run) for run in runs]
        repetitions = [analysis.repetitions(run) for run in runs]
        summaries = [analysis.summary(run, values=values) for run, values in zip(runs, repetitions, strict=True)]
        self.runs = [
            LabelledRun(*fields) for fields in zip(labels, runs, statuses, repetitions, summaries, strict=True)
        ]
        self.sweep = Sweep(runs, labels)
        self.measurements = Measurements(summaries)


def _overrides(run: Run) -> list[str]:
    """Return the keys and values that the run's command sets, such as `path.rtt=120ms`."""
    return [
        word.removeprefix("--set=")
        for before, word in pairwise(run.command)
        if before == "--set" or word.startswith("--set=")
    ]


def _has_default_path(run: Run) -> bool:
    return re.fullmatch(f"{re.escape(run.name)}-{run.engine}-[0-9a-f]+", run.path.resolve().name) is not None


def _labels(runs: Sequence[Run]) -> list[str]:
    """Return the labels of the runs: the first of the engine, the changed keys and the directory that is unique;
    otherwise the directories are numbered.

    Changed keys do not replace the name of a directory that the user has chosen.
    """
    engines = [run.engine for run in runs]
    if len(set(engines)) == len(engines):
        return engines
    overrides = [", ".join(_overrides(run)) or "unchanged" for run in runs]
    if len(set(overrides)) == len(runs) and len({run.name for run in runs}) == 1 and all(map(_has_default_path, runs)):
        return overrides
    names = [run.path.resolve().name for run in runs]
    return names if len(set(names)) == len(names) else [f"{name} ({i + 1})" for i, name in enumerate(names)]
