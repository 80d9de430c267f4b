"""Mistakes of a claims.toml as errors that name the place, what was found, what was expected, and what to type."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import UnionType
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from thalweg.errors import Source, ThalwegError
from thalweg.scenario import positions
from thalweg.scenario.places import show
from thalweg.scenario.positions import Place
from thalweg.scenario.text import words


@dataclass
class Mistakes:
    """Collects the mistakes of one file."""

    file: Path
    text: str
    found: list[ThalwegError] = field(default_factory=list)

    @cached_property
    def _lines(self) -> dict[Place, int]:
        return positions.lines(self.text)

    def source(self, place: Place) -> Source:
        """Point to a place in the file."""
        return Source(str(self.file), positions.line_of(place, self._lines))

    def add(
        self,
        code: str,
        place: Place,
        message: str,
        *,
        found: str | None = None,
        expected: str | None = None,
        hint: str | None = None,
    ) -> None:
        """Note a mistake; the message says which key it is about."""
        self.found.append(
            ThalwegError(
                code,
                message,
                place=dotted(place),
                found=found,
                expected=expected,
                hint=hint,
                source=self.source(place),
            )
        )

    def unknown(self, place: Place, what: str, given: str, choices: Sequence[str]) -> None:
        """Note a name that is none of the choices."""
        self.add(
            f"unknown-{what.replace(' ', '-')}",
            place,
            f"`{dotted(place)}` names no {what}: `{given}`",
            found=given,
            expected=words.one_of(choices) if choices else f"a {what}, and there is none",
            hint=words.did_you_mean(given, choices),
        )

    def take(self, error: ValidationError, model: type[BaseModel], raw: Any) -> None:
        """Translate what pydantic found."""
        seen: set[Place] = set()
        for details in error.errors(include_url=False):
            place = _place(details["loc"], raw)
            if place not in seen:
                seen.add(place)
                self._translate(details, place, model)

    def _translate(self, details: ErrorDetails, place: Place, model: type[BaseModel]) -> None:
        kind, context = details["type"], details.get("ctx", {})
        name, found = dotted(place), show(details["input"])
        if kind == "extra_forbidden":
            known = _keys(model, place[:-1])
            key = str(place[-1])
            around = dotted(place[:-1]) or "claims.toml"
            self.add(
                "unknown-key",
                place,
                f"unknown key `{key}` in {around}",
                found=key,
                expected=words.one_of(known),
                hint=words.did_you_mean(key, known),
            )
        elif kind == "missing":
            around = dotted(place[:-1]) or "claims.toml"
            self.add("missing-key", place, f"`{place[-1]}` is missing in {around}", hint=f"add `{place[-1]} = ...`")
        elif kind == "literal_error":
            choices = [each.strip(" '") for each in context["expected"].replace(" or ", ", ").split(",")]
            given = str(details["input"])
            self.add(
                "bad-value",
                place,
                f"`{name}` is {found}",
                found=found,
                expected=words.one_of(choices),
                hint=words.did_you_mean(given, choices),
            )
        elif kind == "string_pattern_mismatch":
            expected = "lower-case letters, digits, dashes (and dots in a claim's), beginning with a letter or digit"
            self.add("bad-name", place, f"`{name}` is {found}", found=found, expected=expected)
        else:
            expected = details["msg"][0].lower() + details["msg"][1:]
            self.add("wrong-type", place, f"`{name}` is {found}", found=found, expected=expected)


def dotted(place: Place) -> str:
    """Write a place as people do.

    >>> dotted(("claims", 0, "where", "path.buffer"))
    'claims.0.where."path.buffer"'
    """
    return ".".join(f'"{part}"' if "." in str(part) else str(part) for part in place)


def _place(loc: tuple[int | str, ...], raw: Any) -> Place:
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
