"""Translates what pydantic finds wrong in a TOML table: what was found, what was expected, and what to type."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import UnionType
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from thalweg.scenario.document import Raw, TomlValue
from thalweg.scenario.mistakes import Mistakes
from thalweg.scenario.places import show
from thalweg.scenario.positions import Place, dotted
from thalweg.scenario.text import words


@dataclass(frozen=True)
class Described:
    """How errors describe what was checked."""

    model: type[BaseModel]
    top: str
    """What contains the keys of the top: a file, or a table with its brackets."""
    called: Mapping[str, str] = field(default_factory=dict)
    """Models whose class has another name than errors have for them."""


def translate(error: ValidationError, checked: Described, raw: Raw) -> Mistakes:
    """Return what pydantic found, one mistake per place."""
    mistakes = Mistakes()
    seen: set[Place] = set()
    for details in error.errors(include_url=False):
        place = _place(details["loc"], raw)
        if place not in seen:
            seen.add(place)
            _translate(details, place, checked, mistakes)
    return mistakes


def _translate(details: ErrorDetails, place: Place, checked: Described, mistakes: Mistakes) -> None:
    kind, context = details["type"], details.get("ctx", {})
    name, found = dotted(place), show(details["input"])
    if kind == "extra_forbidden":
        known = _keys(checked.model, place[:-1])
        key = str(place[-1])
        around = dotted(place[:-1]) or checked.top
        mistakes.add(
            "unknown-key",
            place,
            f"unknown key `{key}` in {around}",
            found=key,
            expected=words.one_of(known),
            hint=words.did_you_mean(key, known),
        )
    elif kind == "missing":
        around = dotted(place[:-1]) or checked.top
        mistakes.add("missing-key", place, f"`{place[-1]}` is missing in {around}", hint=f"add `{place[-1]} = ...`")
    elif kind == "literal_error":
        choices = [each.strip(" '") for each in context["expected"].replace(" or ", ", ").split(",")]
        given = str(details["input"])
        mistakes.add(
            "bad-value",
            place,
            f"`{name}` is {found}",
            found=found,
            expected=words.one_of(choices),
            hint=words.did_you_mean(given, choices),
        )
    elif kind == "string_pattern_mismatch":
        expected = "lower-case letters, digits, dashes (and dots in a claim's), beginning with a letter or digit"
        mistakes.add("bad-name", place, f"`{name}` is {found}", found=found, expected=expected)
    else:
        expected = details["msg"][0].lower() + details["msg"][1:]
        if kind == "model_type":
            name_of_class = context["class_name"]
            expected = expected.replace(name_of_class, checked.called.get(name_of_class, name_of_class))
        mistakes.add("wrong-type", place, f"`{name}` is {found}", found=found, expected=expected)


def _place(loc: tuple[int | str, ...], raw: TomlValue) -> Place:
    """Leave out of a location what are pydantic's names of branches."""
    place: list[int | str] = []
    for number, part in enumerate(loc):
        is_last = number == len(loc) - 1
        if (isinstance(raw, dict) and part in raw) or (isinstance(raw, list) and part in range(len(raw))):
            raw = raw[part]  # type: ignore[index]
        elif not is_last or not isinstance(raw, dict):
            continue
        place.append(part)
    return tuple(place)


def _keys(model: type[BaseModel], place: Place) -> list[str]:
    """Return the keys of a table."""
    table: Any = model
    for part in place:
        if isinstance(table, type) and issubclass(table, BaseModel):
            by_alias = {each.alias or name: each for name, each in table.model_fields.items()}
            table = by_alias[str(part)].annotation
        else:
            table = get_args(table)[-1]  # of lists and of dictionaries: what they hold
        if isinstance(table, UnionType):
            table = next(each for each in get_args(table) if each is not type(None))
    return [each.alias or name for name, each in table.model_fields.items()]
