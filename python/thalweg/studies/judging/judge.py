"""A claim against what was measured: the number, how sure it is, and the verdict."""

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
from thalweg.studies.judging.judged import Experiments, Judged, experiments_of, known, quantiles

CONFIDENCE = analysis.CONFIDENCE


def judge(claim: Claim, parts: Mapping[str, PartData]) -> Judged:
    """Judge a claim on the parts of one engine."""
    try:
        found = quantities(claim.part, claim.value, claim.against, claim.judge.kind, parts)
    except NotQuick as why:
        return Judged("not in the quick set", note=str(why))
    except NotRun as why:
        return Judged("cannot run here", note=str(why))
    except SeveralPartners as why:
        raise ThalwegError(
            "several-partners",
            f"the claim `{claim.id}` cannot be judged: {why}",
            place=f"claims.{claim.id}.against",
            hint="name a value of that key in `against.where`, or leave the key open in `value.where`, too",
        ) from None
    if claim.judge.sample:
        judged = sampled.judge(found, claim.judge)
        lacking = _not_recorded(claim, parts) if judged.n is None else None
        return replace(judged, verdict="cannot run here", note=lacking) if lacking else judged
    has_value = ~np.isnan(found.centre)
    looked_at = frozenset[tuple[str, int]]().union(*experiments_of(found, range(len(has_value))))
    found_there = found.only(has_value)
    if not has_value.any():
        if lacking := _not_recorded(claim, parts):
            return Judged("cannot run here", note=lacking, looked_at=looked_at)
        return Judged("not settled", note="no point has a value", looked_at=looked_at, unsure=looked_at)
    judged = _judge(_numbers(found_there, claim.judge), claim.judge, looked_at)
    missing = int((~has_value).sum())
    if not missing:
        return judged
    without = f"{missing} of {len(has_value)} points have no value"
    note = f"{judged.note}; {without}" if judged.note else without
    verdict = judged.verdict if _is_decided(claim.judge, judged.verdict) else "not settled"
    return replace(judged, note=note, verdict=verdict)


def _is_decided(judge: Judge, verdict: ClaimVerdict) -> bool:
    """Return whether a verdict stands whatever points that have no value would have."""
    if judge.along is not None:
        return False
    if judge.over == "every":
        return verdict == "does not hold"
    # More points can only make a largest number larger, and a smallest one smaller.
    end = {"max": judge.at_most, "min": judge.at_least}
    return judge.over in end and end[judge.over] is None and verdict == "holds"


def _not_recorded(claim: Claim, parts: Mapping[str, PartData]) -> str | None:
    """Describe which measure an engine does not record, where that is why no point has a value."""
    other = (claim.against and claim.against.part) or claim.part
    asked = zip((claim.part, other), sides(claim.value, claim.against, ()), strict=True)
    for data, quantity in ((parts[part], each) for part, each in asked):
        if lacking := data.not_recorded(quantity.measure):
            return f"the engine {data.planned.engine.name} does not record `{lacking}`"
    return None


def quantities(
    part: str, value: Quantity, against: Against | None, kind: ComparisonKind, parts: Mapping[str, PartData]
) -> Quantities:
    """Return a quantity at every point that matches its conditions.

    Raises `NotRun` if no point matches.
    """
    data = parts[part]
    if against is None:
        return of_value(data.pick(value))
    other = parts[against.part or part]
    own, held_against = sides(value, against, other.sweep_keys)
    is_same = (own.measure, own.flow, own.window) == (held_against.measure, held_against.flow, held_against.window)
    return of_pair(data.pick(own), other.pick(held_against), kind, own.measure, is_same=is_same)


@dataclass(frozen=True)
class _Numbers:
    """What is judged: each number is a point, or what became of several points along a key."""

    centre: Numbers
    draws: Numbers | None
    """A row per draw; None with a single repetition, or where draws are not needed."""
    exact: Quantities | None
    """Where each number is a point: its interval is known without draws."""
    groups: Sequence[Group]
    experiments: Sequence[Experiments]
    """Of each number."""
    n: int

    def intervals(self, confidence: float) -> tuple[Numbers, Numbers]:
        """Return the ends of each number's interval; the number itself with one repetition."""
        if self.n < 2:
            return self.centre, self.centre
        if self.exact is not None:
            return self.exact.intervals(confidence)
        assert self.draws is not None
        ends = [quantiles(*each, confidence) for each in zip(self.draws.T, self.centre, strict=True)]
        return np.array([low for low, _ in ends]), np.array([high for _, high in ends])


