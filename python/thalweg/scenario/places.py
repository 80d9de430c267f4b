"""Key paths of a scenario: their schema, and their notation in errors."""

import json
from functools import cache
from importlib.resources import files
from typing import TypedDict, cast

from thalweg.scenario.document import Raw, TomlValue
from thalweg.scenario.positions import KeyPath, dotted
from thalweg.scenario.text import words
from thalweg.scenario.text.texts import EXPECTED

Schema = TypedDict(
    "Schema",
    {
        "$defs": dict[str, "Schema"],
        "$ref": str,
        "additionalProperties": "bool | Schema",
        "anyOf": list["Schema"],
        "const": str,
        "default": TomlValue,
        "format": str,
        "items": "Schema",
        "maximum": float,
        "minimum": float,
        "oneOf": list["Schema"],
        "pattern": str,
        "properties": dict[str, "Schema"],
        "required": list[str],
        "type": str | list[str],
    },
    total=False,
)
"""A node of the JSON Schema of the scenario, limited to the keywords that are read."""

MAX_SHOWN_BITS = 128
"""Maximum number of bits of a displayed integer; larger ones are described by their length."""

LOG10_OF_2 = 0.30103


@cache
def schema() -> Schema:
    """Return the JSON Schema of the scenario."""
    text = files("thalweg.scenario").joinpath("scenario.schema.json").read_text(encoding="utf-8")
    return cast(Schema, json.loads(text))


def name_of(key_path: KeyPath, raw: Raw) -> str:
    """Return a key path in the notation of sweeps and errors, with flows by name.

    >>> name_of(("flow", 0, "cc"), {"flow": [{"name": "large"}]}), name_of(("path", "steps", 1), {})
    ('flow.large.cc', 'path.steps.1')
    """
    if len(key_path) > 1 and key_path[0] == "flow":
        flows = raw.get("flow")
        flow = flows[key_path[1]] if isinstance(flows, list) and isinstance(key_path[1], int) else None
        name = flow.get("name") if isinstance(flow, dict) else None
        if isinstance(name, str):
            key_path = ("flow", name, *key_path[2:])
    return dotted(key_path)


def header_of(key_path: KeyPath, raw: Raw) -> str:
    """Return the table of a key path as a heading of the file.

    >>> header_of((), {}), header_of(("path",), {}), header_of(("flow", 0), {"flow": [{"name": "a"}]})
    ('the scenario', '[path]', '[[flow]] `a`')
    """
    if not key_path:
        return "the scenario"
    if key_path[0] in ("flow", "background") and len(key_path) == 2:
        name = name_of(key_path, raw).partition(".")[2]
        return (
            f"[[{key_path[0]}]] `{name}`"
            if key_path[0] == "flow" and not name.isdigit()
            else f"[[{key_path[0]}]] number {int(key_path[1]) + 1}"
        )
    return f"[{name_of(key_path, raw)}]"


def describe(node: Schema) -> str:
    """Describe the expected value."""
    node = resolve(node)
    if "anyOf" in node:
        return " or ".join(dict.fromkeys(describe(branch) for branch in node["anyOf"] if branch != {"type": "null"}))
    if "oneOf" in node:
        return words.one_of(f'"{choice["const"]}"' for choice in node["oneOf"])
    kind = node["type"]
    kind = kind if isinstance(kind, str) else next(name for name in kind if name != "null")
    if kind == "string" and "format" in node:
        return EXPECTED[node["format"]]
    if kind == "object":
        keys = node.get("required", [])
        return "a table" + (f" with {', '.join(keys)}" if keys else "")
    if kind in ("number", "integer"):
        type_text = "a number" if kind == "number" else "a whole number"
        limits = (
            f"from {node['minimum']:g}" if "minimum" in node else "",
            f"to {node['maximum']:.16g}" if "maximum" in node else "",
        )
        return " ".join([type_text, *filter(None, limits)])
    return {"string": "a text in quotes", "boolean": "true or false", "array": "a list"}[kind]


def show(value: TomlValue) -> str:
    """Return a value of the file as text, shortened to about 60 characters; tables and lists are only named."""
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list):
        return "a list" if value else "an empty list"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int) and value.bit_length() > MAX_SHOWN_BITS:
        return f"a number of {int(value.bit_length() * LOG10_OF_2) + 1} digits"
    text = f'"{value}"' if isinstance(value, str) else str(value)
    return text if len(text) <= 60 else text[:57] + '..."'


def resolve(node: Schema) -> Schema:
    """Resolve references in the schema."""
    while "$ref" in node:
        node = schema()["$defs"][node["$ref"].removeprefix("#/$defs/")]
    return node


def other_keys(node: Schema) -> Schema | None:
    """Return the schema of a table's unlisted keys; None: unlisted keys are invalid."""
    others = node.get("additionalProperties")
    return others if isinstance(others, dict) else None


def _branches(node: Schema) -> list[Schema]:
    return [branch for branch in node.get("anyOf", ()) if branch != {"type": "null"}]


def locate_in_schema(loc: tuple[int | str, ...]) -> tuple[KeyPath, Schema]:
    """Resolve a location from pydantic.

    Returns the key path without pydantic's branch names, and its schema.
    """
    node, key_path = schema(), list[str | int]()
    for part in loc:
        node = resolve(node)
        branches = _branches(node)
        while len(branches) == 1:
            node = resolve(branches[0])
            branches = _branches(node)
        if branches:
            # For "value", the node remains the union, so that the error offers both branches.
            node = branches[1] if part == "table" else node
            continue
        key_path.append(part)
        if isinstance(part, int):
            node = node.get("items", {})
        else:
            node = node.get("properties", {}).get(part) or other_keys(node) or {}
    return tuple(key_path), resolve(node) if node else {}
