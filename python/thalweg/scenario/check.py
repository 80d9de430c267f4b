"""Checks a complete scenario, including its sweep."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from pathlib import Path

from thalweg.errors import Source, ThalwegError, ThalwegErrors
from thalweg.scenario import rows, structure, sweep, values
from thalweg.scenario.axis import Axis, Value
from thalweg.scenario.document import Document, Raw, Replacements
from thalweg.scenario.mistakes import Mistake, Mistakes, by_line
from thalweg.scenario.places import name_of, show
from thalweg.scenario.positions import KeyPath
from thalweg.scenario.rows import Rows
from thalweg.scenario.rules import (
    rules_amount,
    rules_arrival,
    rules_cc,
    rules_direction,
    rules_flow,
    rules_host,
    rules_path,
    rules_program,
)
from thalweg.scenario.sweep import Assignment

MAX_MISTAKES = 20
"""Maximum number of listed mistakes between keys."""

MAX_EXPERIMENTS = 1_000_000
"""Maximum number of experiments; a larger number is assumed to be a mistake."""


def check(document: Document) -> None:
    """Check a scenario.

    Raises:
        ThalwegErrors: If the scenario has mistakes; they are in the order of the file.
    """
    errors = find(document)
    if errors:
        raise ThalwegErrors(by_line(errors))


def find(document: Document) -> list[ThalwegError]:
    """Return the mistakes of a scenario, at most `MAX_MISTAKES` of them between keys."""
    in_structure = structure.check(document, document.raw)
    base = structure.sound(document.raw, in_structure)
    errors = list(in_structure.values())
    axes, lines, set_by_sweep, in_sweep = _sweep(document, base, {_identity(error) for error in errors})
    errors = [*(error for error in errors if not _is_set(error, set_by_sweep)), *in_sweep]
    if too_many := _too_many(document, base, axes):
        return [*errors, too_many]
    return [*errors, *_rules(document, base, axes, lines, structure.intended_addresses(errors))]


def _identity(error: ThalwegError) -> tuple[str | None, ...]:
    return error.code, error.place, error.found


def _is_set(error: ThalwegError, set_by_sweep: set[str]) -> bool:
    """Return whether an error is about a missing key that the sweep sets."""
    return error.code == "missing-key" and error.place in set_by_sweep


@dataclass(frozen=True)
class _Column:
    """The sweep's values of one key."""

    values: Sequence[Value]
    sources: Mapping[Value, Source] = field(default_factory=dict)
    """Position of each value in a file of rows, if it comes from one."""
    header: Source | None = None
    """Position of the header of the file of rows, if it comes from one."""

    @property
    def is_of_rows(self) -> bool:
        return self.header is not None


def _sweep(
    document: Document, base: Raw, reported_before: set[tuple[str | None, ...]]
) -> tuple[list[Axis], Rows | None, set[str], list[ThalwegError]]:
    """Check the keys and values of the sweep one by one.

    Returns:
        The valid axes, the rows of its files, the addresses that the sweep sets, and its mistakes.
    """
    raw = document.raw
    rest = {
        key: value for key, value in raw.items() if key != "sweep"
    }  # otherwise each value would be checked with all others
    columns, lines, errors = _columns(document)
    key_paths: dict[str, KeyPath] = {}
    sound: dict[str, _Column] = {}
    for address, column in columns.items():
        if not sweep.is_known(address, base):
            continue  # the structure check has already reported an error around the key
        value_errors = _values(address, column)
        try:
            key_paths[address] = sweep.locate(address, base)
        except ThalwegError as unknown:
            value_errors.append(unknown)
        else:
            sound[address] = column if not value_errors else replace(column, values=[])
        for error in value_errors:
            errors += _in_sweep([error], address, document, error.source or column.header)
    set_by_sweep = {name_of(key_path, raw) for key_path in key_paths.values()}
    right: dict[str, list[Value]] = {}
    reported: set[tuple[str | None, ...]] = set()
    for address, column in sound.items():
        if around := next((swept for swept in key_paths if _is_around(key_paths[swept], key_paths[address])), None):
            errors += _in_sweep([_twice(address, around)], address, document, column.header)
            continue
        right[address] = []
        for value in column.values:
            value_errors = list(structure.check(document, sweep.put(rest, key_paths[address], value)).values())
            wrong = [
                error
                for error in value_errors
                if _identity(error) not in reported_before and not _is_set(error, set_by_sweep)
            ]
            new = [error for error in wrong if _identity(error) not in reported]
            errors += _in_sweep(new, address, document, column.sources.get(value))
            reported |= {_identity(error) for error in wrong}
            if not wrong:
                right[address].append(value)
    return _axes(columns, right, lines), lines, set_by_sweep, errors


