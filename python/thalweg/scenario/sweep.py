"""Sweeps: resolves addresses to keys, and enumerates the points.

An address is a dotted path of keys, such as `path.buffer`. Flows are identified by name (`flow.medium.cc`), and entries
of other lists by their index from 0 (`path.steps.1.rate`).
"""

from collections.abc import Iterator, Sequence
from itertools import chain, product

from thalweg.errors import ThalwegError
from thalweg.scenario import presets
from thalweg.scenario.axis import Axis, Value
from thalweg.scenario.document import Raw, TomlValue
from thalweg.scenario.places import Schema, other_keys, resolve, schema
from thalweg.scenario.positions import KeyPath
from thalweg.scenario.text import words
from thalweg.scenario.values import Malformed

Assignment = dict[str, Value]
"""Addresses and values that a point of the sweep sets, in the order of the file."""

NOT_SWEPT = {"name", "about", "source", "repetitions", "seed", "sweep"}
"""Keys of the entire scenario, which cannot differ between experiments."""


def locate(address: str, raw: Raw) -> KeyPath:
    """Resolve an address to its key path; it need not be set in `raw`, but its flow or list entry must exist.

    Raises:
        ThalwegError: If the key is unknown or cannot be swept.

    >>> locate("flow.medium.cc", {"flow": [{"name": "large"}, {"name": "medium"}]})
    ('flow', 1, 'cc')
    """
    keys = address.split(".")
    if keys[0] in NOT_SWEPT or (keys[0] == "flow" and keys[2:] == ["name"]):
        raise _error(address, f"`{address}` cannot be swept: it applies to the whole scenario", None, None)
    node, key_path = schema(), list[str | int]()
    value: TomlValue | None = raw
    for position, key in enumerate(keys):
        node = _inside(node)
        part, node, choices = _step(node, key, keys[:position], value)
        if part is None:
            around = ".".join(keys[:position])
            guess = words.closest(key, choices)
            hint = f"did you mean `{'.'.join([*keys[:position], guess, *keys[position + 1 :]])}`?" if guess else None
            problem = (
                f"no {around} is named `{key}`"
                if around == "flow"
                else f"there is no key `{key}`" + (f" in {around}" if around else "")
            )
            expected = words.one_of(choices) if choices else f"a key; `{around}` is a value"
            raise _error(address, f"`{address}` does not exist: {problem}", expected, hint)
        key_path.append(part)
        value = _get(value, part)
    if not _takes_scalars(node):
        inside = ", ".join(f"{address}.{key}" for key in list(_inside(node).get("properties", {}))[:3])
        hint = f"address a key inside it, such as {inside}" if inside else None
        raise _error(
            address, f"`{address}` is not a single value", "the address of a number, a text, or true or false", hint
        )
    return tuple(key_path)


def is_known(address: str, base: Raw) -> bool:
    """Return whether all tables and lists around the key of an address are valid or absent.

    `base` is a scenario as `structure.sound` returns it.
    """
    keys = address.split(".")
    value: TomlValue | Malformed | None = base
    for position, key in enumerate(keys):
        if isinstance(value, Malformed):
            return False
        if isinstance(value, list):
            by_name = {flow.get("name"): flow for flow in reversed(value) if isinstance(flow, dict)}
            numbered = {str(number): entry for number, entry in enumerate(value)}
            value = (by_name if keys[:position] == ["flow"] else numbered).get(key)
        else:
            value = _get(value, key)
    return True


def put(raw: Raw, key_path: KeyPath, value: TomlValue) -> Raw:
    """Return a copy of `raw` with `value` at `key_path`; missing tables are created."""
    changed = _put(raw, key_path, value)
    assert isinstance(changed, dict), "a key path in a table"
    return changed


def points(axes: Sequence[Axis]) -> Iterator[Assignment]:
    """Yield all combinations; the last axis changes fastest.

    >>> list(points([Axis(("path.buffer",), (("1bdp",), ("2bdp",))), Axis(("flow.a.cc",), (("bbr",),))]))
    [{'path.buffer': '1bdp', 'flow.a.cc': 'bbr'}, {'path.buffer': '2bdp', 'flow.a.cc': 'bbr'}]
    >>> list(points([Axis(("path.rate", "path.rtt"), (("1Mbps", "9ms"), ("2Mbps", "3ms")))]))
    [{'path.rate': '1Mbps', 'path.rtt': '9ms'}, {'path.rate': '2Mbps', 'path.rtt': '3ms'}]
    """
    addresses = _addresses(axes)
    for choices in product(*(axis.choices for axis in axes)):
        yield dict(zip(addresses, chain.from_iterable(choices), strict=True))


