"""Phrases for the values that a sweep's points have in common or that vary."""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from thalweg.report.text.labels import joined
from thalweg.report.text.numbers import NARROW

T = TypeVar("T")

MAX_NAMED = 6

Phrase = Callable[[str], str]


def texts(values: Iterable[str]) -> str:
    """Return the distinct texts as alternatives.

    >>> texts(["cubic", "bbr", "cubic"]), texts("abcdefgh")
    ('cubic or bbr', 'a, b, c, d, e, or one of 3 others')
    """
    different = list(dict.fromkeys(values))
    if len(different) > MAX_NAMED:
        first_texts = different[: MAX_NAMED - 1]
        return f"{', '.join(first_texts)}, or one of {len(different) - len(first_texts)} others"
    if len(different) > 1 and any(", " in text for text in different):
        return "; or ".join(different)
    return joined(different, "or")


def amounts(numbers: Iterable[float], write: Callable[[float], str], phrase: Phrase = str) -> str:
    """Return distinct numbers as alternatives within a phrase; a common unit is written once.

    >>> percent = lambda ratio: f"{100 * ratio:g}\\u202f%"
    >>> amounts([0, 0.01], percent, lambda text: f"{text} are lost").replace("\\u202f", " ")
    '0 or 1 % are lost'
    >>> amounts([n / 100 for n in range(8)], percent, lambda text: f"{text} are lost").replace("\\u202f", " ")
    'between 0 and 7 % are lost (8 values)'
    """
    different = list(dict.fromkeys(numbers))
    if len(different) > MAX_NAMED:
        return phrase(f"between {_with_unit([min(different), max(different)], write, 'and')}") + (
            f" ({len(different)} values)"
        )
    return phrase(_with_unit(different, write, "or"))


def optional(
    numbers: Sequence[float | None], write: Callable[[float], str], phrase: Phrase, otherwise: str = "or not at all"
) -> str:
    """Return a phrase about numbers, some of which may be absent or zero; empty if all are.

    >>> optional([0, 2], str, lambda text: f"stops at {text} s"), optional([None], str, str)
    ('stops at 2 s, or not at all', '')
    """
    present = [number for number in numbers if number]
    if not present:
        return ""
    return amounts(present, write, phrase) + (f", {otherwise}" if len(present) < len(numbers) else "")


def _with_unit(values: Sequence[float], write: Callable[[float], str], last: str) -> str:
    written = [write(value) for value in values]
    if len(written) == 1:
        return written[0]
    split = [text.rpartition(NARROW) for text in written]
    units = {unit for value, (_, _, unit) in zip(values, split, strict=True) if value}
    numbers = ["0" if not value else number or unit for value, (number, _, unit) in zip(values, split, strict=True)]
    if len(units) == 1 and all(number for number, _, _ in split):
        return joined(numbers, last) + NARROW + units.pop()
    return joined(["0" if not value else text for value, text in zip(values, written, strict=True)], last)
