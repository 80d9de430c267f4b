"""An axis of a sweep: keys that are set together."""

from dataclasses import dataclass

Value = bool | int | float | str
"""A value that a key of a scenario can have at one point of a sweep."""


@dataclass(frozen=True)
class Axis:
    """Keys that a sweep sets together, and their values."""

    addresses: tuple[str, ...]
    choices: tuple[tuple[Value, ...], ...]
    """Values of the axis, each with one value per key."""
