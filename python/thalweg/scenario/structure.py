"""Checks the structure of a scenario: every key is known, and every value has the right type and range.

Pydantic finds the mistakes with the generated models, and this module converts them to errors. For "a value or a
table", only errors of the intended branch are reported.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from thalweg.errors import ThalwegError
from thalweg.scenario.document import OF_SEARCHES, Document, Raw, TomlValue
from thalweg.scenario.models import Scenario
from thalweg.scenario.places import Schema, describe, header_of, locate_in_schema, name_of, resolve, schema, show
from thalweg.scenario.positions import KeyPath
from thalweg.scenario.text import words
from thalweg.scenario.text.hints import quantity_hint
from thalweg.scenario.text.texts import EXPECTED
from thalweg.scenario.values import MALFORMED

MAX_DIGITS = 18
"""Number of characters of a percentage from which a hint is computed; further ones are ignored."""


def check(document: Document, raw: Raw) -> dict[KeyPath, ThalwegError]:
    """Check `raw`, the values of `document` or those of one of its sweep points.

    Returns:
        The first mistake of each invalid key path.
    """
    try:
        Scenario.model_validate(raw)
    except ValidationError as error:
        errors: dict[KeyPath, ThalwegError] = {}
        for details in error.errors(include_url=False):
            key_path, node = locate_in_schema(details["loc"])
            errors.setdefault(key_path, _translate(_Finding(details, key_path, node, document, raw)))
        # `name is missing` together with an unknown key `nam` is one mistake.
        intended = intended_addresses(errors.values())
        return {
            key_path: error
            for key_path, error in errors.items()
            if not (error.code == "missing-key" and error.place in intended)
        }
    return {}


def sound(raw: Raw, mistakes: Mapping[KeyPath, ThalwegError]) -> Raw:
    """Return the scenario for the rules between keys, in which every value conforms to the schema or is MALFORMED.

    Unknown keys and the sweep are removed.
    """
    right = {key: value for key, value in raw.items() if key != "sweep"}
    for key_path, mistake in mistakes.items():
        if key_path[0] == "sweep" or mistake.code == "missing-key":
            continue
        inside: Any = right
        for key in key_path[:-1]:
            inside[key] = inside[key].copy()
            inside = inside[key]
        if mistake.code == "unknown-key":
            del inside[key_path[-1]]
        else:
            inside[key_path[-1]] = MALFORMED
    return right


def intended_addresses(errors: Iterable[ThalwegError]) -> set[str]:
    """Return the key paths for which unknown keys are probably misspellings."""
    addresses = set()
    for error in errors:
        if error.code != "unknown-key" or "`" not in (error.hint or "") or not error.place or not error.hint:
            continue
        word = error.hint.split("`")[1]
        around = error.place.rpartition(".")[0]
        if "belongs to [path]" in error.hint:
            around = "path"
        if "belongs at the top" in error.hint:
            around = ""
        addresses.add(f"{around}.{word}" if around else word)
    return addresses


@dataclass(frozen=True)
class _Finding:
    """Pydantic's error at a key path, and its schema."""

    details: ErrorDetails
    key_path: KeyPath
    node: Schema
    document: Document
    raw: Raw

    @property
    def given(self) -> TomlValue:
        return cast(TomlValue, self.details["input"])

    @property
    def name(self) -> str:
        return name_of(self.key_path, self.raw)

    @property
    def key(self) -> str:
        return str(self.key_path[-1]) if self.key_path else ""

    @property
    def header(self) -> str:
        """The table around the key."""
        return header_of(self.key_path[:-1], self.raw)

    def error(self, code: str, *, expected: str | None, hint: str | None = None, why: str = "") -> ThalwegError:
        shown = show(self.given)
        return ThalwegError(
            code,
            f"`{self.name}` is {shown}{why}",
            place=self.name,
            found=shown,
            expected=expected,
            hint=hint,
            source=self.document.source(self.key_path),
        )


def _unknown_key(finding: _Finding) -> ThalwegError:
    key, key_path = finding.key, finding.key_path
    keys = list(_table(finding.details["loc"][:-1]).get("properties", {}))
    keys += OF_SEARCHES if not key_path[1:] else ()
    return ThalwegError(
        "unknown-key",
        f"unknown key `{key}` in {finding.header}",
        place=finding.name,
        found=key,
        expected=words.one_of(keys),
        hint=_belongs(key, key_path) or words.did_you_mean(key, keys),
        source=finding.document.source(key_path),
    )


def _missing_key(finding: _Finding) -> ThalwegError:
    key, key_path, node = finding.key, finding.key_path, finding.node
    return ThalwegError(
        "missing-key",
        f"`{key}` is missing in {finding.header}",
        place=finding.name,
        expected=describe(node),
        hint=f"add {_example(key, node)} to {finding.header}" if key_path[1:] else f"add {_example(key, node)}",
        source=finding.document.source(key_path[:-1]),
    )


def _bad_quantity(finding: _Finding) -> ThalwegError:
    context = finding.details["ctx"]
    format_, why = context["format"], context["why"]
    hint = quantity_hint(finding.given, format_, finding.key_path)
    return finding.error("bad-quantity", expected=EXPECTED[format_], hint=hint, why=f": {why}" if why else "")


def _bad_choice(finding: _Finding) -> ThalwegError:
    value, node, key_path = finding.given, finding.node, finding.key_path
    choices = [
        choice["const"] for branch in (node, *node.get("anyOf", ())) for choice in resolve(branch).get("oneOf", ())
    ]
    hint = words.did_you_mean(value, choices) if isinstance(value, str) else None
    if str(value) in choices and not isinstance(value, str):
        is_setting = key_path in finding.document.not_in_file
        hint = (
            f"quotes are missing: --set '{finding.name}=\"{value}\"'"
            if is_setting
            else f'write it in quotes: "{value}"'
        )
    return finding.error("bad-value", expected=describe(node), hint=hint)


