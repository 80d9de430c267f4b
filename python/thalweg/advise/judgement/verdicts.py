"""Verdicts: the better algorithm in a part of the traffic, if the records show it, and the reason.

The median decides, because means of heavy-tailed numbers depend on a few samples. If one algorithm is better for small
and the other for large transfers, the verdict is "no difference", because the size is unknown when a connection opens.
"""

import math
from collections.abc import Mapping
from dataclasses import replace

from thalweg.advise.answers.answer import NO_DIFFERENCE, NOT_COMPARABLE, NOT_ENOUGH, Comparison, gain
from thalweg.advise.question import Question
from thalweg.advise.statistics.balance import Imbalance
from thalweg.advise.statistics.effects import MIN_GROUPS, Difference, Effect
from thalweg.advise.statistics.networks import MIN_NETWORKS, Heavy

NEGLIGIBLE = 0.01
"""Significant differences whose interval lies below this count as zero."""

SAMPLES = {"completion_time": "transfers", "throughput": "large transfers"}
WORDS = {
    "completion_time": ("less time", "more time", "takes"),
    "throughput": ("more throughput", "less throughput", "gets"),
}

REMARKS = {
    NO_DIFFERENCE: "no difference in {}",
    NOT_COMPARABLE: "not comparable in {}",
    NOT_ENOUGH: "not enough data on {}",
}

PROPERTIES = {
    "size": "transfers are {:.2g} times as large",
    "rtt": "round-trip times to clients are {:.2g} times as long",
}


def with_verdict(compared: Comparison, p_adjusted: float | None, question: Question) -> Comparison:
    """Return the comparison of one metric with its verdict."""
    verdict, reason = _judged(compared, p_adjusted, question)
    return replace(compared, p_adjusted=p_adjusted, verdict=verdict, reason=reason)


def is_testable(compared: Comparison, question: Question) -> bool:
    """Return whether a comparison can yield a verdict for an algorithm, and counts as a test."""
    return not _lacking(compared, question) and not any(imbalance.is_too_much for imbalance in compared.imbalances)


def has_enough_samples(compared: Comparison, question: Question) -> bool:
    """Return whether both algorithms have enough samples, regardless of their quality."""
    effect = compared.difference
    return effect is not None and min(effect.treatment.n, effect.control.n) >= question.least_samples


def together(comparisons: Mapping[str, Comparison], question: Question) -> tuple[str, str]:
    """Combine the comparisons of a part into one verdict and its reason.

    Metrics without enough samples do not count unless no metric has enough.
    """
    if not comparisons:
        return NOT_ENOUGH, "there are no samples"
    counting = [comparison for comparison in comparisons.values() if has_enough_samples(comparison, question)]
    counting = counting or list(comparisons.values())
    verdicts = {comparison.verdict for comparison in counting}
    winners = verdicts & {question.treatment, question.control}
    if len(winners) == 2:
        reasons = "; but ".join(comparison.reason for comparison in comparisons.values())
        return NO_DIFFERENCE, f"neither is better for all sizes: {reasons}"
    verdict = next(wanted for wanted in (*winners, NOT_COMPARABLE, NOT_ENOUGH, NO_DIFFERENCE) if wanted in verdicts)
    deciding = {comparison.metric: comparison.reason for comparison in counting if comparison.verdict == verdict}
    remarks = [_remark(compared, question) for metric, compared in comparisons.items() if metric not in deciding]
    return verdict, "; ".join([*deciding.values(), *remarks])


def _remark(compared: Comparison, question: Question) -> str:
    remark = REMARKS[compared.verdict] if has_enough_samples(compared, question) else "too few samples of {}"
    return remark.format(compared.metric.replace("_", " "))


