"""Parses `--set KEY=VALUE`: values are TOML, and quotes are optional for texts outside of lists."""

import tomllib
from collections.abc import Sequence

from thalweg.errors import ThalwegError
from thalweg.scenario.document import TomlValue


def parse(settings: Sequence[str]) -> dict[str, TomlValue]:
    """Parse settings.

    Raises:
        ThalwegError: If one is not KEY=VALUE, or its value is a table or a malformed list.

    >>> parse(["path.buffer=2bdp", "path.loss=[0, 0.01]", 'name="x"'])
    {'path.buffer': '2bdp', 'path.loss': [0, 0.01], 'name': 'x'}
    """
    parsed: dict[str, TomlValue] = {}
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


def _value(text: str, setting: str) -> TomlValue:
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except (ValueError, KeyError, RecursionError):
        if not (text.startswith("[") and text.endswith("]")):
            return text
        raise ThalwegError(
            "bad-setting",
            f"`--set {setting}` is not a list in TOML",
            place="--set",
            found=setting,
            expected="quotes around the texts of a list",
            hint="""as in --set 'path.rtt=["20ms", "80ms"]'""",
        ) from None
    if isinstance(value, bool | int | float | str | list):
        return value
    if isinstance(value, dict):
        raise ThalwegError(
            "bad-setting",
            f"`--set {setting}` is a table",
            place="--set",
            found=setting,
            expected="a number, a text, true or false, or a list of them to sweep over",
            hint="set the keys of the table one by one",
        )
    return text  # TOML would parse this text as a date or a time of day