def _numbers(found: Quantities, judge: Judge) -> _Numbers:
    n = int(found.n.min())
    together = groups(found.points, judge.along)
    experiments = [frozenset[tuple[str, int]]().union(*experiments_of(found, group.rows)) for group in together]
    if judge.along is None:
        # A single number's interval is known exactly, unless it is a share.
        draws = found.draws() if len(found.centre) > 1 or judge.over == "share" else None
        return _Numbers(found.estimate, draws, found, together, experiments, n)
    assert judge.take
    take, level = judge.take, judge.level
    draws = (found.on_log_scale() if take in ("growth", "spread") else found).draws()
    centre = [reduce.along(take, group.key, found.estimate[group.rows], level).item() for group in together]
    drawn = [] if draws is None else [reduce.along(take, group.key, draws[:, group.rows], level) for group in together]
    return _Numbers(np.array(centre), np.stack(drawn, axis=-1) if drawn else None, None, together, experiments, n)


def _judge(numbers: _Numbers, judge: Judge, looked_at: Experiments) -> Judged:
    if not len(numbers.centre):
        why = f"there are fewer than two points along {judge.along}"
        return Judged("not settled", note=why, looked_at=looked_at, unsure=looked_at)
    if judge.over == "every":
        return _every(numbers, judge, looked_at)
    bounds, own = Bounds.of(judge), numbers.draws
    if judge.over == "share":
        met = bounds.inside(numbers.centre, numbers.centre)
        note = _met(met)
        centre = np.asarray(met.mean())
        drawn = None if own is None else bounds.inside(own, own).mean(axis=-1)
        bounds = Bounds.between(judge.at_least_share, None)
    else:
        note = ""
        centre = reduce.over(judge.over, numbers.centre)
        drawn = None if own is None else reduce.over(judge.over, own)
    if numbers.n < 2:
        low = high = centre.item()
    elif drawn is None:
        low, high = (ends.item() for ends in numbers.intervals(CONFIDENCE))
    else:
        low, high = quantiles(drawn, centre.item(), CONFIDENCE)
    is_sure = numbers.n > 1 and high - low <= (judge.tolerance or 0)
    return Judged(
        bounds.verdict(centre.item(), low, high),
        known(centre.item()),
        *((known(low), known(high)) if numbers.n > 1 else (None, None)),
        numbers.n,
        len(numbers.centre),
        note=note,
        looked_at=looked_at,
        unsure=frozenset() if is_sure else looked_at,
    )


def _every(numbers: _Numbers, judge: Judge, looked_at: Experiments) -> Judged:
    """All must be inside; one outside decides, where its interval says so even after many looks (Bonferroni)."""
    bounds, many = Bounds.of(judge), len(numbers.centre)
    low, high = numbers.intervals(CONFIDENCE)
    outside = bounds.outside(*numbers.intervals(1 - (1 - CONFIDENCE) / many)) | np.isnan(numbers.centre)
    inside = bounds.inside(low, high) & ~np.isnan(numbers.centre)
    verdict: ClaimVerdict = "does not hold" if outside.any() else "holds" if inside.all() else "not settled"
    # The number that is shown: the one furthest outside, else the one whose interval comes nearest to a bound.
    margin = np.where(outside, bounds.margin(numbers.centre, numbers.centre), bounds.margin(low, high))
    rank = np.where(np.isnan(margin), -np.inf, margin)
    worst = int(np.where(outside == outside.any(), rank, np.inf).argmin())
    has_interval = numbers.n > 1
    too_wide = [row for row in range(many) if not (has_interval and high[row] - low[row] <= (judge.tolerance or 0))]
    met = bounds.inside(numbers.centre, numbers.centre)
    return Judged(
        verdict,
        known(numbers.centre[worst]),
        *((known(low[worst]), known(high[worst])) if has_interval else (None, None)),
        numbers.n,
        many,
        point_text(numbers.groups[worst].point) if many > 1 else "",
        "" if met.all() else _met(met),
        looked_at,
        frozenset[tuple[str, int]]().union(*(numbers.experiments[row] for row in too_wide)),
    )


def _met(met: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> str:
    return f"{int(met.sum())} of {len(met)} points meet the bounds" if len(met) > 1 else ""