def _judged(compared: Comparison, p_adjusted: float | None, question: Question) -> tuple[str, str]:
    metric, difference = compared.metric, compared.difference
    if lacking := _lacking(compared, question):
        return NOT_ENOUGH, lacking
    assert difference, "nothing is lacking"
    if unlike := [imbalance for imbalance in compared.imbalances if imbalance.is_too_much]:
        return NOT_COMPARABLE, " and ".join(_unlike(imbalance, question) for imbalance in unlike)
    effect = difference.median
    assert effect, "nothing is lacking"
    benefit = gain(metric, effect)
    summary = _median_text(metric, effect, question)
    if p_adjusted is not None and p_adjusted <= question.false_share:
        if max(abs(benefit.low), abs(benefit.high)) < NEGLIGIBLE:
            return NO_DIFFERENCE, f"the difference is negligible: {summary}"
        if compared.networks and (carrier := compared.networks.carrier(effect)):
            return NOT_ENOUGH, f"{summary}, but most of this is due to one network: {_of_network(carrier)}"
        winner = question.treatment if benefit.value > 0 else question.control
        return winner, summary + _of_the_mean(metric, difference, question)
    if -question.margin < benefit.low and benefit.high < question.margin:
        return NO_DIFFERENCE, f"any difference is smaller than the margin: {summary}"
    return NOT_ENOUGH, f"{summary}: {_more(effect, question)}"


def _lacking(compared: Comparison, question: Question) -> str:
    """Return the missing requirement; empty if all are met."""
    difference, networks, samples = compared.difference, compared.networks, SAMPLES[compared.metric]
    if difference is None:
        return f"{samples} are missing for {question.treatment} or {question.control}"
    arms = {question.treatment: difference.treatment, question.control: difference.control}
    for name, arm in arms.items():
        if arm.n < question.least_samples:
            return f"only {arm.n:,} {samples} with {name}; {question.least_samples:,} are needed"
    if networks and networks.are_few:
        largest = f"; {_of_network(networks.heavy[0])}" if networks.heavy else ""
        return (
            f"the {samples} are of too few networks: {networks.count:,}, equivalent to {networks.effective:.3g} of"
            f" equal weight; {MIN_NETWORKS:.0f} are needed{largest}"
        )
    for name, arm in arms.items():
        if arm.groups < MIN_GROUPS:
            return (
                f"the {samples} with {name} come from too few independent networks and times:"
                f" {arm.groups} groups; {MIN_GROUPS} are needed"
            )
    return "" if difference.median else "its uncertainty cannot be estimated"


def _of_network(heavy: Heavy) -> str:
    return f"{heavy.network} has {heavy.share:.0%} of the samples of an algorithm"


def _median_text(metric: str, effect: Effect, question: Question) -> str:
    """Describe the effect on the median.

    >>> _median_text("throughput", Effect(1.07, 1.05, 1.09, 0.0), Question())
    'at the median bbr gets 7 % more throughput (5 to 9 %)'
    """
    benefit = gain(metric, effect)
    better, worse, verb = WORDS[metric]
    if benefit.value < 0:
        value, low, high, what = -benefit.value, -benefit.high, -benefit.low, worse
    else:
        value, low, high, what = benefit.value, benefit.low, benefit.high, better
    ends = f"{_per_cent(low)} to {_per_cent(high)} %"
    return f"at the median {question.treatment} {verb} {_per_cent(value)} % {what} ({ends})"


def _per_cent(share: float) -> str:
    """Format a share as a percentage: one decimal below ten, unless it is zero.

    >>> _per_cent(0.0712), _per_cent(0.12345), _per_cent(-0.002)
    ('7.1', '12', '-0.2')
    """
    number = share * 100
    text = (f"{number:.0f}" if abs(number) >= 9.95 else f"{number:.1f}").removesuffix(".0")
    return "0" if text == "-0" else text


def _of_the_mean(metric: str, difference: Difference, question: Question) -> str:
    """Return a remark if the mean differs significantly, in the direction opposite to that of the median."""
    median, mean = difference.median, difference.mean
    if not median or not mean or mean.overlaps(1.0) or (mean.ratio > 1) == (median.ratio > 1):
        return ""
    benefit = gain(metric, mean)
    better, worse, _ = WORDS[metric]
    what = better if benefit.value > 0 else worse
    return f", but in the mean {_per_cent(abs(benefit.value))} % {what}: a few samples dominate the mean"


def _unlike(imbalance: Imbalance, question: Question) -> str:
    return f"{question.treatment}'s {PROPERTIES[imbalance.of].format(imbalance.ratio)}"


def _more(effect: Effect, question: Question) -> str:
    half = math.log(effect.high / effect.low) / 2
    times = (half / math.log1p(question.margin)) ** 2
    if times <= 1.5:
        return "slightly more records would be enough to judge it"
    return f"about {times:.0f} times as many records would detect a difference of {_per_cent(question.margin)} %"
