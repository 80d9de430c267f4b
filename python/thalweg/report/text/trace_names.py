"""Names of a run's traces in its scenario; a plan identifies traces by content hashes only."""

import tomllib
from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from thalweg.analysis.tables.directions import LinkName
from thalweg.results.plan_document import PlanDocument

KEYS: Mapping[LinkName, str] = {"forward": "path.trace", "reverse": "path.reverse.trace"}
"""Key of the scenario that names the trace of a direction."""


def trace_names(plan: PlanDocument, command: Sequence[str]) -> dict[str, str]:
    """Return the names of traces by hash, from the sweep, from `--set` in `command`, or from the scenario."""
    own_names = {key: name for key in KEYS.values() if (name := _name(key, plan, command))}
    names: dict[str, str] = {}
    for experiment in plan["experiments"]:
        for direction, key in KEYS.items():
            capacity = experiment[direction]["capacity"]
            if capacity["kind"] == "trace" and (swept := experiment["sweep"].get(key) or own_names.get(key)):
                names[capacity["trace"]] = str(swept)
    return names


def _name(key: str, plan: PlanDocument, command: Sequence[str]) -> str | None:
    for word in reversed(command):
        address, equals, text = word.removeprefix("--set=").partition("=")
        if equals and address == key:
            return text.strip("\"'")
    try:
        value: JsonValue = tomllib.loads(plan.get("scenario_toml", ""))
    except tomllib.TOMLDecodeError:
        return None
    for part in key.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value if isinstance(value, str) else None