def _columns(document: Document) -> tuple[dict[str, _Column], Rows | None, list[ThalwegError]]:
    """Return the values of every key that the sweep sets, the rows of its files, and the mistakes in these."""
    swept = document.raw.get("sweep")
    columns: dict[str, _Column] = {}
    row_values: Rows | None = None
    errors: list[ThalwegError] = []
    lists = swept if isinstance(swept, dict) else {}
    for address, choices in lists.items():
        if not isinstance(choices, list) or not all(isinstance(value, bool | int | float | str) for value in choices):
            continue  # the structure check has already reported an error
        if address != rows.KEY:
            columns[address] = _Column(choices)
            continue
        try:
            row_values = rows.read(_names(choices), document.file.parent)
        except ThalwegError as error:
            errors += _in_sweep([error], address, document, error.source)
            continue
        for number, name in enumerate(row_values.addresses):
            sources: dict[Value, Source] = {}
            for row in row_values.rows:
                sources.setdefault(row.values[number], row.source)
            if name in columns or name in lists:
                errors += _in_sweep([_set_twice(name)], name, document, row_values.header)
            elif _is_setting(name, document):
                errors.append(_set_by_setting(name, row_values.header))
            columns[name] = _Column(list(sources), sources, row_values.header)
    return columns, row_values, errors


def _names(choices: Sequence[Value]) -> list[str]:
    names = [value for value in choices if isinstance(value, str)]
    if not names or len(names) < len(choices):
        raise ThalwegError(
            "wrong-type",
            f"`{rows.KEY}` does not name files",
            place=rows.KEY,
            found=", ".join(map(show, choices)) or "an empty list",
            expected='names of CSV files, as in rows = ["paths.csv"]',
        )
    return names


def _set_twice(address: str) -> ThalwegError:
    return ThalwegError(
        "conflict",
        f"`{address}` is set twice: by a column of a file of rows, and by another column or list",
        place=address,
        hint=f"remove `{address}` from the file, or from [sweep]",
    )


def _is_setting(address: str, document: Document) -> bool:
    """Return whether a setting of the command line or of the API gives the key its value."""
    try:
        return sweep.locate(address, document.raw) in document.not_in_file
    except ThalwegError:
        return False  # the check of the sweep reports unknown keys


def _set_by_setting(address: str, source: Source) -> ThalwegError:
    return ThalwegError(
        "conflict",
        f"`{address}` is set twice: by a column of a file of rows, and by a setting",
        place=address,
        expected="a setting of a key that the rows do not set",
        hint=f"remove `--set {address}=...`, or the column `{address}`",
        source=source,
    )


def _axes(columns: Mapping[str, _Column], right: Mapping[str, Sequence[Value]], row_values: Rows | None) -> list[Axis]:
    """Return the axes without invalid values; rows with an invalid value are omitted."""
    axes = []
    for address, column in columns.items():
        if not column.is_of_rows:
            if right.get(address):
                axes.append(Axis((address,), tuple((value,) for value in right[address])))
        elif row_values is not None and address == row_values.addresses[0]:
            allowed = [set(right.get(key, ())) for key in row_values.addresses]
            sound = tuple(
                row.values
                for row in row_values.rows
                if all(value in allowed_values for value, allowed_values in zip(row.values, allowed, strict=True))
            )
            if sound:
                axes.append(Axis(row_values.addresses, sound))
    return axes


def _is_around(key_path: KeyPath, other: KeyPath) -> bool:
    return len(key_path) < len(other) and other[: len(key_path)] == key_path


def _twice(address: str, around: str) -> ThalwegError:
    return ThalwegError(
        "conflict",
        f"`{address}` is a key of `{around}`, which the sweep replaces",
        place=address,
        expected="one of the two in the sweep",
        hint=f"remove `{around}` or `{address}` from [sweep]",
    )


def _in_sweep(
    errors: Sequence[ThalwegError], address: str, document: Document, source: Source | None = None
) -> Sequence[ThalwegError]:
    """Return the mistakes with their position in the sweep: in a file of rows (`source`), or in the scenario."""
    for error in errors:
        error.source = source or document.source(("sweep", address))
        error.message = f"in [sweep], {error.message}"
    return errors


