"""Findings as sentences, by fixed rules.

A sentence about shares or algorithms states whether the confidence intervals show a difference. The rules:

- Share: two unlimited flows compete. At each point the share's interval lies above the even share, below it, or
  contains it. If it changes sides once along the main axis, the sentence names the values between which, or at which,
  the two are even.
- Algorithm: if the sweep sets a flow's algorithm, the algorithm with the best mean leads at a point if its interval
  overlaps none of the others.
- Link, queue and retransmissions: the extremes over all points.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from thalweg.analysis import MEASURES, Axis
from thalweg.analysis.tables.directions import UP
from thalweg.report.content import Cell, Measurements, Point, Sweep
from thalweg.report.text.labels import joined, key_title, setting, value_text
from thalweg.report.text.numbers import NARROW

MAX_SERIES = 4
"""Maximum number of combinations of the other axes with separate sentences."""
MAX_FLOWS = 4
FULL = 0.95
ONE_REPETITION = " (without intervals: may be due to chance)"


def sentences(sweep: Sweep, measurements: Measurements) -> list[str]:
    """Return the findings of a report, the most important one first."""
    if not sweep.points:
        return []
    return [
        *_shares(sweep, measurements),
        *_algorithms(sweep, measurements),
        *_link(sweep, measurements),
        *_queue(sweep, measurements),
        *_retransmissions(sweep, measurements),
    ]


def main_axis(sweep: Sweep) -> Axis | None:
    """Return the axis that sentences and charts of lines follow: the ordered axis with the most values."""
    ordered = [axis for axis in sweep.axes if axis.is_ordered and None not in axis.values]
    return max(ordered, key=lambda axis: len(axis.values), default=None)


@dataclass(frozen=True)
class Series:
    """Points that differ only in the main axis, in the order of its values."""

    settings: tuple[str, ...]
    """The label of the run, if there are several, and the values of the other axes."""
    points: list[Point]

    @property
    def where(self) -> str:
        """The settings as part of a sentence; empty without settings."""
        return ", ".join(self.settings)


def along(sweep: Sweep, axis: Axis) -> list[Series]:
    """Return the points of a sweep as series along an axis."""
    others = [other for other in sweep.axes if other.key != axis.key]
    order = {str(value): index for index, value in enumerate(axis.values)}
    series: dict[tuple[str, ...], list[Point]] = {}
    for point in sweep.points:
        parts = [sweep.labels[point.run]] if sweep.is_of_several_runs else []
        parts += [setting(other.key, point.values.get(other.key)) for other in others]
        series.setdefault(tuple(parts), []).append(point)
    return [
        Series(settings, sorted(points, key=lambda point: order[str(point.values[axis.key])]))
        for settings, points in series.items()
    ]


def competitors(sweep: Sweep, measurements: Measurements) -> tuple[str, str] | None:
    """Return the two flows of a scenario if both are unlimited, so that their shares can be compared."""
    if len(sweep.all_flows) != 2 or measurements.sized_flows & set(sweep.all_flows):
        return None
    first, second = sweep.all_flows
    shares = [measurements.cell(point, "share", first) for point in sweep.points]
    return (first, second) if any(cell and 0 < cell.mean < 1 for cell in shares) else None


def flow_name(sweep: Sweep, flow: str) -> str:
    """Return a flow's name, with its algorithm unless that varies or is in the name."""
    ccs = sweep.ccs_of_flow.get(flow, set())
    cc = next(iter(ccs)) if len(ccs) == 1 else ""
    return f"{flow} ({cc})" if cc and cc.lower() not in flow.lower() else flow


def _shares(sweep: Sweep, measurements: Measurements) -> list[str]:
    pair = competitors(sweep, measurements)
    if pair is None:
        return []
    axis = main_axis(sweep)
    groups = along(sweep, axis) if axis else [Series((sweep.text(point),), [point]) for point in sweep.points]
    if len(groups) > MAX_SERIES:
        return [_counted_shares(sweep, measurements, pair)]
    written = (_share(sweep, measurements, pair, axis, series) for series in groups)
    return [sentence for sentence in written if sentence]


def _share(
    sweep: Sweep, measurements: Measurements, pair: tuple[str, str], axis: Axis | None, series: Series
) -> str | None:
    measured = [(point, cell) for point in series.points if (cell := measurements.cell(point, "share", pair[0]))]
    if not measured:
        return None
    first, second = (flow_name(sweep, flow) for flow in pair)
    begin = f"{series.where}: " if series.where else ""
    (start, start_cell), (end, end_cell) = measured[0], measured[-1]
    signs = [_sign(cell, sweep.even_share(point, *pair)) for point, cell in measured]
    if axis is None or len(measured) == 1:
        remark = {0: f"; {_no_difference(sweep.even_share(start, *pair))}", None: ONE_REPETITION}.get(signs[0], "")
        return f"{begin}{first} takes {_per_cent(start_cell.mean)} of the bytes, {second} the rest{remark}."
    values = [value_text(point.values[axis.key]) for point, _ in measured]
    text = (
        f"{begin}{first} takes {_per_cent(start_cell.mean)} of the bytes at"
        f" {setting(axis.key, start.values[axis.key])} and {_per_cent(end_cell.mean)} at {values[-1]}"
    )
    even = sweep.even_share(end, *pair)
    return text + _evenness(signs, values, second, key_title(axis.key), even) + "."


