"""Finds the keys of a scenario that differ from their defaults in the schema, or have none."""

from collections.abc import Iterator

from thalweg.scenario.document import Raw, TomlValue
from thalweg.scenario.places import Schema, name_of, other_keys, resolve, schema
from thalweg.scenario.positions import KeyPath
from thalweg.scenario.text.quantities import QuantityError
from thalweg.scenario.text.texts import PARSERS

LISTS_OF_TABLES = ("flow", "background")
"""Lists whose entries are compared key by key; other lists are compared as values."""


def departures(raw: Raw) -> dict[str, TomlValue]:
    """Return the values that differ from their defaults or have none, by address, in the order of the file.

    `raw` is a checked scenario without its sweep.

    >>> departures({"path": {"rate": "1Mbps", "jitter": "0ms", "loss": 0.5}, "background": [{"rate": "9Mbps"}]})
    {'path.rate': '1Mbps', 'path.loss': 0.5, 'background.0.rate': '9Mbps'}
    >>> departures({"flow": [{"name": "a", "cc": {"module": "mine.ko"}, "app": {"name": "web", "pages": 5}}]})
    {'flow.a.name': 'a', 'flow.a.cc.module': 'mine.ko', 'flow.a.app.name': 'web', 'flow.a.app.pages': 5}
    """
    return {name_of(key_path, raw): value for key_path, value in _inside(raw, schema(), ())}


def _inside(table: Raw, node: Schema, table_path: KeyPath) -> Iterator[tuple[KeyPath, TomlValue]]:
    node = _object(node)
    for key, value in table.items():
        key_path = (*table_path, key)
        inner = node.get("properties", {}).get(key) or other_keys(node)
        assert inner is not None, "a checked scenario has no unknown keys"
        if isinstance(value, dict):
            yield from _inside(value, inner, key_path)
        elif not table_path and key in LISTS_OF_TABLES and isinstance(value, list):
            for index, entry in enumerate(value):
                yield from _inside(entry, resolve(inner)["items"], (*key_path, index))
        elif not _is_default(value, inner):
            yield key_path, value


def _object(node: Schema) -> Schema:
    """Return the table branch of an optional table, or of a union of a value and a table, which may be nested."""
    node = resolve(node)
    branches = [_object(branch) for branch in node.get("anyOf", ())]
    return next((branch for branch in branches if branch.get("type") == "object"), node)


def _is_default(value: TomlValue, node: Schema) -> bool:
    if "default" not in node:
        return False
    default, parse = node["default"], PARSERS.get(resolve(node).get("format", ""))
    if parse is None or not isinstance(value, str) or not isinstance(default, str):
        return bool(value == default)
    try:
        return bool(parse(value) == parse(default))
    except QuantityError:
        return False