def _too_many(document: Document, base: Raw, axes: Sequence[Axis]) -> ThalwegError | None:
    repetitions = base.get("repetitions")
    count = prod(len(axis.choices) for axis in axes) * (repetitions if isinstance(repetitions, int) else 1)
    if count <= MAX_EXPERIMENTS:
        return None
    return ThalwegError(
        "too-many-experiments",
        f"the sweep and its repetitions result in {count} experiments",
        place="sweep",
        expected=f"at most {MAX_EXPERIMENTS}",
        hint="sweep fewer keys, or fewer values",
        source=document.source(("sweep",)),
    )


def _values(address: str, column: _Column) -> list[ThalwegError]:
    """Check the values for mistakes that do not depend on the key."""
    values = column.values
    if not values:
        return [
            ThalwegError("empty-list", f"`{address}` has no values", place=address, expected="at least one value"),
        ]
    kinds = sorted({_kind(value) for value in values})
    if len(kinds) > 1:
        values_text = ", ".join(map(show, values))
        expected = f"one kind, not {' and '.join(kinds)}"
        other = next(value for value in values if _kind(value) != _kind(values[0]))
        return [
            ThalwegError(
                "mixed-values",
                f"`{address}` has values of several kinds",
                place=address,
                found=values_text,
                expected=expected,
                source=column.sources.get(other),
            )
        ]
    twice = [value for value, times in Counter(values).items() if times > 1]
    hint = "to run a point several times, set `repetitions`"
    return [
        ThalwegError("duplicate-value", f"`{address}` has {show(value)} twice", place=address, hint=hint)
        for value in twice
    ]


def _kind(value: Value) -> str:
    return "true or false" if isinstance(value, bool) else "text" if isinstance(value, str) else "number"


ScenarioRule = Callable[[Raw, Path, Mistakes], None]
"""A rule receives the scenario's keys that it reads and the folder of its files, and records mistakes."""

RULES: tuple[tuple[ScenarioRule, tuple[str, ...]], ...] = (
    (rules_path.check, ("path", "duration")),
    (rules_path.check_hosts, ("host", "flow")),
    (rules_flow.check, ("flow", "host", "duration")),
    (rules_flow.check_background, ("background", "path", "duration")),
    (rules_direction.check, ("flow", "host", "path.reverse")),
    (rules_cc.check, ("flow",)),
    (rules_program.check, ("flow", "duration", "engine")),
    (rules_host.check, ("host", "flow", "background")),
    (rules_amount.check, ("flow", "duration", "sample_interval")),
    (rules_arrival.check, (*(f"path.{key}" for key in rules_arrival.PATH_KEYS), "flow", "duration")),
)
"""Rules with the keys that they read. A rule is applied once for all sweep points with the same values of
these keys.
"""


def extract(raw: Raw, keys: Sequence[str]) -> Raw:
    """Return the scenario reduced to some keys, at the top level or in a top-level table.

    >>> extract({"path": {"rtt": "1ms", "loss": 1}, "flow": [], "host": {}}, ["path.rtt", "flow", "duration"])
    {'path': {'rtt': '1ms'}, 'flow': []}
    """
    extract: Raw = {}
    for key in keys:
        top, _, below = key.partition(".")
        value = raw.get(top)
        if top in raw and not (below and isinstance(value, dict)):
            extract[top] = value
        elif isinstance(value, dict) and below in value:
            extract[top] = {**values.table(extract, top), below: value[below]}
    return extract


def _indices(addresses: Sequence[str], base: Raw, keys: Sequence[str]) -> list[int]:
    """Return the indices of the swept addresses that set a key that a rule reads, or one below or around it.

    >>> _indices(["path.rtt", "path.rate"], {}, ["flow", "path.rate"])
    [1]
    """
    paths = [tuple(key.split(".")) for key in keys]
    key_paths = [sweep.locate(address, base) for address in addresses]
    return [
        index
        for index, key_path in enumerate(key_paths)
        if any(key_path[: len(path)] == path[: len(key_path)] for path in paths)
    ]