def _sign(cell: Cell, even: float) -> int | None:
    """Return 1 if a share is significantly above the even share, -1 if below, 0 if neither, None without an
    interval.
    """
    if cell.low is None or cell.high is None:
        return None
    return int(cell.low > even) - int(cell.high < even)


def _evenness(signs: Sequence[int | None], values: Sequence[str], other: str, key: str, even: float) -> str:
    """Summarize the signs along an axis.

    >>> _evenness([1, 1, 0, -1], ["0.5bdp", "1bdp", "2bdp", "8bdp"], "theirs", "buffer", 0.5)
    '; the two are even at 2bdp'
    >>> _evenness([1, -1], ["0.5bdp", "8bdp"], "theirs", "buffer", 0.5)
    '; the two are even between 0.5bdp and 8bdp'
    >>> _evenness([1, 1], ["0.5bdp", "8bdp"], "theirs", "buffer", 0.5)
    '; it has more than theirs at every buffer'
    >>> _evenness([0, -1, 0], ["1bdp", "2bdp", "4bdp"], "theirs", "buffer", 0.5)
    '; no difference between the two is shown at 1bdp and 4bdp'
    """
    if None in signs:
        return ONE_REPETITION
    compared = other if even == 0.5 else f"an even share of {_per_cent(even)}"
    if set(signs) == {0}:
        return f"; {_no_difference(even)} at any {key}"
    if len(set(signs)) == 1:
        return f"; it has {'more' if signs[0] == 1 else 'less'} than {compared} at every {key}"
    undecided = [value for sign, value in zip(signs, values, strict=True) if sign == 0]
    decided = [sign for sign in signs if sign]
    turns = sum(sign_ != next_ for sign_, next_ in pairwise(decided))
    if turns == 1 and not undecided:
        index = next(i for i, (sign_, next_) in enumerate(pairwise(signs)) if sign_ != next_)
        return f"; the two are even between {values[index]} and {values[index + 1]}"
    if turns == 1 and 0 not in (signs[0], signs[-1]) and _is_one_run(signs):
        return f"; the two are even at {joined(undecided)}"
    return f"; {_no_difference(even)} at {joined(undecided)}" if undecided else ""


def _no_difference(even: float) -> str:
    what = "between the two" if even == 0.5 else f"from an even share of {_per_cent(even)}"
    return f"no difference {what} is shown"


def _is_one_run(signs: Sequence[int | None]) -> bool:
    """Return whether the points without a significant difference are adjacent, between the two signs."""
    zeros = [i for i, sign in enumerate(signs) if sign == 0]
    return zeros[-1] - zeros[0] + 1 == len(zeros) and signs[zeros[0] - 1] != signs[zeros[-1] + 1]


def _counted_shares(sweep: Sweep, measurements: Measurements, pair: tuple[str, str]) -> str:
    signs = [
        _sign(cell, sweep.even_share(point, *pair))
        for point in sweep.points
        if (cell := measurements.cell(point, "share", pair[0]))
    ]
    first, second = (flow_name(sweep, flow) for flow in pair)
    if None in signs:
        means = [cell.mean for point in sweep.points if (cell := measurements.cell(point, "share", pair[0]))]
        range_ = f"{_per_cent(min(means))} to {_per_cent(max(means))}"
        return f"{first} takes {range_} of the bytes, {second} the rest{ONE_REPETITION}."
    return (
        f"{first} takes more than its even share at {signs.count(1)} of {len(signs)} points, and less at"
        f" {signs.count(-1)}; at {signs.count(0)} no difference to {second} is shown."
    )


def _algorithms(sweep: Sweep, measurements: Measurements) -> list[str]:
    written = []
    for flow in sweep.flows:
        axis = next((axis for axis in sweep.axes if axis.key == f"flow.{flow}.cc"), None)
        measure = "completion_time" if flow in measurements.sized_flows else "goodput"
        if axis and (text := _algorithm(sweep, measurements, flow, axis, measure)):
            written.append(text)
    return written


