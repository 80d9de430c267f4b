"""Time series for the page's script: the selection of experiments, the resolution, and the encoding.

Curves are 16-bit numbers, to limit the size of the page: 65535 is the time of the last point, or the maximum of the
quantity, in the experiment.
"""

import base64
from collections.abc import Sequence
from typing import TypedDict

import numpy as np

from thalweg import analysis
from thalweg.analysis import QUANTITIES, Line, Series
from thalweg.analysis.tables.derived import room_bytes
from thalweg.analysis.tables.series import spread
from thalweg.report.content import LabelledRun
from thalweg.report.page_json import PageJson
from thalweg.report.text.numbers import rounded
from thalweg.results.plan_document import ExperimentDocument

BUDGET_BYTES = 1_700_000
POINT_BYTES = 16 / 3
"""Bytes per point: two 16-bit numbers in base64."""
AROUND_BYTES = 90
"""Bytes of JSON around the points of one quantity at one sweep point."""
FINEST = 2000
COARSEST = 60
"""Minimum number of points of a curve; instead of going below it, fewer experiments have time series."""
PER_CONNECTION = 8
TOP = 65535

UNITS: dict[str, tuple[str, float]] = {
    "bit/s": ("Mbit/s", 1e6), "s": ("ms", 1e-3), "B": ("kB", 1e3), "BDP": ("BDP", 1), "packets": ("packets", 1),
    "": ("", 1),
}  # fmt: skip
"""Displayed units, the same at every point for comparison, and their sizes in the quantity's unit."""


class TimelineEntry(TypedDict):
    """The time series of one experiment, in the format of the page's script."""

    repetition: int
    seed: str
    end: float
    """Time of the last point, in seconds."""
    curves: dict[str, PageJson]
    drops: list[float | None]
    """Times of drops, in seconds."""
    room: float | None
    """Capacity of the bottleneck's queue, in kB."""
    connections: list[int]
    """Number of sampled connections, and number of drawn ones."""
    point: int


class Timelines(TypedDict):
    """The time series of a page."""

    entries: list[TimelineEntry]
    first_flow: str
    left_out: int


def timelines(runs: Sequence[LabelledRun], flows: Sequence[str], index: dict[tuple[int, int], int]) -> Timelines:
    """Return the time series of one repetition per point, within the page's size limit."""
    candidates = _candidates(runs, flows)
    curves = max(1, len(flows)) * (len(QUANTITIES) - 1) + 1
    around = AROUND_BYTES * len(QUANTITIES)
    chosen = spread(candidates, max(1, int(BUDGET_BYTES / (POINT_BYTES * curves * COARSEST + around))))
    limit = int(min(FINEST, (BUDGET_BYTES / max(1, len(chosen)) - around) / (POINT_BYTES * curves)))
    entries: list[TimelineEntry] = []
    for number, labelled in enumerate(runs):
        experiments = labelled.run.plan["experiments"]
        planned = {(experiment_["experiment"], experiment_["repetition"]): experiment_ for experiment_ in experiments}
        pairs = [(experiment, repetition) for run_number, experiment, repetition in chosen if run_number == number]
        for series in analysis.series(labelled.run, pairs, limit, max(1, limit // PER_CONNECTION)):
            entry = planned[series.experiment, series.repetition]
            entries.append(_entry(flows, series, entry, index[number, series.experiment]))
    return {
        "entries": entries,
        "first_flow": flows[0] if flows else "",
        "left_out": len(candidates) - len(chosen),
    }


def present(entries: Sequence[TimelineEntry]) -> list[PageJson]:
    """Return the quantities that any of the experiments has."""
    names = [name for name in QUANTITIES if any(name in entry["curves"] for entry in entries)]
    return [{"name": name, "title": QUANTITIES[name].title, "axis": _axis(name)} for name in names]


def _axis(name: str) -> str:
    short = {"inflight_bdp": "inflight / BDP", "gain": "pacing gain"}
    words = {"rate": "rate", "pacing_rate": "pacing rate", "rtt": "RTT", "bandwidth": "bandwidth"}
    words |= {"queue": "backlog", "queue_up": "backlog"}
    unit = UNITS[QUANTITIES[name].unit][0]
    return short.get(name) or f"{words.get(name, name)} ({unit})"


def _candidates(runs: Sequence[LabelledRun], flows: Sequence[str]) -> list[tuple[int, int, int]]:
    """Return run and experiment of each point, and its repetition with the median goodput of the first flow."""
    triples = []
    for number, labelled in enumerate(runs):
        typical = analysis.typical_repetitions(labelled.repetitions, flows[0]) if flows else {}
        triples += [(number, experiment, typical[experiment]) for experiment in sorted(typical)]
    return triples


def _entry(flows: Sequence[str], series: Series, planned: ExperimentDocument, point: int) -> TimelineEntry:
    names = {*flows, "queue", "queue_up"}
    kept = {name: [line for line in curves if line.name in names] for name, curves in series.lines.items()}
    lines = {name: curves for name, curves in kept.items() if curves}
    end = max((line.t_s[-1] for curves in lines.values() for line in curves), default=0.0)
    return {
        "repetition": series.repetition,
        "seed": str(planned["seed"]),
        "end": end,
        "curves": {name: _packed(flows, name, curves, end) for name, curves in lines.items()},
        "drops": [rounded(moment, 6) for moment in series.drops_s],
        "room": rounded(room_bytes(planned["forward"]["buffer"]) / 1e3),
        "connections": [series.connections, series.connections_drawn],
        "point": point,
    }


def _packed(flows: Sequence[str], name: str, lines: list[Line], end: float) -> PageJson:
    """Encode the lines of a quantity: flow and number of points of each, then all their times and values."""
    numbers = {flow: number for number, flow in enumerate(flows)}
    size = UNITS[QUANTITIES[name].unit][1]
    top = max((max(line.value) for line in lines), default=0.0) / size
    t = np.concatenate([line.t_s for line in lines]) / (end or 1.0)
    v = np.concatenate([line.value for line in lines]) / size / (top or 1.0)
    both = np.clip(np.round(np.concatenate([t, v]) * TOP), 0, TOP).astype("<u2")
    return {
        "flow": [numbers.get(line.name, -1) for line in lines],
        "points": [len(line.t_s) for line in lines],
        "top": rounded(top, 7),
        "packed": base64.b64encode(both.tobytes()).decode(),
    }
