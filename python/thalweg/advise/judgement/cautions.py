"""Cautions: reasons why significant results may mislead."""

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise

import polars as pl

from thalweg.advise.answers.answer import Caution, Comparison, Part, percent
from thalweg.advise.counting.arms import CONTRADICTING, CONTROL, DAY_HOURS, TREATMENT, TURNS
from thalweg.advise.counting.overview import Overview
from thalweg.advise.counting.places import Places
from thalweg.advise.judgement.verdicts import PROPERTIES
from thalweg.advise.question import HOUR_US, Question, period_text
from thalweg.advise.statistics.balance import NOTABLE, TOO_MUCH
from thalweg.advise.statistics.effects import Effect, adjusted

OFTEN = 0.1
"""Minimum fraction of samples or rows for a caution. Arms count as having run one at a time if at most this fraction of
samples comes from hours or periods with both.
"""

MOSTLY_APART = 0.2
"""Fraction of samples in networks with both arms below which the assignment was by network and not by connection. Only
networks that are large enough to have both arms by chance count.
"""

NOTED = 0.005
"""Minimum fraction of excluded samples that is reported."""

STRAY = 0.01
"""Fraction of the rarer arm above which an interval counts as having both arms."""

PAIR = 2

MOSTLY_ALONE = 0.6
"""Fraction of samples in pairs of periods with one arm above which the periods are too short. If the arms of periods
are random, it is about a half.
"""

REVERSED = 0.01
"""A paradox needs effects of opposite sign that are larger than this (logarithm of the ratio)."""

MIN_LOSSY_SHARE = 0.001


def of_parts(parts: Sequence[Part], overall: Part, question: Question) -> Iterable[Caution]:
    """Warn about unlike arms, Simpson's paradox, and losses without queueing."""
    yield from _unlike(parts, question)
    for metric in overall.comparisons:
        yield from _paradox(metric, parts, overall, question)
    yield from _not_congestion(parts, question)


def pooled_effect(metric: str, parts: Iterable[Part]) -> tuple[float, float] | None:
    """Return the common effect within parts and half the width of its interval, as logarithms weighted by n1 n0 / (n1 +
    n0); None without parts with comparable arms.
    """
    total = weights = squares = 0.0
    for comparison in _of(metric, parts):
        difference = comparison.difference
        if difference and difference.median and not any(imbalance.is_too_much for imbalance in comparison.imbalances):
            n = difference.treatment.stands_for, difference.control.stands_for
            weight = n[0] * n[1] / (n[0] + n[1])
            log, half = _logs(difference.median)
            total += weight * log
            squares += (weight * half) ** 2
            weights += weight
    return (total / weights, math.sqrt(squares) / weights) if weights else None


def is_paradox(metric: str, parts: Sequence[Part], overall: Part) -> bool:
    """Return whether the total and the effect within its parts are significant and opposite (Simpson 1951)."""
    comparison = overall.comparisons.get(metric)
    within = pooled_effect(metric, parts)
    if comparison is None or comparison.difference is None or within is None or comparison.difference.median is None:
        return False
    pooled = _logs(comparison.difference.median)
    return pooled[0] * within[0] < 0 and all(abs(log) > max(half, REVERSED) for log, half in (pooled, within))


def _logs(effect: Effect) -> tuple[float, float]:
    """Return the logarithm of an effect, and half the width of its interval."""
    return math.log(effect.ratio), math.log(effect.high / effect.low) / 2


def of_meetings(found: Mapping[str, int]) -> Iterable[Caution]:
    """Warn if the arms may share bottlenecks; `found` is the row of `counts.meetings`."""
    n = found["n"]
    if n and found["met"] / n >= OFTEN:
        yield Caution(
            "interference",
            f"{found['met'] / n:.0%} of the samples were in a minute in which the same network had connections of"
            " both algorithms. If these share a bottleneck, they influence each other, and their difference is not the"
            " effect of changing all connections (Spang et al., IMC 2021). Alternate the algorithms by the hour, and"
            " use --design switchback.",
        )


def are_assigned_as_a_whole(places: Places) -> bool:
    """Return whether the assignment was apparently by network and not by connection."""
    return places.n_many > 0 and places.n_both / places.n_many < MOSTLY_APART


