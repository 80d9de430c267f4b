"""Compares two runs, or two values of a swept key, and finds the significant differences.

    compare(open_run("runs/before"), open_run("runs/after"), tolerance=0.05).real

docs/reference/analysis.md defines the verdicts.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from math import inf
from typing import Literal

from thalweg.analysis.measuring.measures import MEASURES
from thalweg.analysis.measuring.summary import flow_names, summary
from thalweg.analysis.statistics import pairs
from thalweg.analysis.statistics.difference import Difference, difference, holm
from thalweg.analysis.statistics.intervals import CONFIDENCE, Estimate
from thalweg.errors import ThalwegError
from thalweg.results import Run

USUAL = (
    "goodput", "completion_time", "retransmit_ratio", "share", "rtt_mean", "utilisation", "queueing_delay",
    "utilisation_up", "queueing_delay_up", "completion_time_p99", "video_bitrate", "stall_ratio", "page_time",
)  # fmt: skip
"""Measures that are compared by default; each additional one makes the correction for multiple tests stricter."""

Verdict = Literal["real", "too small", "copies", "not seen", "too few"]
"""`real`: significant and beyond the tolerance; `too small`: significant but within the tolerance; `copies`: one side's
repetitions are copies of one another; `not seen`: not significant, and with a tolerance its interval lies within it;
`too few`: too few repetitions to decide.
"""

ORDER: tuple[Verdict, ...] = ("real", "too small", "copies", "too few", "not seen")


@dataclass(frozen=True)
class MeasuredValue:
    """Estimate of a measure on one side."""

    cc: str | None
    mean: Estimate
    is_copied: bool


Values = Mapping[int, Mapping[tuple[str | None, str], MeasuredValue]]
"""Values by experiment, then by flow and measure."""


@dataclass(frozen=True)
class Compared:
    """A measure of a flow, or of the path, compared at one point."""

    pair: pairs.Pair
    flow: str | None
    ccs: tuple[str | None, str | None]
    measure: str
    first: Estimate
    second: Estimate
    difference: Difference
    p: float | None
    """p-value, corrected for the number of tests."""
    verdict: Verdict
    is_copied: bool = False

    @property
    def is_relative(self) -> bool:
        """Whether the change is relative to the first value; otherwise it is in percentage points."""
        return not MEASURES[self.measure].is_in_points

    @property
    def change(self) -> tuple[float | None, float | None, float | None]:
        """The change and the ends of its interval: 0.05 is 5 % more, or 5 percentage points more."""
        difference = self.difference
        if not self.is_relative:
            return difference.value, difference.low, difference.high
        ratios = (difference.ratio, difference.ratio_low, difference.ratio_high)
        change, low, high = (None if ratio is None else ratio - 1 for ratio in ratios)
        return change, low, high

    @property
    def size(self) -> float:
        """Absolute size of the change; infinite if a relative change starts at zero."""
        change = self.change[0]
        return abs(change) if change is not None else inf if self.difference.value else 0.0

    @property
    def is_worse(self) -> bool:
        """Whether the second side is worse; never for a measure without a better direction."""
        better = MEASURES[self.measure].better
        change = self.difference.value
        return change > 0 if better == "less" else change < 0 if better == "more" else False


@dataclass(frozen=True)
class Comparison:
    """Result of a comparison: real differences come first, in descending order of size."""

    rows: Sequence[Compared]
    alone: Sequence[str]
    """Points and values that exist on one side only, as text."""

    @property
    def has_verdicts(self) -> bool:
        """Whether there are enough repetitions for a verdict on any difference."""
        return any(row.verdict not in ("copies", "too few") for row in self.rows)

    def of(self, verdict: Verdict) -> list[Compared]:
        """Return the rows with a verdict."""
        return [row for row in self.rows if row.verdict == verdict]

    @property
    def real(self) -> list[Compared]:
        """The real differences."""
        return self.of("real")


def compare(
    first: Run,
    second: Run | None = None,
    *,
    by: str | None = None,
    measures: Collection[str] = (),
    flows: Collection[str] = (),
    tolerance: float = 0.0,
) -> Comparison:
    """Compare two runs, or within one run the values of a swept key.

    `tolerance` is the largest negligible change, as a fraction of the first value (for ratios: in points).

    Raises:
        ThalwegError: If no points can be paired, or a name is unknown.
        ValueError: Unless exactly one of `second` and `by` is set.
    """
    if (second is None) == (by is None):
        raise ValueError("a comparison needs either a second run or a key")
    other = first if second is None else second
    pairing = pairs.of_runs(first, second) if second else pairs.within(first, by or "")
    _check(measures, MEASURES, "--measure")
    _check(flows, list(dict.fromkeys([*flow_names(first), *flow_names(other)])), "--flow")
    chosen = list(measures) or list(USUAL)
    sides = [_values(run, chosen) for run in ((first,) if second is None else (first, other))]
    rows, unmatched = _compare(pairing.pairs, sides[0], sides[-1], flows)
    return Comparison(_judged(rows, tolerance), [*pairing.alone, *unmatched])


def _check(names: Collection[str], names_known: Collection[str], place: str) -> None:
    for name in names:
        if name not in names_known:
            near = get_close_matches(name, names_known, n=1)
            raise ThalwegError(
                "unknown-name",
                f"unknown {place.removeprefix('--')}: `{name}`",
                place=place,
                found=f"`{name}`",
                expected="one of " + ", ".join(names_known),
                hint=f"did you mean `{near[0]}`?" if near else None,
            )


def _values(run: Run, measures: Sequence[str]) -> Values:
    values: dict[int, dict[tuple[str | None, str], MeasuredValue]] = {}
    for row in summary(run, measures).iter_rows(named=True):
        mean = Estimate(row["n"], row["mean"], row["low"], row["high"], row["median"])
        values.setdefault(row["experiment"], {})[row["flow"], row["measure"]] = MeasuredValue(
            row["cc"], mean, row["copies"]
        )
    return values


def _compare(
    paired: Sequence[pairs.Pair], first: Values, second: Values, flows: Collection[str]
) -> tuple[list[Compared], list[str]]:
    rows: list[Compared] = []
    unmatched: list[str] = []
    for pair in paired:
        first_values, second_values = first.get(pair.first, {}), second.get(pair.second, {})
        for flow, measure in dict.fromkeys([*first_values, *second_values]):
            if flows and flow not in flows:
                continue
            a, b = first_values.get((flow, measure)), second_values.get((flow, measure))
            if a is None or b is None:
                point_text = "".join(f", {key} = {value}" for key, value in pair.point.items())
                unmatched.append(f"only {'B' if a is None else 'A'} has {measure} of {flow or 'the path'}{point_text}")
                continue
            estimate = difference(a.mean, b.mean)
            is_copied = a.is_copied or b.is_copied
            rows.append(
                Compared(pair, flow, (a.cc, b.cc), measure, a.mean, b.mean, estimate, estimate.p, "too few", is_copied)
            )
    return rows, unmatched


def _judged(rows: Sequence[Compared], tolerance: float) -> list[Compared]:
    corrected = iter(holm([row.p for row in rows if row.p is not None]))
    tested = [row if row.p is None else replace(row, p=next(corrected)) for row in rows]
    judged = [replace(row, verdict=_verdict(row, tolerance)) for row in tested]
    return sorted(judged, key=lambda row: (ORDER.index(row.verdict), -row.size))


def _verdict(row: Compared, tolerance: float) -> Verdict:
    if row.is_copied:
        return "copies"
    if row.p is None:
        return "too few"
    if row.p < 1 - CONFIDENCE:
        return "real" if row.size > tolerance else "too small"
    _, low, high = row.change
    if low is not None and high is not None and -tolerance <= low and high <= tolerance:
        return "not seen"
    # More repetitions would decide: a single test is significant, the variation is unknown, or the change may exceed
    # the tolerance.
    looks_real = row.difference.p is not None and row.difference.p < 1 - CONFIDENCE
    return "too few" if looks_real or row.difference.low is None or tolerance > 0 else "not seen"
