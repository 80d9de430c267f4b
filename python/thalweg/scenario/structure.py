"""The first check of a scenario: every key is known, every value is of its kind and in its range.

Pydantic finds the mistakes with the generated models; here they become errors that name the key as the user wrote it,
what was found, what was expected (from the JSON Schema) and what was probably meant. One mistake is one error: of "a
value or a table" only the branch that was meant is reported.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from thalweg.errors import ThalwegError
from thalweg.scenario.document import Document, Raw
from thalweg.scenario.models import Scenario
from thalweg.scenario.places import Schema, describe, header_of, name_of, resolve, schema, show, walk
from thalweg.scenario.positions import Place
from thalweg.scenario.text import words
from thalweg.scenario.text.hints import quantity_hint
from thalweg.scenario.text.texts import EXPECTED
from thalweg.scenario.values import MALFORMED

MAX_DIGITS = 18
"""Digits of a number of percent that a hint reads."""


def check(document: Document, raw: Raw) -> dict[Place, ThalwegError]:
    """Check `raw`, the values of `document` or those of one of its sweep points.

    Returns:
        The mistake at each place that has one.
    """
    try:
        Scenario.model_validate(raw)
    except ValidationError as error:
        found: dict[Place, ThalwegError] = {}
        for details in error.errors(include_url=False):
            place, node = walk(details["loc"])
            found.setdefault(place, _translate(details, place, node, document, raw))
        # `name is missing` where `nam` was found is one mistake.
        meant = addresses_meant(found.values())
        return {
            place: each for place, each in found.items() if not (each.code == "missing-key" and each.place in meant)
        }
    return {}


def sound(raw: Raw, mistakes: Mapping[Place, ThalwegError]) -> Raw:
    """Return the scenario as the rules between keys read it: every value in it has the structure of the schema.

    Unknown keys are left out, and MALFORMED stands where a value is wrong. The sweep is left out: its values are
    checked one by one, at the places that they set.
    """
    right = {key: value for key, value in raw.items() if key != "sweep"}
    for place, mistake in mistakes.items():
        if place[0] == "sweep" or mistake.code == "missing-key":
            continue
        inside: Any = right
        for key in place[:-1]:
            inside[key] = inside[key].copy()
            inside = inside[key]
        if mistake.code == "unknown-key":
            del inside[place[-1]]
        else:
            inside[place[-1]] = MALFORMED
    return right


def addresses_meant(errors: Iterable[ThalwegError]) -> set[str]:
    """Give the addresses that unknown keys were probably meant to be: nothing is missing there."""
    meant = set()
    for error in errors:
        if error.code != "unknown-key" or "`" not in (error.hint or "") or not error.place or not error.hint:
            continue
        word = error.hint.split("`")[1]
        around = error.place.rpartition(".")[0]
        if "belongs to [path]" in error.hint:
            around = "path"
        if "stands at the top" in error.hint:
            around = ""
        meant.add(f"{around}.{word}" if around else word)
    return meant


def _translate(details: ErrorDetails, place: Place, node: Schema, document: Document, raw: Raw) -> ThalwegError:
    kind, given, context = details["type"], details["input"], details.get("ctx", {})
    source = document.source(place)
    name, key, header = name_of(place, raw), str(place[-1]) if place else "", header_of(place[:-1], raw)
    if kind == "extra_forbidden":
        known = list(_table(details["loc"][:-1]).get("properties", {}))
        hint = _not_yet(key, place) or _belongs(key, place) or words.did_you_mean(key, known)
        return ThalwegError(
            "unknown-key",
            f"unknown key `{key}` in {header}",
            place=name,
            found=key,
            expected=words.one_of(known),
            hint=hint,
            source=source,
        )
    if kind == "missing":
        example = f"add {_example(key, node)} to {header}" if place[1:] else f"add {_example(key, node)}"
        return ThalwegError(
            "missing-key",
            f"`{key}` is missing in {header}",
            place=name,
            expected=describe(node),
            hint=example,
            source=document.source(place[:-1]),
        )
    found = show(given)
    if kind == "quantity":
        format_ = context["format"]
        why = f": {context['why']}" if context["why"] else ""
        return ThalwegError(
            "bad-quantity",
            f"`{name}` is {found}{why}",
            place=name,
            found=found,
            expected=EXPECTED[format_],
            hint=quantity_hint(given, format_, place),
            source=source,
        )
    if kind == "literal_error":
        choices = [
            choice["const"] for branch in (node, *node.get("anyOf", ())) for choice in resolve(branch).get("oneOf", ())
        ]
        hint = words.did_you_mean(given, choices) if isinstance(given, str) else None
        if str(given) in choices and not isinstance(given, str):
            is_setting = place in document.not_in_file
            hint = f"quotes are missing: --set '{name}=\"{given}\"'" if is_setting else f'write it in quotes: "{given}"'
        return ThalwegError(
            "bad-value",
            f"`{name}` is {found}",
            place=name,
            found=found,
            expected=describe(node),
            hint=hint,
            source=source,
        )
    if kind == "string_pattern_mismatch":
        allowed = (
            "letters, digits, dashes and underscores"
            if "." not in node["pattern"]
            else "letters, digits, dots, dashes and underscores"
        )
        return ThalwegError(
            "bad-name",
            f"`{name}` is {found}",
            place=name,
            found=found,
            expected=f"{allowed}, beginning with a letter or digit",
            source=source,
        )
    if kind in ("greater_than_equal", "less_than_equal", "finite_number"):
        return ThalwegError(
            "out-of-range",
            f"`{name}` is {found}",
            place=name,
            found=found,
            expected=describe(node),
            hint=_ratio_hint(given, node),
            source=source,
        )
    return ThalwegError(
        "wrong-type",
        f"`{name}` is {found}",
        place=name,
        found=found,
        expected=describe(node) if node else None,
        hint=_kind_hint(given, place, node, raw),
        source=source,
    )


def _table(loc: tuple[int | str, ...]) -> Schema:
    """The object schema at a location."""
    node = walk(loc)[1]
    branches = [resolve(branch) for branch in node.get("anyOf", ())]
    return next((branch for branch in branches if "properties" in branch), node)


def _example(key: str, node: Schema) -> str:
    formats = {"rate": '"40Mbps"', "size": '"100kB"', "time": '"45ms"', "time-or-rtt": '"1rtt"'}
    known = {"cc": '"cubic"', "name": '"a-name"', "model": '"gilbert-elliott"'}
    if resolve(node).get("type") == "object":
        return f"a table [{key}]"
    return f"{key} = {known.get(key) or formats.get(node.get('format', ''), '0.1')}"


def _kind_hint(given: Any, place: Place, node: Schema, raw: Raw) -> str | None:
    if "format" in node and isinstance(given, int | float) and node["format"] in EXPECTED:
        return quantity_hint(given, node["format"], place)
    if isinstance(given, dict) and place[0] == "sweep":
        return f'put the key in quotes: "{_dotted(place[1:], given)}" = [...]'
    if isinstance(given, dict) and place in (("flow",), ("background",)):
        return f"write [[{place[0]}]], with two brackets on each side: there may be several"
    if (
        isinstance(given, list)
        and "array" not in str(node.get("type"))
        and any(isinstance(each, dict) for each in given)
    ):
        return f"write [{place[-1]}], with one bracket on each side: there is only one"
    if isinstance(given, list):
        return (
            f'several values to try belong to [sweep], as "{name_of(place, raw)}" = [...]'
            if place[0] != "sweep"
            else None
        )
    if isinstance(given, str | int | float) and node.get("type") == "array":
        return f"write it in brackets: [{show(given)}]"
    if isinstance(given, str) and "number" in describe(node):
        plain = given.strip()
        percent = plain.removesuffix("%").strip().replace(",", ".")
        if plain.endswith("%") and percent.isascii() and percent.replace(".", "", 1).isdigit():
            return f"did you mean {float(percent[:MAX_DIGITS]) / 100:g}?"
        return f"write it without quotes: {plain}" if plain.replace(".", "", 1).isdigit() else None
    if isinstance(given, str) and describe(node) == "true or false" and given.lower() in ("true", "false"):
        return f"write it without quotes: {given.lower()}"
    return None


def _ratio_hint(given: Any, node: Schema) -> str | None:
    """Ask whether percent were meant where a ratio belongs."""
    is_ratio = node.get("type") in ("number", ["number", "null"]) and node.get("maximum") == 1
    return f"did you mean {given / 100:g}?" if is_ratio and 1 < given <= 100 else None


def _dotted(place: Place, given: Any) -> str:
    """Write the key that was meant where TOML made tables of its dots."""
    while isinstance(given, dict) and given:
        key = next(iter(given))
        place, given = (*place, key), given[key]
    return ".".join(map(str, place))


NOT_YET = {"policer": "policers", "ecn": "ECN", "aqm": "queue disciplines other than fifo"}
"""What no engine has yet, by the key that is tried for it."""


def _not_yet(key: str, place: Place) -> str | None:
    """Return a sentence on a key that asks for what no engine has yet."""
    if place[0] != "path":
        return None
    if "steps" in place and key in ("rtt", "delay"):
        return "a delay that changes is not supported by any engine yet: a step changes the rate"
    return f"no engine supports {NOT_YET[key]} yet" if key in NOT_YET else None


def _belongs(key: str, place: Place) -> str | None:
    """Say where a key belongs that is known elsewhere."""
    if len(place) > 1 and key in schema()["properties"]:
        return f"`{key}` stands at the top of the file, before the first [table]"
    for table, header in (
        ("Path", "[path]"),
        ("Flow", "[[flow]]"),
        ("Host", "[host.sender] or [host.receiver]"),
        ("Engine", "[engine]"),
    ):
        if key in schema()["$defs"][table]["properties"]:
            return f"`{key}` belongs to {header}"
    return None
