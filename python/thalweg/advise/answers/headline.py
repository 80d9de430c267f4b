"""The answer in one sentence."""

from thalweg.advise.answers.answer import NO_DIFFERENCE, NOT_COMPARABLE, NOT_ENOUGH, Answer, percent

ONE_AT_A_TIME = ("alternating-hours", "one-after-the-other")
"""Codes of the cautions that apply if the algorithms ran one at a time."""


def headline(answer: Answer) -> str:
    """Return where the treatment helps, where it hurts, and what is unknown."""
    question = answer.question
    if not answer.dimensions:
        return f"{_capital(answer.overall.verdict)}: {answer.overall.reason}."
    verdicts = [part.verdict for part in answer.parts]
    samples_n = sum(part.n for part in answer.parts) + answer.too_small_n
    phrases = []
    for verdict, words in (
        (question.treatment, f"{question.treatment} is better in"),
        (question.control, f"{question.control} in"),
        (NO_DIFFERENCE, "there is no difference in"),
        (NOT_ENOUGH, "the records are inconclusive in"),
        (NOT_COMPARABLE, "they are not comparable in"),
    ):
        if n := verdicts.count(verdict):
            share = sum(part.n for part in answer.parts if part.verdict == verdict) / samples_n
            phrases.append(f"{words} {n} of {len(verdicts)} parts ({percent(share)} of the samples)")
    apart = [caution.text for caution in answer.cautions if caution.code in ONE_AT_A_TIME]
    if not phrases and apart:
        return _capital(apart[0])
    if not phrases:
        return (
            f"No part of the records has enough samples: {question.least_samples:,} each of {question.treatment} and of"
            f" {question.control} are needed."
        )
    return f"{_capital('; '.join(phrases))}."


def _capital(text: str) -> str:
    """Capitalise a sentence; names of algorithms keep their spelling.

    >>> _capital("there is no difference"), _capital("bbr is better")
    ('There is no difference', 'bbr is better')
    """
    return text[:1].upper() + text[1:] if text.startswith(("the ", "there ", "they ", "no ", "not ", "each ")) else text
