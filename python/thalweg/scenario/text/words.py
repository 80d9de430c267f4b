"""Parts of error messages: lists of choices, and suggestions for misspelled words."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

ALIASES = {
    "bandwidth": "rate",
    "bw": "rate",
    "capacity": "rate",
    "delay": "rtt",
    "latency": "rtt",
    "queue_size": "buffer",
    "qdisc": "queue",
    "aqm": "queue",
    "algorithm": "cc",
    "congestion_control": "cc",
    "congestion": "cc",
    "runs": "repetitions",
    "repeats": "repetitions",
    "description": "about",
    "title": "about",
    "time": "duration",
    "flows": "flow",
    "hosts": "host",
    "bytes": "size",
}
"""Synonyms of keys, which take precedence over keys with a similar spelling."""

NAMES = {"bbr1": "bbr", "bbrv1": "bbr", "newreno": "reno"}


def one_of(choices: Iterable[str]) -> str:
    """Return the choices as text.

    >>> one_of(["fifo"]), one_of(["fifo", "red"])
    ('fifo', 'one of fifo, red')
    """
    listed = list(choices)
    return listed[0] if len(listed) == 1 else "one of " + ", ".join(listed)


def closest(name: str, choices: Sequence[str]) -> str | None:
    """Return the choice that was probably meant; None if none is similar.

    >>> closest("bufer", ["buffer", "rate"]), closest("Latency", ["rtt", "rate"]), closest("x", ["rtt"])
    ('buffer', 'rtt', None)
    """
    plain = name.lower().replace("-", "_")
    by_plain = {choice.lower().replace("-", "_"): choice for choice in choices}
    for guess in (plain, ALIASES.get(plain), NAMES.get(plain.replace("_", ""))):
        if guess in by_plain:
            return by_plain[guess]
    close = get_close_matches(plain, by_plain, n=1, cutoff=0.6)
    return by_plain[close[0]] if close else None


def did_you_mean(name: str, choices: Sequence[str]) -> str | None:
    """Return a hint with a similar choice; None if no choice is similar."""
    guess = closest(name, choices)
    return f"did you mean `{guess}`?" if guess else None