def _algorithm(sweep: Sweep, measurements: Measurements, flow: str, axis: Axis, measure: str) -> str | None:
    wins: dict[str, int] = {}
    groups = [
        cells
        for series in along(sweep, axis)
        if len(
            cells := {
                value_text(point.values[axis.key]): cell
                for point in series.points
                if (cell := measurements.cell(point, measure, flow))
            }
        )
        > 1
    ]
    if not groups:
        return None
    title = f"{MEASURES[measure].title} of {flow}"
    extreme = "shortest" if measure == "completion_time" else "highest"
    if len(groups) == 1:
        scale = measurements.scales[measure]
        listed = joined([f"{scale.with_unit(cell.mean)} with {cc}" for cc, cell in groups[0].items()])
        leader = _leader(groups[0], measure)
        remark = ONE_REPETITION if any(cell.low is None for cell in groups[0].values()) else ""
        remark = remark or ("" if leader else "; no algorithm is significantly better")
        return f"{title} is {listed}{remark}."
    tested = [cells for cells in groups if all(cell.low is not None for cell in cells.values())]
    remark = "" if tested else ONE_REPETITION
    counted = tested or groups
    for cells in counted:
        if leader := _leader(cells, measure) if tested else _best(cells, measure)[0][0]:
            wins[leader] = wins.get(leader, 0) + 1
    if not wins:
        return f"{title}: no algorithm is significantly better at any of {len(counted)} points."
    ranked = sorted(wins.items(), key=lambda item: -item[1])
    first, *others = [f"with {cc} at {count}" for cc, count in ranked]
    rest = len(counted) - sum(wins.values())
    text = f"{title} is {extreme} {first} of {len(counted)} points" + "".join(f", {other}" for other in others)
    return text + remark + (f"; at {rest} no algorithm is significantly better." if rest else ".")


def _best(cells: dict[str, Cell], measure: str) -> list[tuple[str, Cell]]:
    """Return the algorithms and their cells, the one with the best mean first."""
    return sorted(cells.items(), key=lambda item: item[1].mean, reverse=measure != "completion_time")


def _leader(cells: dict[str, Cell], measure: str) -> str | None:
    """Return the algorithm whose interval is better than those of all others."""
    is_less_better = measure == "completion_time"
    (name, best), *others = _best(cells, measure)
    for _, other in others:
        if best.low is None or best.high is None or other.low is None or other.high is None:
            return None
        if (best.high >= other.low) if is_less_better else (best.low <= other.high):
            return None
    return name


def _link(sweep: Sweep, measurements: Measurements) -> list[str]:
    return [text for place, up in _links(sweep) if (text := _fullness(sweep, measurements, f"The link{place}", up))]


def _links(sweep: Sweep) -> list[tuple[str, str]]:
    """Return the links that carry data: their place in a sentence, and the suffix of their measures."""
    if sweep.directions == ["down"]:
        return [("", "")]
    return [(f" of {direction}loads", UP if direction == "up" else "") for direction in sweep.directions]


def _fullness(sweep: Sweep, measurements: Measurements, link: str, up: str) -> str | None:
    cells = [(point, cell) for point in sweep.points if (cell := measurements.cell(point, f"utilisation{up}"))]
    if not cells:
        return None
    low, high = (choose(cells, key=lambda pair: pair[1].mean) for choose in (min, max))
    if low is high:
        return f"{link} is {_per_cent(low[1].mean)} full."
    if low[1].mean >= FULL and len(cells) == len(sweep.points):
        least = math.floor(low[1].mean * 100 + 1e-9) / 100
        return f"{link} is at least {_per_cent(least)} full at every point."
    return (
        f"{link} is {_per_cent(low[1].mean)} full at {sweep.text(low[0])}, and {_per_cent(high[1].mean)} at"
        f" {sweep.text(high[0])}."
    )


def _queue(sweep: Sweep, measurements: Measurements) -> list[str]:
    return [text for place, up in _links(sweep) if (text := _wait(sweep, measurements, f"in the queue{place}", up))]


def _wait(sweep: Sweep, measurements: Measurements, place: str, up: str) -> str | None:
    measure = f"queueing_delay{up}"
    cells = [(point, cell) for point in sweep.points if (cell := measurements.cell(point, measure))]
    if not cells:
        return None
    scale = measurements.scales[measure]
    low, high = (choose(cells, key=lambda pair: pair[1].mean) for choose in (min, max))
    text = f"A packet waits {scale.with_unit(low[1].mean)} {place} on average"
    if low is high:
        return f"{text}."
    return f"{text} at {sweep.text(low[0])}, and {scale.with_unit(high[1].mean)} at {sweep.text(high[0])}."


def _retransmissions(sweep: Sweep, measurements: Measurements) -> list[str]:
    worst = []
    for flow in sweep.flows[:MAX_FLOWS]:
        cells = [
            (point, cell) for point in sweep.points if (cell := measurements.cell(point, "retransmit_ratio", flow))
        ]
        if cells:
            point, cell = max(cells, key=lambda pair: pair[1].mean)
            point_text_ = f" (at {sweep.text(point)})" if len(sweep.points) > 1 and cell.mean else ""
            worst.append(f"{flow_name(sweep, flow)} {_per_cent(cell.mean)}{point_text_}")
    if not worst:
        return []
    at_most = "at most " if len(sweep.points) > 1 else ""
    return [f"Retransmissions, of all segments sent: {at_most}{joined(worst)}."]


def _per_cent(ratio: float) -> str:
    """Return a ratio as a percentage.

    >>> [_per_cent(ratio) for ratio in (0.844, 0.0532, 0.00042, 0.0)]
    ['84\\u202f%', '5.3\\u202f%', '0.042\\u202f%', '0\\u202f%']
    """
    return f"{ratio * 100:.2g}{NARROW}%" if ratio < 0.995 else f"{ratio * 100:.0f}{NARROW}%"
