"""Structural mutations of a scenario: values are replaced by others, keys are renamed, and sweeps set any key."""

import copy
import datetime
from typing import Any

from hypothesis import strategies as st
from thalweg.scenario.places import resolve, schema

Raw = dict[str, Any]

SCALARS: list[Any] = [
    True, False, 0, 1, -1, 7, 2**31, 2**63 - 1, -(2**63), 2**64, 10**40, 0x10 ** 5000,
    0.0, -0.0, 0.5, 1.0, 50.0, -1.5, 5e-324, 1e308, float("nan"), float("inf"), float("-inf"),
    "", " ", "0", "1", "\x00", "a\nb", "\x1b[31m", "\u202e", "\u00b5", "x" * 300, "/dev/zero", "/proc/self/mem", ".",
    "..", "a.b", "a", "sender", "receiver", "sender.cpu_share", "cubic", "fifo", "codel", "none", "true", "unlimited",
    "1s", "0s", "1rtt", "0rtt", "1ns", "-1s", "1h", "10M", "10MB/s", "0.1%", "40Mbps", "1bdp", "0bdp", "3packets", "0B",
    "20/s", "0/s", "18446744073709551615ns", "18446744073709551616ns", "18446744073709551615bps", "1e3bps", "999GB",
    "9" * 5000 + "s", "path.rate", "flow.a.cc", "[[flow]]",
    datetime.date(2026, 1, 31), datetime.time(7, 32), datetime.datetime(1979, 5, 27, 7, 32),
]  # fmt: skip
"""Scalar values of TOML, and texts that are quantities, names, files and addresses."""

MAX_DEPTH = 6
"""Maximum depth of mutated values, and of addresses, for which an alternative in the schema is also a level."""


def nested(levels: int) -> Raw:
    """Return nested tables, such as `a.a.a = 1`."""
    inside: Any = 1
    for _ in range(levels):
        inside = {"a": inside}
    return dict(inside)


def paths(value: Any, place: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the paths of all values inside a value, the outer ones first."""
    result = [place] if place else []
    if len(place) == MAX_DEPTH:
        return result
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inside in entries:
        result += paths(inside, (*place, key))
    return result


def addresses(raw: Raw) -> list[str]:
    """Return the addresses of keys of the schema, with the names of the scenario's flows, and malformed ones."""
    flows = raw.get("flow") if isinstance(raw.get("flow"), list) else []
    names = [str(flow.get("name")) for flow in flows if isinstance(flow, dict)]

    def inside(node: dict[str, Any], address: str, depth: int) -> list[str]:
        node = resolve(node)
        result = [address] if address else []
        if depth == MAX_DEPTH:
            return result
        for branch in node.get("anyOf", ()):
            result += inside(branch, address, depth + 1)
        for key, child in node.get("properties", {}).items():
            result += inside(child, f"{address}.{key}" if address else key, depth + 1)
        if "items" in node:
            for key in [*names, "0", "9"] if address == "flow" else ["0", "1"]:
                result += inside(node["items"], f"{address}.{key}", depth + 1)
        others = node.get("additionalProperties")
        if isinstance(others, dict):
            for key in ("sender", "receiver", "x"):
                result += inside(others, f"{address}.{key}", depth + 1)
        return result

    odd = ["", ".", "path", "path.", ".rate", "flow", "flow.", "flow.x.cc", "path.rate.x", "sweep.a", "host", "host.."]
    return list(dict.fromkeys([*inside(schema(), "", 0), *odd]))


TABLES: list[Raw] = [{}, {"name": "a"}, {"model": "gilbert-elliott"}, {"x": {}}, {"": 1}, nested(50), nested(500)]
LISTS: list[Any] = [[], [[]], [{}], [{"name": "a"}, {"name": "a"}], [1, "a", True], [[[[1]]]], [{}] * 300]

ODD = st.sampled_from(SCALARS) | st.sampled_from(TABLES) | st.sampled_from(LISTS)
"""Values of every structure."""

SWEPT = st.lists(st.sampled_from(SCALARS), max_size=3) | ODD


class Originals(list[Raw]):
    """Scenarios to mutate, with a short representation, because hypothesis would print all of them in a failure."""

    def __repr__(self) -> str:
        return "ORIGINALS"


@st.composite
def mutated(draw: st.DrawFn, originals: Originals) -> Raw:
    """Return one of the scenarios with one to four mutations."""
    raw = copy.deepcopy(originals[draw(st.integers(0, len(originals) - 1))])
    for _ in range(draw(st.integers(1, 4))):
        if draw(st.booleans()):
            _sweep(draw, raw)
        else:
            _change(draw, raw)
    return raw


def _change(draw: st.DrawFn, raw: Raw) -> None:
    """Replace, wrap, unwrap, double, remove or rename a value, or add one beside it, if its structure permits."""
    listed = paths(raw)
    if not listed:
        return
    *around, last = draw(st.sampled_from(listed))
    table: Any = raw
    for key in around:
        table = table[key]
    match draw(st.sampled_from(["replace", "replace", "wrap", "unwrap", "double", "remove", "rename", "copy", "add"])):
        case "replace":
            table[last] = copy.deepcopy(draw(ODD))
        case "wrap":
            table[last] = draw(st.sampled_from([[table[last]], {"x": table[last]}, {str(last): table[last]}]))
        case "unwrap" if isinstance(table[last], list | dict) and table[last]:
            inside = table[last]
            table[last] = inside[0] if isinstance(inside, list) else next(iter(inside.values()))
        case "double" if isinstance(table, list):
            table.append(copy.deepcopy(table[last]))
        case "remove":
            del table[last]
        case "rename" if isinstance(table, dict):
            table[draw(st.sampled_from(["x", "", "a.b", "name", "rate", "cc", "value", "table"]))] = table.pop(last)
        case "copy":
            table[last] = copy.deepcopy(raw[draw(st.sampled_from(sorted(raw)))])
        case "add" if isinstance(table, dict):
            key = draw(st.sampled_from([address.rpartition(".")[2] for address in addresses(raw)]))
            table[key] = copy.deepcopy(draw(ODD))


def _sweep(draw: st.DrawFn, raw: Raw) -> None:
    """Add a sweep of a key over several values, some of which may be valid."""
    swept = raw.get("sweep")
    if not isinstance(swept, dict):
        raw["sweep"] = swept = {}
    swept[draw(st.sampled_from(addresses(raw)))] = copy.deepcopy(draw(SWEPT))