def _bad_name(finding: _Finding) -> ThalwegError:
    has_dots = "." in finding.node["pattern"]
    allowed = f"letters, digits,{' dots,' if has_dots else ''} dashes and underscores"
    return finding.error("bad-name", expected=f"{allowed}, beginning with a letter or digit")


def _out_of_range(finding: _Finding) -> ThalwegError:
    node = finding.node
    return finding.error("out-of-range", expected=describe(node), hint=_ratio_hint(finding.given, node))


def _wrong_type(finding: _Finding) -> ThalwegError:
    node = finding.node
    hint = _kind_hint(finding.given, finding.key_path, node, finding.raw)
    return finding.error("wrong-type", expected=describe(node) if node else None, hint=hint)


TRANSLATIONS: Mapping[str, Callable[[_Finding], ThalwegError]] = {
    "extra_forbidden": _unknown_key,
    "missing": _missing_key,
    "quantity": _bad_quantity,
    "literal_error": _bad_choice,
    "string_pattern_mismatch": _bad_name,
    "greater_than_equal": _out_of_range,
    "less_than_equal": _out_of_range,
    "finite_number": _out_of_range,
}
"""Translations by pydantic's error type; all other errors are values of a wrong type."""


def _translate(finding: _Finding) -> ThalwegError:
    return TRANSLATIONS.get(finding.details["type"], _wrong_type)(finding)


def _table(loc: tuple[int | str, ...]) -> Schema:
    node = locate_in_schema(loc)[1]
    branches = [resolve(branch) for branch in node.get("anyOf", ())]
    return next((branch for branch in branches if "properties" in branch), node)


def _example(key: str, node: Schema) -> str:
    formats = {"rate": '"40Mbps"', "size": '"100kB"', "time": '"45ms"', "time-or-rtt": '"1rtt"'}
    examples = {"cc": '"cubic"', "name": '"a-name"', "model": '"gilbert-elliott"'}
    if resolve(node).get("type") == "object":
        return f"a table [{key}]"
    return f"{key} = {examples.get(key) or formats.get(node.get('format', ''), '0.1')}"


def _kind_hint(value: TomlValue, key_path: KeyPath, node: Schema, raw: Raw) -> str | None:
    if "format" in node and isinstance(value, int | float) and node["format"] in EXPECTED:
        return quantity_hint(value, node["format"], key_path)
    if isinstance(value, dict) and key_path[0] == "sweep" and isinstance(key_path[-1], int):
        return _table_in_sweep_hint(str(key_path[1]), value)
    if isinstance(value, dict) and key_path[0] == "sweep":
        return f'put the key in quotes: "{_dotted(key_path[1:], value)}" = [...]'
    if isinstance(value, dict) and key_path in (("flow",), ("background",)):
        return f"write [[{key_path[0]}]], with two brackets on each side: it is a list of tables"
    if (
        isinstance(value, list)
        and "array" not in str(node.get("type"))
        and any(isinstance(entry, dict) for entry in value)
    ):
        return f"write [{key_path[-1]}], with one bracket on each side: it is a single table"
    if isinstance(value, list):
        return (
            f'to try several values, use [sweep]: "{name_of(key_path, raw)}" = [...]'
            if key_path[0] != "sweep"
            else None
        )
    if isinstance(value, str | int | float) and node.get("type") == "array":
        return f"write it in brackets: [{show(value)}]"
    if isinstance(value, str) and "number" in describe(node):
        plain = value.strip()
        percent = plain.removesuffix("%").strip().replace(",", ".")
        if plain.endswith("%") and percent.isascii() and percent.replace(".", "", 1).isdigit():
            return f"did you mean {float(percent[:MAX_DIGITS]) / 100:g}?"
        return f"write it without quotes: {plain}" if plain.replace(".", "", 1).isdigit() else None
    if isinstance(value, str) and describe(node) == "true or false" and value.lower() in ("true", "false"):
        return f"write it without quotes: {value.lower()}"
    return None


def _table_in_sweep_hint(address: str, value: Raw) -> str:
    """Suggest sweeping a key of a table that is listed as a value of the sweep."""
    inside = next((key for key in value if key not in ("name", "model")), None)
    if inside is None:
        return f"write the name alone: {show(next(iter(value.values()), 'a name'))}"
    return f'set the table outside [sweep], and sweep "{address}.{inside}" = [...]; or use two scenarios'


def _ratio_hint(value: TomlValue, node: Schema) -> str | None:
    """Suggest a ratio if the value was probably meant as a percentage."""
    is_ratio = node.get("type") in ("number", ["number", "null"]) and node.get("maximum") == 1
    if not is_ratio or not isinstance(value, int | float):
        return None
    return f"did you mean {value / 100:g}?" if 1 < value <= 100 else None


def _dotted(key_path: KeyPath, value: TomlValue) -> str:
    """Return the intended key if TOML parsed its dots as tables."""
    while isinstance(value, dict) and value:
        key = next(iter(value))
        key_path, value = (*key_path, key), value[key]
    return ".".join(map(str, key_path))


def _belongs(key: str, key_path: KeyPath) -> str | None:
    """Return the table in which an unknown key would be valid, as text; None without such a table."""
    if len(key_path) > 1 and key in schema()["properties"]:
        return f"`{key}` belongs at the top of the file, before the first [table]"
    for table, header in (
        ("Path", "[path]"),
        ("Flow", "[[flow]]"),
        ("Host", "[host.sender] or [host.receiver]"),
        ("Engine", "[engine]"),
    ):
        if key in schema()["$defs"][table]["properties"]:
            return f"`{key}` belongs to {header}"
    return None