def _rules(
    document: Document, base: Raw, axes: Sequence[Axis], lines: Rows | None, intended: set[str]
) -> list[ThalwegError]:
    """Check the rules between keys at every point; a mistake of several points is reported once.

    A key in `intended` is missing only because it was misspelled, and is not reported.
    """
    at: dict[Mistake, list[Assignment]] = {}
    points: list[Assignment] = []
    in_files: dict[tuple[Source | None, str], ThalwegError] = {}
    # A rule has the same result at all points with the same values of the keys that it reads.
    addresses = [address for axis in axes for address in axis.addresses]
    read = [_indices(addresses, base, keys) for _, keys in RULES]
    cache: list[dict[tuple[Value, ...], Mistakes]] = [{} for _ in RULES]
    for assignment, raw in sweep.scenarios(base, axes):
        points.append(assignment)
        set_here = tuple(assignment.values())
        for (rule, keys), indices, results in zip(RULES, read, cache, strict=True):
            read_here = tuple([set_here[index] for index in indices])
            mistakes = results.get(read_here)
            if mistakes is None:
                mistakes = results[read_here] = Mistakes()
                rule(extract(raw, keys), document.file.parent, mistakes)
            for mistake in mistakes.entries:
                if not any(
                    address == wanted or address.startswith(f"{wanted}.")
                    for address in intended
                    for wanted in mistake.instead
                ):
                    at.setdefault(mistake, []).append(assignment)
            for error in mistakes.errors:
                in_files.setdefault((error.source, error.message), error)
    errors = [
        _error(mistake, assignments, points, lines, document)
        for mistake, assignments in list(at.items())[:MAX_MISTAKES]
    ]
    if len(at) > MAX_MISTAKES:
        errors.append(_more(len(at) - MAX_MISTAKES, errors[-1].source))
    return [*errors, *in_files.values()]


def _more(count: int, source: Source | None) -> ThalwegError:
    message = f"there are {count} more mistakes where the sweep sets other values"
    hint = "correct the others first; often a single key causes all of them"
    return ThalwegError("more-mistakes", message, place="sweep", hint=hint, source=source)


def _error(
    mistake: Mistake, failing: list[Assignment], points: list[Assignment], lines: Rows | None, document: Document
) -> ThalwegError:
    assignment = {} if len(failing) == len(points) else _cause(failing, points)
    condition = " and ".join(f"{key} = {show(value)}" for key, value in assignment.items())
    return mistake.error(
        name_of(mistake.key_path, document.raw),
        _source(mistake.key_path, assignment, lines, document),
        f", where the sweep sets {condition}" if condition else "",
    )


def _cause(failing: list[Assignment], points: list[Assignment]) -> Assignment:
    """Return the first value of the first failing point with which every point of the sweep fails; otherwise the entire
    first failing point.
    """
    for key, value in failing[0].items():
        if sum(point[key] == value for point in points) == sum(point[key] == value for point in failing):
            return {key: value}
    return failing[0]


def _source(key_path: KeyPath, assignment: Assignment, lines: Rows | None, document: Document) -> Source:
    """Return the position of the sweep if it causes the mistake, otherwise of the key."""
    swept, address = document.raw.get("sweep"), name_of(key_path, document.raw)
    of_rows = lines.addresses if lines else ()
    is_swept = address in of_rows or (isinstance(swept, dict) and address in swept)
    key = next(iter(assignment), address if is_swept else None)
    if lines and key in of_rows:
        return lines.source(assignment)
    return document.source(("sweep", key) if key else key_path)


SETTABLE = ("seed", "repetitions", "duration", rows.KEY)
"""Keys that settings accept without `sweep.locate`."""


def overridden(document: Document, settings: Replacements) -> Document:
    """Return the document with settings applied; each replaces the value of a key and its list in the sweep.

    A list becomes the key's sweep.

    Raises:
        ThalwegErrors: If a key is unknown or cannot be set.
    """
    raw: Raw = document.raw
    base = structure.sound(raw, structure.check(document, raw))
    key_paths, errors = set(document.not_in_file), list[ThalwegError]()
    for address, value in settings.items():
        try:
            key_path = (address,) if address in SETTABLE else sweep.locate(address, raw)
        except ThalwegError as error:
            error.message = error.message.replace("cannot be swept", "cannot be set")
            error.code = "bad-set-key"
            errors.append(error)
            continue
        if not sweep.is_known(address, base):
            continue  # the file has a mistake around the key, which the check reports
        swept = raw.get("sweep", {})
        if isinstance(value, list) and isinstance(swept, dict):
            raw = {**raw, "sweep": {**swept, address: value}}
            key_paths.add(("sweep", address))
        elif not isinstance(value, list):
            raw = sweep.put(raw, key_path, value)
            key_paths.add(key_path)
            if isinstance(swept, dict) and address in swept:
                raw["sweep"] = {key: sweep_values for key, sweep_values in swept.items() if key != address}
    if errors:
        raise ThalwegErrors(errors)
    return replace(document, raw=raw, not_in_file=frozenset(key_paths))
