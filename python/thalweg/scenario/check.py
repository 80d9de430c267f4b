"""Checks a whole scenario, its sweep included, and reports every mistake once."""

from collections import Counter
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from thalweg.errors import Source, ThalwegError, ThalwegErrors
from thalweg.scenario import rules_amount, rules_arrival, rules_cc, rules_flow, rules_host, rules_path, structure, sweep
from thalweg.scenario.document import Document, Raw
from thalweg.scenario.mistakes import Mistake, Mistakes
from thalweg.scenario.places import name_of, show
from thalweg.scenario.positions import Place
from thalweg.scenario.sweep import Assignment, Value

MOST_MISTAKES = 20
"""Mistakes of single points of a sweep that are told; the others would bury them."""

MOST_EXPERIMENTS = 1_000_000
"""More experiments than this are a slip: at ten a second on each of two cores they would take half a day."""


def check(document: Document) -> None:
    """Check a scenario.

    Raises `ThalwegErrors` with every mistake, in the order of the file.
    """
    errors = find(document)
    if errors:
        raise ThalwegErrors(sorted(errors, key=lambda error: (error.source and error.source.line) or 0))


def find(document: Document) -> list[ThalwegError]:
    """Give every mistake of a scenario."""
    errors = structure.check(document, document.raw)
    right, places, in_sweep = _sweep(document, {_identity(error) for error in errors})
    set_by_sweep = {name_of(place, document.raw) for place in places}
    errors = [e for e in (*errors, *in_sweep) if not (e.code == "missing-key" and e.place in set_by_sweep)]
    if too_many := _too_many(document, right):
        return [*errors, too_many]
    return [*errors, *_rules(document, right, structure.addresses_meant(errors))]


def _identity(error: ThalwegError) -> tuple[str | None, ...]:
    return error.code, error.place, error.found


def _sweep(
    document: Document, known: set[tuple[str | None, ...]]
) -> tuple[dict[str, list[Value]], list[Place], list[ThalwegError]]:
    """Check the keys and values of the sweep one by one; gives what is right of it, and the places that it sets."""
    raw = document.raw
    given = raw.get("sweep")
    rest = {
        key: value for key, value in raw.items() if key != "sweep"
    }  # or each value would be checked with all others
    right: dict[str, list[Value]] = {}
    places: list[Place] = []
    errors: list[ThalwegError] = []
    for address, values in (given if isinstance(given, dict) else {}).items():
        if not isinstance(values, list) or not all(isinstance(value, bool | int | float | str) for value in values):
            continue  # has an error from the structure already
        found = _values(address, values)
        try:
            place = sweep.locate(address, raw)
        except ThalwegError as unknown:
            found.append(unknown)
        else:
            places.append(place)
            if not found:
                right[address] = []
            for value in values if not found else ():
                wrong = [
                    e for e in structure.check(document, sweep.put(rest, place, value)) if _identity(e) not in known
                ]
                errors += _in_sweep(wrong, address, document)
                if not wrong:
                    right[address].append(value)
        errors += _in_sweep(found, address, document)
    return {address: values for address, values in right.items() if values}, places, errors


def _in_sweep(errors: Sequence[ThalwegError], address: str, document: Document) -> Sequence[ThalwegError]:
    for error in errors:
        error.source = document.source(("sweep", address))
        error.message = f"in [sweep], {error.message}"
    return errors


def _too_many(document: Document, swept: Mapping[str, Sequence[Value]]) -> ThalwegError | None:
    repetitions = document.raw.get("repetitions")
    many = prod(map(len, swept.values())) * (repetitions if isinstance(repetitions, int) else 1)
    if many <= MOST_EXPERIMENTS:
        return None
    return ThalwegError(
        "too-many-experiments",
        f"the sweep and its repetitions make {many} experiments",
        place="sweep",
        expected=f"{MOST_EXPERIMENTS} at most",
        hint="sweep fewer keys at once, or give them fewer values",
        source=document.source(("sweep",)),
    )


def _values(address: str, values: Sequence[Value]) -> list[ThalwegError]:
    """Check what can be said of the values whatever the key is."""
    if not values:
        return [
            ThalwegError("empty-list", f"`{address}` has no values", place=address, expected="at least one value"),
        ]
    kinds = sorted({_kind(value) for value in values})
    if len(kinds) > 1:
        found = ", ".join(map(show, values))
        expected = f"one kind, not {' and '.join(kinds)}"
        return [
            ThalwegError(
                "mixed-values",
                f"`{address}` has values of several kinds",
                place=address,
                found=found,
                expected=expected,
            )
        ]
    twice = [value for value, times in Counter(values).items() if times > 1]
    hint = "to try a point several times there is `repetitions`"
    return [
        ThalwegError("duplicate-value", f"`{address}` has {show(value)} twice", place=address, hint=hint)
        for value in twice
    ]


