"""An axis of a sweep: keys that are set together."""

from dataclasses import dataclass

Value = bool | int | float | str
"""A value that a key of a scenario can have at one point of a sweep."""


@dataclass(frozen=True)
class Axis:
    """Keys that a sweep sets together, and their values.

    Each key with a list of values is a separate axis; the columns of a file of rows form one axis.
    """

    addresses: tuple[str, ...]
    choices: tuple[tuple[Value, ...], ...]
    """Values of the axis, each with one value per key."""
