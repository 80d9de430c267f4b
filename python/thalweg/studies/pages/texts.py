"""Formats numbers and conditions of claims."""

from thalweg.report.text import numbers
from thalweg.studies.claims.advice_measures import unit_and_title
from thalweg.studies.claims.models import Claim
from thalweg.studies.judging.judged import Judged

DIGITS = 3


def unit(claim: Claim) -> str:
    """Return the unit of a claim's number, as in `thalweg.report.text.numbers`; `number` without a unit.

    A ratio of two quantities is a plain number (0.9); a gain or a harm is a percentage.
    """
    judge = claim.judge
    if judge.over == "share":
        return "ratio"
    if judge.take == "crossing":
        return _of_key(judge.along or "")
    if judge.take in ("growth", "spread", "spearman") or judge.kind == "ratio":
        return "number"
    if judge.kind in ("gain", "harm"):
        return "ratio"
    unit_title = unit_and_title(claim.value.measure)
    return unit_title[0] if unit_title else "number"


def number(value: float | None, unit_: str, digits: int = DIGITS) -> str:
    """Return a number with its unit, as text.

    >>> number(0.5, "number"), number(0.5, "ratio"), number(4.2e7, "bit/s")
    ('0.5', '50 %', '42 Mbit/s')
    """
    if value is None:
        return "\N{EN DASH}"
    if unit_ in ("number", "count"):
        return f"{value:.{digits}g}" if abs(value) < 10**digits else f"{value:.0f}"
    scale = numbers.scale_for(unit_, [value])
    return f"{value / scale.size:.{digits}g} {scale.unit}".strip()


def with_interval(judged: Judged, unit_: str) -> str:
    """Return an engine's number with its interval and its point, as text."""
    if judged.n is None:
        return ""
    text = number(judged.value, unit_)
    if judged.low is not None and judged.high is not None:
        text += f" [{number(judged.low, unit_)}, {number(judged.high, unit_)}]"
    return text + (f" at {judged.where}" if judged.where else "")


def ours(judged: Judged, unit_: str) -> str:
    """Return an engine's number with its interval, point and repetitions, as text."""
    return f"{with_interval(judged, unit_)}, n = {judged.n}" if judged.n is not None else ""


def asked(claim: Claim) -> str:
    """Return the required value of a claim as text."""
    judge, unit_ = claim.judge, unit(claim)
    if judge.over == "share":
        unit_ = _unit_of_points(claim)
    ends = [
        f"{word} {number(value, unit_)}"
        for word, value in (("at least", judge.at_least), ("at most", judge.at_most))
        if value is not None
    ]
    text = f"{_subject(claim)} {' and '.join(ends)}".strip()
    match judge.over:
        case "share":
            return f"{text} at {number(judge.at_least_share, 'ratio')} of the points or more"
        case "every":
            return text if judge.along else f"{text} at every point"
        case "total":
            return f"{text}, of the totals over all points"
        case other:
            return f"{text}, {other} of all points"


def paper(claim: Claim) -> str:
    """Return the paper's result as text."""
    return (
        claim.paper if isinstance(claim.paper, str) else "" if claim.paper is None else number(claim.paper, unit(claim))
    )


def _of_key(key: str) -> str:
    """Return the unit in which a key's numbers are displayed; `number` without a unit, as for BDPs.

    >>> _of_key("path.rtt"), _of_key("rate_bps"), _of_key("path.loss"), _of_key("path.buffer")
    ('s', 'bit/s', 'ratio', 'number')
    """
    last = key.rpartition(".")[2]
    units = {"rtt": "s", "rtt_s": "s", "rate": "bit/s", "rate_bps": "bit/s", "loss": "ratio"}
    return units.get(last, "B" if last.endswith("_bytes") else "number")


def _unit_of_points(claim: Claim) -> str:
    return unit(claim.model_copy(update={"judge": claim.judge.model_copy(update={"over": "every"})}))


def _level(claim: Claim) -> str:
    """Return the level of a crossing as text, in the unit of the quantity that crosses it."""
    at_a_point = {"take": None, "along": None, "over": "every"}
    crossing = claim.model_copy(update={"judge": claim.judge.model_copy(update=at_a_point)})
    return number(claim.judge.level, unit(crossing))


def _subject(claim: Claim) -> str:
    judge = claim.judge
    words = {"value": "", "ratio": "ratio", "difference": "difference", "gain": "gain", "harm": "harm"}[judge.kind]
    reduction = {
        "growth": "last over first",
        "spread": "largest over smallest",
        "slope": "per doubling",
        "spearman": "rank correlation",
        "crossing": f"crosses {_level(claim)}",
    }.get(judge.take or "", "")
    if judge.take:
        reduction = f"{reduction} along {judge.along}" if judge.take != "crossing" else f"{reduction} at {judge.along}"
    return ", ".join(filter(None, (words, reduction))) + ":" if words or reduction else ""
