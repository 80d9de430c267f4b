"""Translates pydantic's errors in a TOML table to errors with the value found, the expected value, and a hint."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import UnionType
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from thalweg.scenario.document import Raw, TomlValue
from thalweg.scenario.mistakes import Mistakes
from thalweg.scenario.places import show
from thalweg.scenario.positions import KeyPath, dotted
from thalweg.scenario.text import words


@dataclass(frozen=True)
class Described:
    """How errors describe the checked document."""

    model: type[BaseModel]
    top: str
    """Container of the top-level keys: a file, or a table in brackets."""
    called: Mapping[str, str] = field(default_factory=dict)
    """Names of models in errors, if they differ from their class."""


def translate(error: ValidationError, checked: Described, raw: Raw) -> Mistakes:
    """Return pydantic's errors, one mistake per key path."""
    mistakes = Mistakes()
    reported: set[KeyPath] = set()
    for details in error.errors(include_url=False):
        key_path = _place(details["loc"], raw)
        if key_path not in reported:
            reported.add(key_path)
            _translate(details, key_path, checked, mistakes)
    return mistakes


def _translate(details: ErrorDetails, key_path: KeyPath, checked: Described, mistakes: Mistakes) -> None:
    kind, context = details["type"], details.get("ctx", {})
    name, shown = dotted(key_path), show(details["input"])
    if kind == "extra_forbidden":
        keys = _keys(checked.model, key_path[:-1])
        key = str(key_path[-1])
        around = dotted(key_path[:-1]) or checked.top
        mistakes.add(
            "unknown-key",
            key_path,
            f"unknown key `{key}` in {around}",
            found=key,
            expected=words.one_of(keys),
            hint=words.did_you_mean(key, keys),
        )
    elif kind == "missing":
        around = dotted(key_path[:-1]) or checked.top
        mistakes.add(
            "missing-key", key_path, f"`{key_path[-1]}` is missing in {around}", hint=f"add `{key_path[-1]} = ...`"
        )
    elif kind == "literal_error":
        choices = [choice.strip(" '") for choice in context["expected"].replace(" or ", ", ").split(",")]
        value = str(details["input"])
        mistakes.add(
            "bad-value",
            key_path,
            f"`{name}` is {shown}",
            found=shown,
            expected=words.one_of(choices),
            hint=words.did_you_mean(value, choices),
        )
    elif kind == "string_pattern_mismatch":
        expected = "lower-case letters, digits, dashes (and dots in a claim's), beginning with a letter or digit"
        mistakes.add("bad-name", key_path, f"`{name}` is {shown}", found=shown, expected=expected)
    else:
        expected = details["msg"][0].lower() + details["msg"][1:]
        if kind == "model_type":
            name_of_class = context["class_name"]
            expected = expected.replace(name_of_class, checked.called.get(name_of_class, name_of_class))
        mistakes.add("wrong-type", key_path, f"`{name}` is {shown}", found=shown, expected=expected)


def _place(loc: tuple[int | str, ...], raw: TomlValue) -> KeyPath:
    """Remove pydantic's branch names from a location."""
    key_path: list[int | str] = []
    for number, part in enumerate(loc):
        is_last = number == len(loc) - 1
        if (isinstance(raw, dict) and part in raw) or (isinstance(raw, list) and part in range(len(raw))):
            raw = raw[part]  # type: ignore[index]
        elif not is_last or not isinstance(raw, dict):
            continue
        key_path.append(part)
    return tuple(key_path)


def _keys(model: type[BaseModel], key_path: KeyPath) -> list[str]:
    table: Any = model
    for part in key_path:
        if isinstance(table, type) and issubclass(table, BaseModel):
            by_alias = {model_field.alias or name: model_field for name, model_field in table.model_fields.items()}
            table = by_alias[str(part)].annotation
        else:
            table = get_args(table)[-1]  # for lists and dictionaries, the type of their values
        if isinstance(table, UnionType):
            table = next(type_ for type_ in get_args(table) if type_ is not type(None))
    return [model_field.alias or name for name, model_field in table.model_fields.items()]
