"""Judges a claim by measurements: the number, its interval, and the verdict."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from thalweg import analysis
from thalweg.analysis.tables.thin import Numbers
from thalweg.errors import ThalwegError
from thalweg.report.text.claim_verdicts import ClaimVerdict
from thalweg.studies.claims.keys import sides
from thalweg.studies.claims.models import Against, Claim, ComparisonKind, Judge, Quantity
from thalweg.studies.judging import reduce, sampled
from thalweg.studies.judging.bounds import Bounds
from thalweg.studies.judging.data import NotQuick, NotRun, PartData
from thalweg.studies.judging.estimates import Quantities, SeveralPartners, of_pair, of_value
from thalweg.studies.judging.grouping import Group, groups, point_text
from thalweg.studies.judging.judged import Experiments, Judged, experiments_of, finite_or_none, quantiles

CONFIDENCE = analysis.CONFIDENCE


def judge(claim: Claim, parts: Mapping[str, PartData]) -> Judged:
    """Judge a claim by the measurements of one engine.

    Raises:
        ThalwegError: If a point has several references.
    """
    try:
        estimated = quantities(claim.part, claim.value, claim.against, claim.judge.kind, parts)
    except NotQuick as why:
        return Judged("not in the quick set", note=str(why))
    except NotRun as why:
        return Judged("cannot run here", note=str(why))
    except SeveralPartners as why:
        raise ThalwegError(
            "several-partners",
            f"the claim `{claim.id}` cannot be judged: {why}",
            place=f"claims.{claim.id}.against",
            hint="set a value of that key in `against.where`, or also leave the key open in `value.where`",
        ) from None
    if claim.judge.sample:
        judged = sampled.judge(estimated, claim.judge)
        lacking = _not_recorded(claim, parts) if judged.n is None else None
        return replace(judged, verdict="cannot run here", note=lacking) if lacking else judged
    has_value = ~np.isnan(estimated.centre)
    experiments = frozenset[tuple[str, int]]().union(*experiments_of(estimated, range(len(has_value))))
    with_value = estimated.only(has_value)
    if not has_value.any():
        if lacking := _not_recorded(claim, parts):
            return Judged("cannot run here", note=lacking, looked_at=experiments)
        return Judged("not settled", note="no point has a value", looked_at=experiments, unsure=experiments)
    judged = _judge(_numbers(with_value, claim.judge), claim.judge, experiments)
    missing = int((~has_value).sum())
    if not missing:
        return judged
    missing_note = f"{missing} of {len(has_value)} points have no value"
    note = f"{judged.note}; {missing_note}" if judged.note else missing_note
    verdict = judged.verdict if _is_decided(claim.judge, judged.verdict) else "not settled"
    return replace(judged, note=note, verdict=verdict)


def _is_decided(judge: Judge, verdict: ClaimVerdict) -> bool:
    """Return whether a verdict holds regardless of the values at points without a value."""
    if judge.along is not None:
        return False
    if judge.over == "every":
        return verdict == "does not hold"
    # Additional points can only increase a maximum and decrease a minimum.
    end = {"max": judge.at_most, "min": judge.at_least}
    return judge.over in end and end[judge.over] is None and verdict == "holds"


def _not_recorded(claim: Claim, parts: Mapping[str, PartData]) -> str | None:
    """Return a text about a measure that an engine does not record, if there is one."""
    other = (claim.against and claim.against.part) or claim.part
    compared = zip((claim.part, other), sides(claim.value, claim.against, ()), strict=True)
    for data, quantity in ((parts[part], item) for part, item in compared):
        if lacking := data.not_recorded(quantity.measure):
            return f"the engine {data.planned.engine.name} does not record `{lacking}`"
    return None


def quantities(
    part: str, value: Quantity, against: Against | None, kind: ComparisonKind, parts: Mapping[str, PartData]
) -> Quantities:
    """Return a quantity at every point that matches its conditions.

    Raises:
        NotRun: If nothing was run, no point satisfies its conditions, or none has a reference.
        SeveralPartners: If a point has several references.
    """
    data = parts[part]
    if against is None:
        return of_value(data.pick(value))
    other = parts[against.part or part]
    first, second = sides(value, against, other.sweep_keys)
    is_same = (first.measure, first.flow, first.window) == (second.measure, second.flow, second.window)
    return of_pair(data.pick(first), other.pick(second), kind, first.measure, is_same=is_same)


@dataclass(frozen=True)
class _Numbers:
    """Numbers to judge: each is a point, or a reduction of several points along a key."""

    centre: Numbers
    draws: Numbers | None
    """Draws, one row each; None with a single repetition, or if draws are not needed."""
    exact: Quantities | None
    """The quantities if each number is a point, because their intervals are known without draws."""
    groups: Sequence[Group]
    experiments: Sequence[Experiments]
    n: int

    def intervals(self, confidence: float) -> tuple[Numbers, Numbers]:
        """Return the ends of each number's interval; with one repetition, both are the number itself."""
        if self.n < 2:
            return self.centre, self.centre
        if self.exact is not None:
            return self.exact.intervals(confidence)
        assert self.draws is not None
        ends = [quantiles(*samples, confidence) for samples in zip(self.draws.T, self.centre, strict=True)]
        return np.array([low for low, _ in ends]), np.array([high for _, high in ends])


