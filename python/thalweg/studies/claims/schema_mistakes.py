"""Translates what pydantic finds wrong in a claims.toml: what was found, what was expected, and what to type."""

from types import UnionType
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from thalweg.scenario.document import Raw, TomlValue
from thalweg.scenario.mistakes import Mistakes
from thalweg.scenario.places import show
from thalweg.scenario.positions import Place, dotted
from thalweg.scenario.text import words

CALLED = {
    "PaperFigure": "Figure",
    "PolicyRange": "Range",
    "PolicyRule": "Rule",
    "RecordsPart": "Records",
    "StudyMeasure": "Made",
    "StudyPart": "Part",
}
"""Tables whose class has another name than errors have for them."""


def translate(error: ValidationError, model: type[BaseModel], raw: Raw) -> Mistakes:
    """Return what pydantic found, one mistake per place."""
    mistakes = Mistakes()
    seen: set[Place] = set()
    for details in error.errors(include_url=False):
        place = _place(details["loc"], raw)
        if place not in seen:
            seen.add(place)
            _translate(details, place, model, mistakes)
    return mistakes


def _translate(details: ErrorDetails, place: Place, model: type[BaseModel], mistakes: Mistakes) -> None:
    kind, context = details["type"], details.get("ctx", {})
    name, found = dotted(place), show(details["input"])
    if kind == "extra_forbidden":
        known = _keys(model, place[:-1])
        key = str(place[-1])
        around = dotted(place[:-1]) or "claims.toml"
        mistakes.add(
            "unknown-key",
            place,
            f"unknown key `{key}` in {around}",
            found=key,
            expected=words.one_of(known),
            hint=words.did_you_mean(key, known),
        )
    elif kind == "missing":
        around = dotted(place[:-1]) or "claims.toml"
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
            expected = expected.replace(context["class_name"], CALLED.get(context["class_name"], context["class_name"]))
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
    """Give the keys of the table at a place."""
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
