"""An axis of a sweep: keys that are set together."""

from dataclasses import dataclass

Value = bool | int | float | str
"""A value that a key of a scenario can have at one point of a sweep."""


@dataclass(frozen=True)
class Axis:
    """Keys that a sweep sets together, and the values that it tries.

    A key with a list of values is an axis of its own; the columns of a file of rows are one axis.
    """

    addresses: tuple[str, ...]
    choices: tuple[tuple[Value, ...], ...]
    """Each has a value per address."""