def _numbers(estimated: Quantities, judge: Judge) -> _Numbers:
    n = int(estimated.n.min())
    point_groups = groups(estimated.points, judge.along)
    experiments = [frozenset[tuple[str, int]]().union(*experiments_of(estimated, group.rows)) for group in point_groups]
    if judge.along is None:
        # A single number's interval is known exactly, unless it is a share.
        draws = estimated.draws() if len(estimated.centre) > 1 or judge.over == "share" else None
        return _Numbers(estimated.estimate, draws, estimated, point_groups, experiments, n)
    assert judge.take
    reduction, level = judge.take, judge.level
    draws = (estimated.on_log_scale() if reduction in ("growth", "spread") else estimated).draws()
    centre = [
        reduce.along(reduction, group.key, estimated.estimate[group.rows], level).item() for group in point_groups
    ]
    group_draws = (
        []
        if draws is None
        else [reduce.along(reduction, group.key, draws[:, group.rows], level) for group in point_groups]
    )
    return _Numbers(
        np.array(centre), np.stack(group_draws, axis=-1) if group_draws else None, None, point_groups, experiments, n
    )


def _judge(numbers: _Numbers, judge: Judge, experiments: Experiments) -> Judged:
    if not len(numbers.centre):
        why = f"there are fewer than two points along {judge.along}"
        return Judged("not settled", note=why, looked_at=experiments, unsure=experiments)
    if judge.over == "every":
        return _every(numbers, judge, experiments)
    bounds, draws = Bounds.of(judge), numbers.draws
    if judge.over == "share":
        is_inside = bounds.inside(numbers.centre, numbers.centre)
        note = _met(is_inside)
        centre = np.asarray(is_inside.mean())
        samples = None if draws is None else bounds.inside(draws, draws).mean(axis=-1)
        bounds = Bounds.between(judge.at_least_share, None)
    else:
        note = ""
        centre = reduce.over(judge.over, numbers.centre)
        samples = None if draws is None else reduce.over(judge.over, draws)
    if numbers.n < 2:
        low = high = centre.item()
    elif samples is None:
        low, high = (ends.item() for ends in numbers.intervals(CONFIDENCE))
    else:
        low, high = quantiles(samples, centre.item(), CONFIDENCE)
    is_sure = numbers.n > 1 and high - low <= (judge.tolerance or 0)
    return Judged(
        bounds.verdict(centre.item(), low, high),
        finite_or_none(centre.item()),
        *((finite_or_none(low), finite_or_none(high)) if numbers.n > 1 else (None, None)),
        numbers.n,
        len(numbers.centre),
        note=note,
        looked_at=experiments,
        unsure=frozenset() if is_sure else experiments,
    )


def _every(numbers: _Numbers, judge: Judge, experiments: Experiments) -> Judged:
    """Judge all numbers: all must be inside the bounds. The claim does not hold if a number is undefined, or if the
    interval of one is outside the bounds at a confidence corrected for the count of numbers (Bonferroni).
    """
    bounds, count = Bounds.of(judge), len(numbers.centre)
    low, high = numbers.intervals(CONFIDENCE)
    outside = bounds.outside(*numbers.intervals(1 - (1 - CONFIDENCE) / count)) | np.isnan(numbers.centre)
    inside = bounds.inside(low, high) & ~np.isnan(numbers.centre)
    verdict: ClaimVerdict = "does not hold" if outside.any() else "holds" if inside.all() else "not settled"
    # The displayed number is the one furthest outside, otherwise the one whose interval is closest to a bound.
    margin = np.where(outside, bounds.margin(numbers.centre, numbers.centre), bounds.margin(low, high))
    rank = np.where(np.isnan(margin), -np.inf, margin)
    worst = int(np.where(outside == outside.any(), rank, np.inf).argmin())
    has_interval = numbers.n > 1
    too_wide = [row for row in range(count) if not (has_interval and high[row] - low[row] <= (judge.tolerance or 0))]
    is_inside = bounds.inside(numbers.centre, numbers.centre)
    return Judged(
        verdict,
        finite_or_none(numbers.centre[worst]),
        *((finite_or_none(low[worst]), finite_or_none(high[worst])) if has_interval else (None, None)),
        numbers.n,
        count,
        point_text(numbers.groups[worst].point) if count > 1 else "",
        "" if is_inside.all() else _met(is_inside),
        experiments,
        frozenset[tuple[str, int]]().union(*(numbers.experiments[row] for row in too_wide)),
    )


def _met(is_inside: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> str:
    return f"{int(is_inside.sum())} of {len(is_inside)} points meet the bounds" if len(is_inside) > 1 else ""
