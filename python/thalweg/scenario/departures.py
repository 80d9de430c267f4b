"""The keys of a scenario that depart from their defaults, by the schema: a new key needs nothing here."""

from collections.abc import Iterator

from thalweg.scenario.document import Raw, TomlValue
from thalweg.scenario.places import Schema, name_of, other_keys, resolve, schema
from thalweg.scenario.positions import Place
from thalweg.scenario.text.quantities import QuantityError
from thalweg.scenario.text.texts import PARSERS

LISTS_OF_TABLES = ("flow", "background")
"""Lists whose entries have keys of their own; other lists are values."""


def departures(raw: Raw) -> dict[str, TomlValue]:
    """Return the values that are not the defaults, by address, in the order of the file.

    `raw` is a checked scenario without its sweep.

    >>> departures({"path": {"rate": "1Mbps", "jitter": "0ms", "loss": 0.5}, "background": [{"rate": "9Mbps"}]})
    {'path.rate': '1Mbps', 'path.loss': 0.5, 'background.0.rate': '9Mbps'}
    """
    return {name_of(place, raw): value for place, value in _inside(raw, schema(), ())}


def _inside(table: Raw, node: Schema, place: Place) -> Iterator[tuple[Place, TomlValue]]:
    node = _object(node)
    for key, value in table.items():
        here = (*place, key)
        inner = node.get("properties", {}).get(key) or other_keys(node)
        assert inner is not None, "a checked scenario has no unknown keys"
        if isinstance(value, dict):
            yield from _inside(value, inner, here)
        elif not place and key in LISTS_OF_TABLES and isinstance(value, list):
            for index, each in enumerate(value):
                yield from _inside(each, resolve(inner)["items"], (*here, index))
        elif not _is_default(value, inner):
            yield here, value


def _object(node: Schema) -> Schema:
    """Return the table of "a table", "a table or nothing" or "a value or a table"."""
    node = resolve(node)
    branches = [resolve(branch) for branch in node.get("anyOf", ())]
    return next((each for each in branches if each.get("type") == "object"), node)


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
