"""Findings: where each measure is best and worst, or where runs with the same points differ most."""

from collections.abc import Sequence
from dataclasses import dataclass

from thalweg.analysis import MEASURES, Estimate, overlap
from thalweg.report.content import Cell, Measurements, Point, Sweep
from thalweg.report.text.numbers import Scale

PLACED_LAST = {"completion_time", "retransmit_ratio", "queueing_delay", "queueing_delay_up"}
"""Measures of findings whose smaller values are better."""


MAX_FLOWS = 8


@dataclass(frozen=True)
class Extreme:
    """A value and the point where it was measured."""

    text: str
    where: str


@dataclass(frozen=True)
class Finding:
    """Result of one measure of one flow (or of the path)."""

    subject: str
    best: Extreme
    worst: Extreme | None
    remark: str


def findings(sweep: Sweep, measurements: Measurements) -> list[Finding]:
    """Return the findings on the main measures. A flow has one on its completion time if it completes several
    transfers, otherwise on its goodput.
    """
    chosen: list[tuple[str, str | None]] = []
    flows = sweep.flows[:MAX_FLOWS]
    for flow in flows:
        chosen.append(("completion_time" if _completes_several(measurements, flow) else "goodput", flow))
    chosen += [("retransmit_ratio", flow) for flow in flows]
    if sweep.flows and measurements.has("utilisation_while_active"):
        chosen.append(("utilisation_while_active", sweep.flows[0]))
    chosen += [(measure, None) for measure in ("queueing_delay", "queueing_delay_up") if measurements.has(measure)]
    return [finding for measure, flow in chosen if (finding := _finding(sweep, measurements, measure, flow))]


def _completes_several(measurements: Measurements, flow: str) -> bool:
    max_completed = max(
        (cell.mean for key, cell in measurements.cells.items() if key[2:] == (flow, "completed")), default=0.0
    )
    return max_completed > 1


def subject(measure: str, flow: str | None) -> str:
    """Return the name of a measure, with its flow if there is one.

    >>> subject("goodput", "large"), subject("utilisation_while_active", "large"), subject("queueing_delay", None)
    ('Goodput of large', 'Utilisation while large is active', 'Queueing delay')
    """
    if measure == "utilisation_while_active":
        return f"Utilisation while {flow} is active"
    title = MEASURES[measure].title
    return f"{title} of {flow}" if flow else title


def _finding(sweep: Sweep, measurements: Measurements, measure: str, flow: str | None) -> Finding | None:
    cells = [(point, cell) for point in sweep.points if (cell := measurements.cell(point, measure, flow))]
    if not cells:
        return None
    if sweep.has_same_points_in_runs:
        cells = _most_different_runs(cells) or cells
    ranked = sorted(cells, key=lambda pair: pair[1].mean, reverse=measure not in PLACED_LAST)
    best, worst = ranked[0], ranked[-1]

    def extreme(point: Point, cell: Cell) -> Extreme:
        return Extreme(_with_interval(measurements.scales[measure], cell), sweep.text(point))

    if len(ranked) == 1:
        return Finding(subject(measure, flow), extreme(*best), None, _remark(best[1], None))
    return Finding(
        subject(measure, flow),
        extreme(*best),
        extreme(*worst),
        _remark(best[1], worst[1]),
    )


def _most_different_runs(cells: Sequence[tuple[Point, Cell]]) -> list[tuple[Point, Cell]]:
    """Return the values of the runs at the point at which they differ most; empty if no point has several values."""
    by_values: dict[str, list[tuple[Point, Cell]]] = {}
    for point, cell in cells:
        by_values.setdefault(str(sorted(point.values.items())), []).append((point, cell))

    def difference(runs: list[tuple[Point, Cell]]) -> tuple[bool, float]:
        least, *_, most = sorted((cell for _, cell in runs), key=lambda cell: cell.mean)
        is_clear = overlap(_estimate(least), _estimate(most)) is False
        return is_clear, (most.mean - least.mean) / (abs(most.mean) + abs(least.mean) or 1)

    return max((runs for runs in by_values.values() if len(runs) > 1), key=difference, default=[])


def _with_interval(scale: Scale, cell: Cell) -> str:
    half = scale.half_width(cell.low, cell.high)
    unit = f" {scale.unit}" if scale.unit else ""
    return scale.text(cell.mean) + (f" ± {half}" if half else "") + unit


def _remark(best: Cell, worst: Cell | None) -> str:
    if worst is None:
        return ""
    overlapping = overlap(_estimate(best), _estimate(worst))
    if overlapping is None:
        cause = "copies of one repetition" if best.n > 1 and worst.n > 1 else "one repetition"
        return f"{cause}: may be due to chance"
    return "the intervals overlap: may be due to chance" if overlapping else "the intervals do not overlap"


def _estimate(cell: Cell) -> Estimate:
    return Estimate(cell.n, cell.mean, cell.low, cell.high, cell.median)
