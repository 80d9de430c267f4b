"""The small arts of an error message: lists of words, and the word that was probably meant."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any

from thalweg.scenario.texts import UNITS, USUAL_UNIT

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
"""Other words for keys that no spelling distance finds."""

NAMES = {"bbr1": "bbr", "bbrv1": "bbr", "newreno": "reno"}
"""Other names of algorithms."""


def one_of(choices: Iterable[str]) -> str:
    """Write the choices.

    >>> one_of(["fifo"]), one_of(["fifo", "red"])
    ('fifo', 'one of fifo, red')
    """
    listed = list(choices)
    return listed[0] if len(listed) == 1 else "one of " + ", ".join(listed)


def meant(given: str, choices: Sequence[str]) -> str | None:
    """Tell which of the choices was probably meant.

    >>> meant("bufer", ["buffer", "rate"]), meant("Latency", ["rtt", "rate"]), meant("x", ["rtt"])
    ('buffer', 'rtt', None)
    """
    plain = given.lower().replace("-", "_")
    by_plain = {choice.lower().replace("-", "_"): choice for choice in choices}
    for guess in (plain, ALIASES.get(plain), NAMES.get(plain.replace("_", ""))):
        if guess in by_plain:
            return by_plain[guess]
    close = get_close_matches(plain, by_plain, n=1, cutoff=0.6)
    return by_plain[close[0]] if close else None


def did_you_mean(given: str, choices: Sequence[str]) -> str | None:
    """Ask whether a close choice was meant, if there is one."""
    guess = meant(given, choices)
    return f"did you mean `{guess}`?" if guess else None


def quantity_hint(given: Any, format_: str) -> str | None:
    """Ask whether a close quantity was meant, if there is one.

    >>> quantity_hint("40", "rate"), quantity_hint("45 sec", "time"), quantity_hint(45, "time")
    ('did you mean "40Mbps"?', 'did you mean "45s"?', 'did you mean "45ms"?')
    """
    text = str(given).strip()
    number = text.rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZµ/ ")
    unit = text[len(number) :].strip()
    if isinstance(given, bool) or not number.replace(".", "", 1).isdigit() or not number[0].isdigit():
        return None
    guess = _unit(unit, format_) if unit else USUAL_UNIT[format_]
    return f'did you mean "{number.rstrip(".")}{guess}"?' if guess and guess != unit else None


UNIT_ALIASES = {
    "sec": "s",
    "secs": "s",
    "second": "s",
    "seconds": "s",
    "msec": "ms",
    "usec": "us",
    "µs": "us",
    "m": "min",
    "bit/s": "bps",
    "kbit/s": "kbps",
    "mbit/s": "Mbps",
    "gbit/s": "Gbps",
    "kbit": "kbps",
    "mbit": "Mbps",
    "gbit": "Gbps",
    "k": "kB",
    "bytes": "B",
    "byte": "B",
    "pkts": "packets",
    "p": "packets",
    "rtts": "rtt",
    "bdps": "bdp",
    "hz": "/s",
}
"""Other spellings of units, in lower case."""


def _unit(unit: str, format_: str) -> str | None:
    units = UNITS[format_]
    # "MBps" and "mB" are ambiguous between bits and bytes or milli and mega; only a plain slip of case is repaired.
    same = [known for known in units if known.lower() == unit.lower()]
    alias = UNIT_ALIASES.get(unit.lower())
    return same[0] if same else alias if alias in units else None