def _addresses(axes: Sequence[Axis]) -> list[str]:
    return [address for axis in axes for address in axis.addresses]


def scenarios(raw: Raw, axes: Sequence[Axis]) -> Iterator[tuple[Assignment, Raw]]:
    """Yield every point: the values that it sets, and its scenario without the sweep and with expanded presets.

    The value of a top-level key is the same object in all scenarios with the same sweep values below that key.

    >>> both = scenarios({"path": {"rtt": "1ms"}, "flow": []}, [Axis(("path.rate",), (("1bps",), ("2bps",)))])
    >>> [scenario["path"] for _, scenario in both]
    [{'rtt': '1ms', 'rate': '1bps'}, {'rtt': '1ms', 'rate': '2bps'}]
    """
    base = {key: value for key, value in raw.items() if key != "sweep"}
    key_paths = [locate(address, raw) for address in _addresses(axes)]
    below: dict[str, list[int]] = {}
    for number, key_path in enumerate(key_paths):
        below.setdefault(str(key_path[0]), []).append(number)
    for key in base.keys() - below.keys():
        base[key] = presets.expand(key, base[key])
    expanded: dict[tuple[str, tuple[Value, ...]], TomlValue | None] = {}
    for assignment in points(axes):
        values, scenario = tuple(assignment.values()), base.copy()
        for key, numbers in below.items():
            variant = key, tuple(values[number] for number in numbers)
            if variant not in expanded:
                part = base.get(key)
                for number in numbers:
                    part = _put(part, key_paths[number][1:], values[number])
                expanded[variant] = part if part is None else presets.expand(key, part)
            scenario[key] = expanded[variant]
        yield assignment, scenario


def _put(inside: TomlValue | None, key_path: KeyPath, value: TomlValue) -> TomlValue:
    if not key_path:
        return value
    key = key_path[0]
    changed = _put(_get(inside, key), key_path[1:], value)
    if isinstance(inside, list) and isinstance(key, int):
        return [*inside[:key], changed, *inside[key + 1 :]]
    return {**(inside if isinstance(inside, dict) else {}), str(key): changed}


def _get(value: TomlValue | None, part: str | int) -> TomlValue | None:
    inside: TomlValue | None = None
    if isinstance(value, dict) and isinstance(part, str):
        inside = value.get(part)
    if isinstance(value, list) and isinstance(part, int) and part < len(value):
        inside = value[part]
    return inside


def _inside(node: Schema) -> Schema:
    """Return the table branch of an optional table, or of a union of a value and a table."""
    node = resolve(node)
    branches = (_inside(branch) for branch in node.get("anyOf", ()))
    return next((branch for branch in branches if "properties" in branch), node)


def _step(
    node: Schema, key: str, before: list[str], value: TomlValue | None
) -> tuple[str | int | None, Schema, list[str]]:
    """Resolve one key: return its part of the key path, its schema, and the valid choices if it is unknown."""
    if "items" in node:
        entries = value if isinstance(value, list) else []
        if before == ["flow"]:
            names = [flow.get("name") for flow in entries if isinstance(flow, dict)]
            part = names.index(key) if key in names else None
            return part, node["items"], [name for name in names if isinstance(name, str)]
        numbers = [str(number) for number in range(len(entries))]
        return (int(key) if key in numbers else None), node["items"], numbers
    properties = node.get("properties", {})
    if key in properties:
        return key, properties[key], []
    if key and (others := other_keys(node)) is not None:
        return key, others, []
    return None, {}, [name for name in properties if before or name not in NOT_SWEPT]


def _takes_scalars(node: Schema) -> bool:
    node = resolve(node)
    if "anyOf" in node:
        return any(_takes_scalars(branch) for branch in node["anyOf"])
    kind = node.get("type", "string")
    return any(
        name in ("string", "number", "integer", "boolean") for name in ([kind] if isinstance(kind, str) else kind)
    )


def _error(address: str, message: str, expected: str | None, hint: str | None) -> ThalwegError:
    return ThalwegError("bad-sweep-key", message, place=address, found=address, expected=expected, hint=hint)
