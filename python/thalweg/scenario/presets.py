"""Presets: parameters of networks for [path], and of network cards for hosts."""

import tomllib
from functools import cache
from importlib.resources import files

from thalweg.scenario.document import Raw, TomlValue

CAPACITIES = ("rate", "steps", "trace")
"""Keys of a link's capacity; any of them replaces the preset's capacity, except steps without a rate."""


@cache
def _presets(kind: str) -> dict[str, dict[str, TomlValue]]:
    return tomllib.loads((files("thalweg") / "data" / f"{kind}_presets.toml").read_text("utf-8"))


def source(address: str, name: str) -> str | None:
    """Return the source of a preset's figures; None for keys that are not presets.

    >>> source("path.rtt", "10ms")
    """
    kind, _, key = address.partition(".")
    if kind not in ("path", "host") or key.rpartition(".")[2] != "preset":
        return None
    return str(_presets(kind)[name]["source"])


def expand(key: str, value: TomlValue) -> TomlValue:
    """Return `path` or `host` with the preset's values for missing keys; other keys are unchanged.

    >>> expand("path", {"preset": "geo", "rate": "20Mbps"})["rtt"]
    '650ms'
    >>> expand("host", {"sender": {"preset": "nic-2019"}, "receiver": {}})["sender"]["offloads"]
    True
    """
    if key == "host" and isinstance(value, dict):
        return {name: _expand(key, host) for name, host in value.items()}
    return _expand(key, value) if key == "path" else value


def _expand(kind: str, table: TomlValue) -> TomlValue:
    if not isinstance(table, dict) or table.get("preset") not in _presets(kind):
        return table
    preset = _presets(kind)[str(table["preset"])][kind]
    assert isinstance(preset, dict), "a table in the data file"
    return _merge(preset, table)


def _merge(preset: Raw, table: Raw) -> Raw:
    steps = table.get("steps")
    keeps_rate = isinstance(steps, list) and not any(isinstance(step, dict) and "rate" in step for step in steps)
    own = [key for key in CAPACITIES if key in table and not (key == "steps" and keeps_rate)]
    replaced = CAPACITIES if own else ()
    merged = {key: value for key, value in preset.items() if key not in replaced} | table
    below, own_below = preset.get("reverse"), table.get("reverse")
    if isinstance(below, dict) and isinstance(own_below, dict):
        merged["reverse"] = _merge(below, own_below)
    return merged
