"""Cautions about traffic of few or unknown networks, and about receiver-limited traffic."""

from collections.abc import Iterable, Sequence

from thalweg.advise.answers.answer import Caution, Comparison, Part
from thalweg.advise.judgement import verdicts
from thalweg.advise.question import Question
from thalweg.advise.statistics.networks import MIN_NETWORKS, Heavy

OFTEN = 0.1
"""Minimum fraction of receiver-limited samples, or of samples without an address, for a caution."""


def of_networks(parts: Sequence[Part], overall: Part, question: Question) -> Iterable[Caution]:
    """Warn about dominant networks, unknown addresses, and receiver limits."""
    yield from _few(parts, question)
    yield from _carried(parts, question)
    yield from _unknown(overall)
    yield from _receiver_limited(parts, question)


def _few(parts: Sequence[Part], question: Question) -> Iterable[Caution]:
    with_few = [
        (comparison.networks.effective or 0.0, part.title, comparison)
        for part, comparison in _with_enough_samples(parts, question)
        if comparison.networks and comparison.networks.are_few
    ]
    if not with_few:
        return
    effective, title, worst = min(with_few, key=lambda comparison: comparison[:2])
    assert worst.networks, "it was asked for"
    largest = f": {_share(worst.networks.heavy[0])}" if worst.networks.heavy else ""
    yield Caution(
        "few-networks",
        f"in {title} few networks have most of the samples{largest}. They are equivalent to {effective:.3g} networks of"
        f" equal weight; {MIN_NETWORKS:.0f} are needed. One network is not evidence about others, so its"
        f" {_words(worst)} has no verdict. To judge each network alone, use --by prefix.",
        _titles(title for _, title, _ in with_few),
    )


def _carried(parts: Sequence[Part], question: Question) -> Iterable[Caution]:
    carried: list[tuple[str, Comparison, Heavy]] = []
    for part, comparison in _with_enough_samples(parts, question):
        effect = comparison.difference.median if comparison.difference else None
        is_sure = comparison.p_adjusted is not None and comparison.p_adjusted <= question.false_share
        if effect and is_sure and comparison.networks and (carrier := comparison.networks.carrier(effect)):
            carried.append((part.title, comparison, carrier))
    if carried:
        title, comparison, carrier = max(carried, key=lambda entry: entry[2].share)
        yield Caution(
            "one-network",
            f"in {title} most of the difference is due to one network: {_share(carrier)}. Its {_words(comparison)}"
            " therefore has no verdict. To judge each network alone, use --by prefix.",
            _titles(title for title, *_ in carried),
        )


def _unknown(overall: Part) -> Iterable[Caution]:
    shares = [comparison.networks.unknown_share for comparison in overall.comparisons.values() if comparison.networks]
    if shares and (largest := max(shares)) >= OFTEN:
        yield Caution(
            "unknown-networks",
            f"{largest:.0%} of the samples have no address (remote_address). The number of networks is unknown,"
            " so a single network may decide a verdict. Intervals treat the hours of these samples as independent.",
        )


def _receiver_limited(parts: Sequence[Part], question: Question) -> Iterable[Caution]:
    limited = [
        (max(share or 0.0 for share in comparison.receiver_limited), part.title, comparison)
        for part, comparison in _with_enough_samples(parts, question)
    ]
    limited = [comparison for comparison in limited if comparison[0] >= OFTEN]
    if limited:
        _, title, worst = max(limited, key=lambda comparison: comparison[:2])
        treatment, control = (f"{share or 0.0:.0%}" for share in worst.receiver_limited)
        yield Caution(
            "receiver-limited",
            f"in {title} the receiver's window limited {treatment} of the samples of {question.treatment} and {control}"
            f" of those of {question.control} for at least half of the time. No algorithm makes these faster, so"
            " differences appear smaller than they are on the network. --without-receiver-limited leaves them out; if"
            " the two shares differ, the remaining samples are not comparable.",
            _titles(title for _, title, _ in limited),
        )


def _with_enough_samples(parts: Sequence[Part], question: Question) -> Iterable[tuple[Part, Comparison]]:
    for part in parts:
        for comparison in part.comparisons.values():
            if verdicts.has_enough_samples(comparison, question):
                yield part, comparison


def _titles(titles: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(titles))


def _words(comparison: Comparison) -> str:
    return comparison.metric.replace("_", " ")


def _share(heavy: Heavy) -> str:
    return f"{heavy.network} has {heavy.share:.0%} of the samples of an algorithm"
