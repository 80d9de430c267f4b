"""Parses `--set KEY=VALUE`: values are TOML, and quotes are optional for texts."""

import tomllib
from collections.abc import Sequence

from thalweg.errors import ThalwegError
from thalweg.scenario.document import Value


def parse(settings: Sequence[str]) -> dict[str, Value]:
    """Parse settings.

    Raises `ThalwegError` if one is not KEY=VALUE, or its value is a list or a table.

    >>> parse(["path.buffer=2bdp", "path.loss=0.01", 'name="x"'])
    {'path.buffer': '2bdp', 'path.loss': 0.01, 'name': 'x'}
    """
    parsed: dict[str, Value] = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or not key.strip():
            raise ThalwegError(
                "bad-setting",
                f"`--set {setting}` is not KEY=VALUE",
                place="--set",
                found=setting,
                expected="KEY=VALUE",
                hint="as in --set path.buffer=2bdp",
            )
        parsed[key.strip()] = _value(value.strip(), setting)
    return parsed


def _value(text: str, setting: str) -> Value:
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except (ValueError, KeyError, RecursionError):
        return text
    if isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | dict):
        raise ThalwegError(
            "bad-setting",
            f"`--set {setting}` is not a single value",
            place="--set",
            found=setting,
            expected="a number, a text, or true or false",
            hint="to try several values, use [sweep] in the scenario",
        )
    return text  # TOML would parse this text as a date or a time of day
