"""Suggests the quantity that a malformed text or number was probably meant to be, if the unit suits the key.

A number without a unit gets the first of its key's units that results in a usual value of the key.
"""

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal

from thalweg.scenario.document import TomlValue
from thalweg.scenario.positions import KeyPath
from thalweg.scenario.text import quantities
from thalweg.scenario.text.texts import PARSERS, UNITS

SCALES: Mapping[str, int] = quantities.TIMES | quantities.SIZES | quantities.RATES

SECONDS = (("s", "1ms", "1h"), ("ms", "1s", "1h"))
SHORT = (("s", "1us", "999ms"), ("ms", "1ms", "10s"), ("us", "1ms", "10s"))
PAUSE = (("s", "1ms", "9s"), ("ms", "1ms", "10s"))
TINY = (("s", "1ns", "9ms"), ("us", "1ns", "10ms"))
RATE = (("bps", "100kbps", "1000Gbps"), ("Mbps", "10kbps", "1Gbps"))
BYTES = (("B", "1kB", "100GB"),)
LARGE = (*BYTES, ("MB", "1MB", "999MB"))
SMALL = (*BYTES, ("kB", "1kB", "999kB"))

USUAL: Mapping[str, Sequence[tuple[str, str, str]]] = {
    "duration": SECONDS,
    "start": SECONDS,
    "stop": SECONDS,
    "at": SECONDS,
    "gap": PAUSE,
    "think": PAUSE,
    "cpu_per_packet": TINY,
    "cpu_per_ack": TINY,
    "delay_jitter": TINY,
    "interrupt_coalescing": TINY,
    "sizes": SMALL,
    "quantum": (("B", "1B", "1MB"),),
    "flow.size": LARGE,
    "requests.size": SMALL,
    "sndbuf_max": LARGE,
    "rcvbuf_max": LARGE,
}
"""Units for numbers without a unit by key, each with the smallest and the largest usual value."""

BY_FORMAT: Mapping[str, Sequence[tuple[str, str, str]]] = {
    "rate": RATE,
    "arrival-rate": RATE[:1],
    "size": LARGE,
    "size-or-unlimited": LARGE,
    "buffer": (),
    "time": SHORT,
    "time-or-rtt": SHORT,
}
"""Units for numbers without a unit by format, for keys that are not in `USUAL`."""

MAX_PACKETS = 9999
"""Number above which a value without a unit means bytes, not packets."""

OTHER_UNITS: Mapping[str, Sequence[str]] = {
    "sec": ("s",), "secs": ("s",), "second": ("s",), "seconds": ("s",), "m": ("ms", "min"), "mins": ("min",),
    "minute": ("min",), "minutes": ("min",), "msec": ("ms",), "msecs": ("ms",), "milliseconds": ("ms",),
    "usec": ("us",), "usecs": ("us",), "µs": ("us",), "μs": ("us",), "microseconds": ("us",), "nsec": ("ns",),
    "bit/s": ("bps",), "b/s": ("bps",), "kbit/s": ("kbps",), "mbit/s": ("Mbps",), "gbit/s": ("Gbps",), "bit": ("bps",),
    "kbit": ("kbps",), "mbit": ("Mbps",), "gbit": ("Gbps",), "k": ("kB", "kbps"),
    "g": ("GB", "Gbps"), "bytes": ("B",), "byte": ("B",), "pkts": ("packets",), "pkt": ("packets",), "p": ("packets",),
    "rtts": ("rtt",), "bdps": ("bdp",), "x": ("bdp",), "hz": ("/s",), "per second": ("/s",), "1/s": ("/s",),
}  # fmt: skip
"""Other spellings of units, in lower case."""

MULTIPLES: Mapping[str, tuple[int, str]] = {
    "h": (60, "min"), "hr": (60, "min"), "hrs": (60, "min"), "hour": (60, "min"), "hours": (60, "min"),
    "d": (1440, "min"), "day": (1440, "min"), "days": (1440, "min"),
    "B/s": (8, "bps"), "kB/s": (8, "kbps"), "KB/s": (8, "kbps"), "MB/s": (8, "Mbps"), "GB/s": (8, "Gbps"),
    "TB": (1000, "GB"), "Tbps": (1000, "Gbps"), "Tbit/s": (1000, "Gbps"),
}  # fmt: skip
"""Unsupported units, as multiples of supported ones."""

ENDLESS = ("inf", "infinite", "infinity", "endless", "none", "max", "-1")

_NUMBER = re.compile(r"(\d{1,18}(?:\.\d{0,18})?|\.\d{1,18})(?:[eE]([+-]?\d{1,2}))?")