def of_assignment(places: Places, asked: Question) -> Iterable[Caution]:
    """Warn if the assignment was by network; `asked` is the user's original question."""
    if asked.design.name != "ab" or asked.cluster == "prefix" or not are_assigned_as_a_whole(places):
        return
    done = (
        "The bootstrap therefore draws networks, as with --cluster prefix."
        if asked.cluster is None
        else "Use --cluster prefix."
    )
    yield Caution(
        "assigned-by-client",
        f"only {places.n_both / places.n_many:.0%} (by samples) of the networks with many samples have both algorithms."
        " Algorithms were apparently assigned to clients, or by rules for some networks, not to all connections. Then"
        " hours of a network may not be independent, and the total compares different networks; parts with both"
        f" algorithms in each network are not affected. {done} Networks without {asked.control} have no class of"
        " retransmissions; use --by with another dimension to distinguish them.",
    )


def of_contradictions(overview: Overview, question: Question) -> Iterable[Caution]:
    """Warn if many rows of the compared algorithms contradict the time of the activation."""
    treatment, control = question.treatment, question.control
    share = overview.without_arm.get(CONTRADICTING, 0) / (overview.algorithms[treatment] + overview.algorithms[control])
    if share >= OFTEN:
        yield Caution(
            "contradicts-design",
            f"{share:.0%} of the rows of {treatment} and {control} are left out, because they contradict the design:"
            f" {treatment} began before --at, or {control} began after it. Check --at. If only some of the connections"
            " were switched, compare the time after --at with --design ab.",
        )


def of_time(strata: pl.DataFrame, question: Question, *, is_balanced: bool) -> Iterable[Caution]:
    """Warn about arms that were active at different times; `strata` are the rows of `counts.strata`."""
    design = question.design
    if design.name == "ab" and (caution := _design_caution(strata, question)):
        yield caution
    elif design.name == "ab" and is_balanced:
        share = _one_arm_share(strata, 0.0)
        left = (
            f"; {percent(share)} of the samples are left out, because their hours had only one algorithm"
            if share >= NOTED
            else ""
        )
        yield Caution(
            "uneven-over-time",
            f"the share of {question.treatment} varied between hours. Hours are weighted so that both algorithms have"
            f" the same weight in each of them{left}.",
        )
    if design.name == "switchback":
        yield from _of_turns(strata, question)
    if design.name == "before-after":
        yield Caution(
            "before-after",
            "the difference includes all other changes since the activation, which the intervals do not cover. A"
            " switchback or an A/B comparison avoids this.",
        )


def _design_caution(hours: pl.DataFrame, question: Question) -> Caution | None:
    """Return a caution that names the matching design if nearly all samples are from hours with one algorithm.

    None also if no design matches.
    """
    if _one_arm_share(hours, STRAY) < 1 - OFTEN:
        return None
    runs = _runs(hours)
    begun = runs["stratum"].to_list()
    apart = (
        f"each hour has only {question.treatment} or only {question.control}, so they cannot be compared within hours"
    )
    if len(begun) > 2:
        every = statistics.mode(following - first for first, following in pairwise(begun))
        return Caution("alternating-hours", f"{apart}. They alternate: use --design switchback --every {every}h.")
    if len(begun) < 2 or not runs["is_treatment"][1]:
        return None
    at = f"{datetime.fromtimestamp(begun[1] * HOUR_US / 1e6, UTC):%Y-%m-%dT%H:%M}"
    return Caution(
        "one-after-the-other",
        f"{apart}. {question.treatment} follows {question.control}: use --design before-after --at {at}.",
    )


def _runs(strata: pl.DataFrame) -> pl.DataFrame:
    """Return the runs of strata with mostly the same arm, in order: run, stratum (the first), is_treatment, length."""
    is_treatment = pl.col("n").filter(pl.col("arm") == TREATMENT).sum() * 2 > pl.col("n").sum()
    in_order = strata.group_by("stratum").agg(is_treatment.alias("is_treatment")).sort("stratum")
    run = pl.col("is_treatment").rle_id().alias("run")
    return in_order.group_by(run, maintain_order=True).agg(pl.col("stratum", "is_treatment").first(), length=pl.len())


