"""What to beware of where the traffic is that of one or few networks, or where the receivers set the pace."""

from collections.abc import Iterable, Sequence

from thalweg.advise.answers.answer import Caution, Comparison, Part
from thalweg.advise.judgement import verdicts
from thalweg.advise.question import Question
from thalweg.advise.statistics.networks import MIN_NETWORKS, Heavy

OFTEN = 0.1
"""From this share of the samples on, a limit or a missing address is worth a caution."""


def of_networks(parts: Sequence[Part], overall: Part, question: Question) -> Iterable[Caution]:
    """Warn about classes that one or few networks decide, about unknown addresses, and about receivers."""
    yield from _few(parts, question)
    yield from _carried(parts, question)
    yield from _unknown(overall)
    yield from _receiver_limited(parts, question)


def _few(parts: Sequence[Part], question: Question) -> Iterable[Caution]:
    found = [
        (each.networks.effective or 0.0, part.title, each)
        for part, each in _with_enough_samples(parts, question)
        if each.networks and each.networks.are_few
    ]
    if not found:
        return
    effective, title, worst = min(found, key=lambda each: each[:2])
    assert worst.networks, "it was asked for"
    largest = f": {_share(worst.networks.heavy[0])}" if worst.networks.heavy else ""
    yield Caution(
        "few-networks",
        f"in {title} few networks have most of the samples{largest}. They tell as much as {effective:.3g} networks of"
        f" equal weight; {MIN_NETWORKS:.0f} are needed. Hours of one network say nothing of other networks, so the"
        " class gets no verdict and no rule. --by prefix judges each network alone.",
        _titles(title for _, title, _ in found),
    )


def _carried(parts: Sequence[Part], question: Question) -> Iterable[Caution]:
    found: list[tuple[str, Heavy]] = []
    for part, each in _with_enough_samples(parts, question):
        effect = each.difference.median if each.difference else None
        is_sure = each.p_adjusted is not None and each.p_adjusted <= question.false_share
        if effect and is_sure and each.networks and (carrier := each.networks.carrier(effect)):
            found.append((part.title, carrier))
    if found:
        title, carrier = max(found, key=lambda each: each[1].share)
        yield Caution(
            "one-network",
            f"in {title} one network carries the difference: {_share(carrier)}, and without it most of the difference"
            " is gone. So the class gets no verdict and no rule. --by prefix judges each network alone.",
            _titles(title for title, _ in found),
        )


def _unknown(overall: Part) -> Iterable[Caution]:
    shares = [each.networks.unknown_share for each in overall.comparisons.values() if each.networks]
    if shares and (most := max(shares)) >= OFTEN:
        yield Caution(
            "unknown-networks",
            f"{most:.0%} of the samples have no address (remote_address). How many networks these are is unknown: one"
            " of them may decide a verdict. Intervals take each hour of them for independent of the others.",
        )


def _receiver_limited(parts: Sequence[Part], question: Question) -> Iterable[Caution]:
    found = [
        (max(share or 0.0 for share in each.receiver_limited), part.title, each)
        for part, each in _with_enough_samples(parts, question)
    ]
    found = [each for each in found if each[0] >= OFTEN]
    if found:
        _, title, worst = max(found, key=lambda each: each[:2])
        treatment, control = (f"{share or 0.0:.0%}" for share in worst.receiver_limited)
        yield Caution(
            "receiver-limited",
            f"in {title} the receiver's window was in the way for half of the time or longer in {treatment} of"
            f" {question.treatment}'s samples and in {control} of {question.control}'s. No algorithm makes these"
            " faster, so a difference looks smaller than it is on the network. --without-receiver-limited leaves them"
            " out; if the two shares differ, what is left is no longer alike.",
            _titles(title for _, title, _ in found),
        )


def _with_enough_samples(parts: Sequence[Part], question: Question) -> Iterable[tuple[Part, Comparison]]:
    for part in parts:
        for each in part.comparisons.values():
            if verdicts.has_enough_samples(each, question):
                yield part, each


def _titles(found: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(found))


def _share(heavy: Heavy) -> str:
    return f"{heavy.network} has {heavy.share:.0%} of the samples of an algorithm"