def _kind(value: Value) -> str:
    return "true or false" if isinstance(value, bool) else "text" if isinstance(value, str) else "number"


def _rules(document: Document, swept: Mapping[str, Sequence[Value]], meant: set[str]) -> list[ThalwegError]:
    """Check the rules between keys at every point; a mistake of several points is reported once.

    What is missing only because its key is misspelled, and was `meant`, is no further mistake.
    """
    at: dict[Mistake, list[Assignment]] = {}
    points = list(sweep.points(swept))
    in_files: dict[Any, ThalwegError] = {}
    for assignment in points:
        raw = sweep.apply(document.raw, assignment)
        mistakes = Mistakes()
        rules_path.check(raw, document.file.parent, mistakes)
        rules_flow.check(raw, mistakes)
        rules_cc.check(raw, document.file.parent, mistakes)
        rules_host.check(raw, mistakes)
        rules_amount.check(raw, mistakes)
        rules_arrival.check(raw, document.file.parent, mistakes)
        for mistake in mistakes:
            if not any(
                address == each or address.startswith(f"{each}.") for address in meant for each in mistake.instead
            ):
                at.setdefault(mistake, []).append(assignment)
        for error in mistakes.errors:
            in_files.setdefault((error.source, error.message), error)
    errors = [_error(mistake, where, points, document) for mistake, where in list(at.items())[:MOST_MISTAKES]]
    if len(at) > MOST_MISTAKES:
        errors.append(_more(len(at) - MOST_MISTAKES, errors[-1].source))
    return [*errors, *in_files.values()]


def _more(many: int, source: Source | None) -> ThalwegError:
    message = f"there are {many} more mistakes where the sweep sets other values"
    hint = "correct the others first; often one key is the cause of all"
    return ThalwegError("more-mistakes", message, place="sweep", hint=hint, source=source)


def _error(mistake: Mistake, where: list[Assignment], points: list[Assignment], document: Document) -> ThalwegError:
    assignment = {} if len(where) == len(points) else _cause(where, points)
    when = " and ".join(f"{key} = {show(value)}" for key, value in assignment.items())
    return ThalwegError(
        mistake.code,
        mistake.message + (f", where the sweep sets {when}" if when else ""),
        place=name_of(mistake.place, document.raw),
        found=mistake.found,
        expected=mistake.expected,
        hint=mistake.hint,
        source=_source(mistake.place, assignment, document),
    )


def _cause(where: list[Assignment], points: list[Assignment]) -> Assignment:
    """Find the one value of the first point that makes the mistake wherever it is set, else give the point."""
    for key, value in where[0].items():
        if sum(point[key] == value for point in points) == sum(point[key] == value for point in where):
            return {key: value}
    return where[0]


def _source(place: Place, assignment: Assignment, document: Document) -> Source:
    """Point to the sweep where that makes the mistake, else to the key."""
    swept, address = document.raw.get("sweep"), name_of(place, document.raw)
    key = next(iter(assignment), address if isinstance(swept, dict) and address in swept else None)
    return document.source(("sweep", key) if key else place)


def overridden(document: Document, settings: Mapping[str, Value | list[Value]]) -> Document:
    """Give the document with settings laid over it: each replaces the value, and the sweep of its key.

    A list is what the sweep then tries. Raises `ThalwegErrors` if a key is unknown.
    """
    raw: Raw = document.raw
    places, errors = set(document.not_in_file), list[ThalwegError]()
    for address, value in settings.items():
        try:
            place = (address,) if address in ("seed", "repetitions", "duration") else sweep.locate(address, raw)
        except ThalwegError as error:
            error.message = error.message.replace("cannot be swept", "cannot be set")
            error.code = "bad-set-key"
            errors.append(error)
            continue
        if isinstance(value, list):
            raw = {**raw, "sweep": {**raw.get("sweep", {}), address: value}}
            places.add(("sweep", address))
            continue
        raw = sweep.put(raw, place, value)
        places.add(place)
        if isinstance(raw.get("sweep"), dict) and address in raw["sweep"]:
            raw = {**raw, "sweep": {key: values for key, values in raw["sweep"].items() if key != address}}
    if errors:
        raise ThalwegErrors(errors)
    return Document(document.file, document.text, raw, frozenset(places))