def _of_turns(turns: pl.DataFrame, question: Question) -> Iterable[Caution]:
    design = question.design
    by_unit = turns.with_columns(stratum=pl.col("stratum") // TURNS)
    if design.unit is not None and (alone := _one_arm_share(by_unit, 0.0)) >= NOTED:
        yield Caution(
            "no-turns",
            f"{percent(alone)} of the samples are left out, because their {design.unit} had one algorithm all the time:"
            " its own properties cannot be separated from the effect of the algorithm.",
        )
    hour = pl.col("stratum") % TURNS * design.period_us // HOUR_US % DAY_HOURS
    if design.period_us < DAY_HOURS * HOUR_US and _one_arm_share(turns.with_columns(stratum=hour), STRAY) > 1 - OFTEN:
        yield Caution(
            "same-hours",
            "each hour of the day always had the same algorithm, so the comparison includes the difference between day"
            " and night. Shift the schedule by one period every day.",
        )
    if (mixed := 1 - _one_arm_share(turns, STRAY)) >= OFTEN:
        yield Caution(
            "mixed-turns",
            f"{mixed:.0%} of the samples are from periods with both algorithms, so the algorithms did not alternate as"
            " --every states. If open connections kept the earlier algorithm, use longer periods; if both were assigned"
            " at the same time, by connection or by server, use --design ab.",
        )
    elif (length := _run_length(turns)) > 1:
        alone = _one_arm_share(turns.with_columns(pl.col("stratum") // PAIR), STRAY)
        if alone > MOSTLY_ALONE:
            yield Caution(
                "long-turns",
                f"{alone:.0%} of the samples are from pairs of periods with only one algorithm: the algorithms usually"
                f" changed after {length} periods. Use --every {period_text(length * design.period_us)}.",
            )


def _run_length(turns: pl.DataFrame) -> int:
    """Return the most frequent number of periods between changes of the algorithm; 1 if it never changed.

    The first and the last run of a unit may be incomplete, so they count only if there are no others.
    """
    lengths: list[int] = []
    for _, of_unit in turns.group_by(pl.col("stratum") // TURNS):
        of_runs = _runs(of_unit)["length"].to_list()
        lengths += of_runs[1:-1] or (of_runs if len(of_runs) > 1 else [])
    return min(statistics.multimode(lengths), default=1)


def _one_arm_share(strata: pl.DataFrame, stray: float) -> float:
    """Return the fraction of samples in strata whose share of the rarer arm is at most `stray`."""
    arms = strata.group_by("stratum").agg(
        pl.col("n").filter(pl.col("arm") == arm).sum().alias(name) for name, arm in (("t", TREATMENT), ("c", CONTROL))
    )
    n = arms["t"] + arms["c"]
    few = arms.filter(pl.min_horizontal("t", "c") <= stray * pl.sum_horizontal("t", "c"))
    return int((few["t"] + few["c"]).sum()) / max(int(n.sum()), 1)


def _of(metric: str, parts: Iterable[Part]) -> list[Comparison]:
    return [part.comparisons[metric] for part in parts if metric in part.comparisons]


def _unlike(parts: Sequence[Part], question: Question) -> Iterable[Caution]:
    for name, words in PROPERTIES.items():
        imbalances = {
            (part.title, metric): imbalance
            for part in parts
            for metric, comparison in part.comparisons.items()
            for imbalance in comparison.imbalances
            if imbalance.of == name
        }
        p_adjusted = adjusted({key: imbalance.p for key, imbalance in imbalances.items()})
        notable = [
            (title, imbalance)
            for (title, metric), imbalance in imbalances.items()
            if abs(imbalance.standardized) > NOTABLE and p_adjusted[title, metric] <= question.false_share
        ]
        if notable:
            title, largest = max(notable, key=lambda pair: abs(pair[1].standardized))
            yield Caution(
                f"unlike-{name}",
                f"in {title} {question.treatment}'s {words.format(largest.ratio)}: beyond {TOO_MUCH} standard"
                " deviations the part is not compared; below that, this may contribute to the effect.",
                tuple(dict.fromkeys(title for title, _ in notable)),
            )


def _paradox(metric: str, parts: Sequence[Part], overall: Part, question: Question) -> Iterable[Caution]:
    if is_paradox(metric, parts, overall):
        yield Caution(
            "paradox",
            f"the overall {metric.replace('_', ' ')} contradicts its values within the parts, because"
            f" {question.treatment} and {question.control} served different mixtures of parts (Simpson's paradox). The"
            " results of the parts are valid, the overall result is not.",
        )


def _not_congestion(parts: Sequence[Part], question: Question) -> Iterable[Caution]:
    titles = [
        part.title
        for part in parts
        if part.losses
        and part.losses.follow_queues is False
        and part.losses.n_lossy >= MIN_LOSSY_SHARE * (part.losses.n_lossy + part.losses.n_clean)
    ]
    if titles:
        yield Caution(
            "loss-without-queues",
            f"losses of {question.control} do not coincide with longer queues, so they are probably caused by the"
            " medium (radio) or a policer, not by congestion. Loss-based algorithms slow down unnecessarily.",
            tuple(titles),
        )
