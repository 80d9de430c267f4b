"""Presets of [path]: parameters of kinds of access networks."""

import tomllib
from functools import cache
from importlib.resources import files

from thalweg.scenario.document import Raw, TomlValue

CAPACITIES = ("rate", "steps", "trace")
"""Keys of which a scenario sets one: any of them replaces a preset's."""


@cache
def _presets() -> dict[str, dict[str, TomlValue]]:
    return tomllib.loads((files("thalweg") / "data" / "path_presets.toml").read_text("utf-8"))


def source(name: str) -> str:
    """Return where the figures of a preset come from."""
    return str(_presets()[name]["source"])


def expand(path: TomlValue) -> TomlValue:
    """Return a path with the keys of its preset that it does not set itself.

    >>> expand({"preset": "geo", "rate": "20Mbps"})["rtt"]
    '650ms'
    """
    if not isinstance(path, dict) or path.get("preset") not in _presets():
        return path
    preset = _presets()[str(path["preset"])]["path"]
    assert isinstance(preset, dict), "a table in the data file"
    return _merge(preset, path)


def _merge(preset: Raw, own: Raw) -> Raw:
    replaced = CAPACITIES if any(key in own for key in CAPACITIES) else ()
    merged = {key: value for key, value in preset.items() if key not in replaced} | own
    below, own_below = preset.get("reverse"), own.get("reverse")
    if isinstance(below, dict) and isinstance(own_below, dict):
        merged["reverse"] = _merge(below, own_below)
    return merged