def quantity_hint(value: TomlValue, format_: str, keys: KeyPath = ()) -> str | None:
    """Suggest a similar quantity; None if no similar one exists.

    Args:
        value: Value in the scenario.
        format_: Format of the schema, such as `rate`.
        keys: The key path: the unit depends on the key.

    >>> quantity_hint("40", "rate"), quantity_hint("45 sec", "time"), quantity_hint(45, "time")
    ('did you mean "40Mbps"?', 'did you mean "45s"?', 'did you mean "45ms"?')
    >>> quantity_hint(20, "time", ("duration",)), quantity_hint(0.045, "time", ("path", "rtt"))
    ('did you mean "20s"?', 'did you mean "45ms"?')
    >>> quantity_hint(10_000_000, "rate"), quantity_hint(100, "buffer"), quantity_hint("10MB/s", "rate")
    ('did you mean "10Mbps"?', 'did you mean "100packets"?', 'did you mean "80Mbps"?')
    """
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    if isinstance(value, int) and value.bit_length() > 64:
        return None
    typed = text = str(value).strip()
    if format_ == "size-or-unlimited" and text.lower() in ENDLESS:
        return 'did you mean "unlimited"?'
    text = re.sub(r"^(\d+),(\d{1,2}|\d{4,})(?=\D|$)", r"\1.\2", text)  # a decimal comma; 1,000 is ambiguous
    match = _NUMBER.match(text)
    if not match or (match[2] and abs(int(match[2])) > 18):
        return None
    number, unit = Decimal(match[0]), text[match.end() :].strip()
    close = _of_unit(number, unit, format_, keys) if unit else _without_unit(number, format_, keys)
    return f'did you mean "{close}"?' if close and close != typed and _is_quantity(close, format_) else None


def _is_quantity(text: str, format_: str) -> bool:
    try:
        PARSERS[format_](text)
    except quantities.QuantityError:
        return False
    return True


def _without_unit(number: Decimal, format_: str, keys: KeyPath) -> str | None:
    is_whole = number == number.to_integral_value()
    if number == 0:
        return {"time": "0s", "time-or-rtt": "0s"}.get(format_)
    if format_ == "buffer":
        if not is_whole:
            return f"{_plain(number)}bdp" if number < 100 else None
        if number <= MAX_PACKETS:
            return f"{_plain(number)}packet{'' if number == 1 else 's'}"
        return _written(number, "B")
    if format_ == "time-or-rtt" and is_whole and number <= 5:
        return f"{_plain(number)}rtt"
    for unit, smallest, largest in _usual(format_, keys):
        if _base(smallest) <= number * SCALES[unit] <= _base(largest):
            return _written(number, unit)
    return f"{_plain(number)}/s" if format_ == "arrival-rate" and number < 100_000 else None


def _usual(format_: str, keys: KeyPath) -> Sequence[tuple[str, str, str]]:
    names = [key for key in keys if isinstance(key, str)]
    last = names[-1] if names else ""
    for key in (last, f"{'requests' if 'requests' in names else names[0] if names else ''}.{last}"):
        if key in USUAL:
            return USUAL[key]
    return BY_FORMAT[format_]


def _of_unit(number: Decimal, unit: str, format_: str, keys: KeyPath) -> str | None:
    """Correct a unit: wrong case, another spelling, or a multiple of a known unit."""
    units = UNITS[format_]
    if unit == "%" and format_ == "buffer":
        return f"{_plain(number / 100)}bdp"
    if unit in MULTIPLES or unit.lower() in MULTIPLES:
        factor, unit_ = MULTIPLES.get(unit) or MULTIPLES[unit.lower()]
        return _written(number * factor, unit_) if unit_ in units else None
    if unit in ("M", "Mb", "Mb/s"):
        candidates: Sequence[str] = ("Mbps",) if unit != "M" or "Mbps" in units else ("MB",)
    elif same := [unit_ for unit_ in units if unit_.lower() == unit.lower()]:
        # "MBps" and "mB" are ambiguous (bits or bytes, milli or mega); they count as units in the wrong case.
        candidates = same[:1]
    else:
        candidates = OTHER_UNITS.get(unit.lower(), ())
    candidates = [candidate for candidate in candidates if candidate in units]
    if not candidates:
        return _compound(f"{number}{unit}") if "min" in units else None
    if len(candidates) > 1 and _usual(format_, keys) is SECONDS:
        return f"{_plain(number)}{candidates[-1]}"
    is_long = number >= 10**6 and candidates[0] in SCALES  # such as 1e6bps
    return _written(number, candidates[0]) if is_long else f"{_plain(number)}{candidates[0]}"


def _compound(text: str) -> str | None:
    """Return the sum of a time in several units, such as 1m30s."""
    scales = {"h": 3600, "m": 60, "min": 60, "s": 1}
    parts = re.findall(r"(\d{1,9})(h|min|m|s)", text.replace(" ", ""))
    if "".join(number + unit for number, unit in parts) != text.replace(" ", "") or len(parts) < 2:
        return None
    return f"{sum(int(number) * scales[unit] for number, unit in parts)}s"


def _base(text: str) -> Decimal:
    match = _NUMBER.match(text)
    assert match, "a constant of this file"
    unit = text[match.end() :]
    return Decimal(match[0]) * (3600 * 10**9 if unit == "h" else SCALES[unit])


def _written(number: Decimal, unit: str) -> str:
    """Return a quantity in the largest unit of its kind in which it is at least 1 and has at most three decimals;
    otherwise, and for minutes, in the unit `unit`.
    """
    kind = next(units for units in (quantities.RATES, quantities.SIZES, quantities.TIMES) if unit in units)
    if unit == "min":
        return f"{_plain(number)}min"
    value = number * kind[unit]
    for name, size in sorted(kind.items(), key=lambda name_and_size: -name_and_size[1]):
        in_unit = value / size
        if name != "min" and in_unit >= 1 and in_unit == round(in_unit, 3):
            return f"{_plain(in_unit)}{name}"
    return f"{_plain(number)}{unit}"


def _plain(number: Decimal) -> str:
    """Return a number without an exponent and without trailing zeros.

    >>> _plain(Decimal("45.0")), _plain(Decimal("1E+3")), _plain(Decimal("0.50"))
    ('45', '1000', '0.5')
    """
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
