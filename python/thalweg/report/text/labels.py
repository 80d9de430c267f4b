"""Labels of sweep keys, their values, and points of a sweep."""

import re
from collections.abc import Mapping, Sequence

from thalweg.analysis import Axis

NOTHING = "\N{EN DASH}"

_QUANTITY = re.compile(r"([0-9.]+) ?([A-Za-z/]+)")


def key_title(key: str) -> str:
    """Return the label of a key of the scenario.

    >>> [key_title(key) for key in ("path.buffer", "path.loss.p", "flow.large.cc", "host.sender.cpu_share")]
    ['buffer', 'loss.p', 'cc of large', 'cpu_share of sender']
    """
    first, *rest = key.split(".")
    if first == "path" and rest:
        return ".".join(rest)
    if first in ("flow", "host") and len(rest) > 1:
        return f"{'.'.join(rest[1:])} of {rest[0]}"
    return key


def value_text(value: object) -> str:
    """Return a value of a sweep as it is written in the scenario; numbers have at most six significant digits.

    >>> [value_text(value) for value in ("0.5bdp", 0.01, 2.0, True)]
    ['0.5bdp', '0.01', '2', 'true']
    """
    if value is None:
        return NOTHING
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float | int) else str(value)


def short_values(axis: Axis) -> tuple[str, list[str]]:
    """Return the label of an axis and of its values for a chart; a common unit is moved into the axis label.

    >>> short_values(Axis("path.buffer", ["0.5bdp", "8bdp"], True))
    ('buffer (bdp)', ['0.5', '8'])
    >>> short_values(Axis("flow.a.cc", ["bbr", "cubic"], False))
    ('cc of a', ['bbr', 'cubic'])
    """
    texts = [value_text(value) for value in axis.values]
    matches = [_QUANTITY.fullmatch(text) for text in texts]
    units = {match[2] if match else "" for match in matches}
    if len(units) == 1 and "" not in units:
        return f"{key_title(axis.key)} ({units.pop()})", [match[1] for match in matches if match]
    return key_title(axis.key), texts


def setting(key: str, value: object) -> str:
    """Return one key with its value as text; for a flow's algorithm, the name of the flow replaces the key.

    >>> setting("flow.large.cc", "bbr"), setting("path.buffer", "1bdp")
    ('large bbr', 'buffer 1bdp')
    """
    parts = key.split(".")
    subject = parts[1] if parts[0] == "flow" and parts[2:] == ["cc"] else key_title(key)
    return f"{subject} {value_text(value)}"


def point_text(point: Mapping[str, object], axes: Sequence[Axis]) -> str:
    """Return the label of a sweep point, from the axes that vary."""
    return ", ".join(setting(axis.key, point.get(axis.key)) for axis in axes)


def joined(words: Sequence[str], last: str = "and") -> str:
    """Join words to a list, such as `a, b and c`.

    >>> joined(["a"]), joined(["a", "b"]), joined(["a", "b", "c"], "or")
    ('a', 'a and b', 'a, b or c')
    """
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} {last} {words[-1]}"
