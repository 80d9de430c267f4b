"""Writes scenarios as TOML, formatted like handwritten files."""

import json
from collections.abc import Iterator

from thalweg import printable
from thalweg.scenario.document import Raw, TomlValue


def toml(raw: Raw) -> str:
    r"""Return a scenario as TOML.

    >>> print(toml({"name": "x", "path": {"rtt": "1ms", "steps": [{"at": "0s"}]}, "flow": [{"name": "a"}]}))
    name = "x"
    <BLANKLINE>
    [path]
    rtt = "1ms"
    steps = [
      { at = "0s" },
    ]
    <BLANKLINE>
    [[flow]]
    name = "a"
    <BLANKLINE>
    """
    return "\n".join(_lines(raw, ())) + "\n"


def _lines(table: Raw, key_path: tuple[str, ...]) -> Iterator[str]:
    below = {key: value for key, value in table.items() if _is_table(value, key_path)}
    for key, value in table.items():
        if key not in below:
            yield f"{_key(key)} = {toml_value(value)}"
    for key, value in below.items():
        name = ".".join(map(_key, (*key_path, key)))
        for entry in value if isinstance(value, list) else [value]:
            yield ""
            yield f"[[{name}]]" if isinstance(value, list) else f"[{name}]"
            yield from _lines(entry if isinstance(entry, dict) else {}, (*key_path, key))


def _is_table(value: TomlValue, key_path: tuple[str, ...]) -> bool:
    """Return whether a value needs a separate heading: tables and lists of tables at the top level."""
    if isinstance(value, list):
        return not key_path and bool(value) and all(isinstance(entry, dict) for entry in value)
    return isinstance(value, dict) and len(key_path) < 1


def _key(key: str) -> str:
    return key if key.replace("-", "").replace("_", "").isalnum() and key.isascii() else json.dumps(key)


def toml_value(value: TomlValue) -> str:
    """Return a value as TOML.

    >>> toml_value(["80ms", 0.1, True])
    '["80ms", 0.1, true]'
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return printable.json_text(json.dumps(value, ensure_ascii=False))
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_key(key)} = {toml_value(entry)}" for key, entry in value.items()) + " }"
    if isinstance(value, list):
        if any(isinstance(entry, dict) for entry in value):
            return "[\n" + "".join(f"  {toml_value(entry)},\n" for entry in value) + "]"
        return "[" + ", ".join(map(toml_value, value)) + "]"
    return str(value)
