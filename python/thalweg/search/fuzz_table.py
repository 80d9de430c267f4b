"""Parses and checks the table `[fuzz]` of a scenario."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, cast

from pydantic import Field, StrictInt

from thalweg.checks import Term, TermError
from thalweg.engine import Engine
from thalweg.errors import ThalwegError, ThalwegErrors
from thalweg.scenario import Document
from thalweg.scenario.document import Value
from thalweg.scenario.mistakes import by_line
from thalweg.scenario.places import show
from thalweg.scenario.positions import KeyPath, dotted
from thalweg.scenario.text import quantities, words
from thalweg.search.conditions import KINDS, ONCE, parameters
from thalweg.search.failures import Failure
from thalweg.search.parameters import Parameter, ranged
from thalweg.search.table import Scalar, Search, SearchesTable, shaped
from thalweg.search.terms import Objective, check_sampled, intervals_ns

NAME = "fuzz"

SCORE = "score"
"""Objective of the search: the distance of a candidate beyond the bound of the failure."""

MAX_ELEMENTS = 8

ConditionTable = dict[str, list[Scalar] | StrictInt]
"""Ranges of an element's values by name, and `count`."""


class FuzzTable(SearchesTable):
    """Table of `thalweg fuzz`."""

    fails: dict[str, str] = Field(min_length=1)
    """Failures by name: `measure(flow) <= number`, or `>=`, optionally with `for TIME`, `after TIME`, or both."""
    conditions: dict[str, ConditionTable] = Field(min_length=1)
    """Possible conditions by kind, with the ranges of their values."""
    budget: Annotated[int, Field(ge=1, le=100_000, strict=True)] = 100
    """Number of candidates for each failure."""


@dataclass(frozen=True)
class Fuzz:
    """A fuzzer's search, checked against its scenario."""

    document: Document
    failures: Sequence[Failure]
    parameters: Sequence[Parameter]
    """Presence of each element, and its values."""
    ranges: Mapping[str, Mapping[str, Parameter]]
    """Ranges by kind, then by name of a value."""
    budget: int
    duration_s: float

    def search(self) -> Search:
        """Return the search for the candidate that fails most."""
        objective = Objective(Term(SCORE, None), True, "worst")
        return Search(self.document, self.parameters, [objective], [], {}, self.budget)

    @classmethod
    def of(cls, document: Document) -> "Fuzz":
        """Parse and check the table of a checked scenario.

        Raises:
            ThalwegErrors: If the table has mistakes.
            ThalwegError: If the table is missing.
        """
        if NAME not in document.searches:
            raise ThalwegError(
                "no-fuzz", f"`{document.file}` has no table [fuzz]", place=NAME,
                expected="a table that names failures and conditions", hint="scenarios/fuzz has ready-made ones",
                source=document.source(()),
            )  # fmt: skip
        table = shaped(document, NAME, FuzzTable)
        errors: list[ThalwegError] = []
        duration = document.raw.get("duration")
        if not isinstance(duration, str):
            errors.append(_error(document, (), "the scenario has no duration", "a duration", 'add duration = "20s"'))
            raise ThalwegErrors(errors)
        errors += _base(document)
        failures = _failures(document, table, errors)
        ranges = _ranges(document, table, duration, errors)
        if errors:
            raise ThalwegErrors(by_line(errors))
        counts = {kind: cast(int, settings.get("count", 1)) for kind, settings in table.conditions.items()}
        searched = [
            parameter for kind, of_kind in ranges.items() for parameter in parameters(kind, counts[kind], of_kind)
        ]
        return cls(document, failures, searched, ranges, table.budget, quantities.time(duration) / 1e9)

    def check(self, engine: Engine) -> None:
        """Check that the engine has the algorithms of the cross traffic.

        Raises:
            ThalwegErrors: If it lacks one.
        """
        of_cross = self.ranges.get("cross", {}).get("cc")
        names = [str(name) for name in of_cross.choices] if of_cross else []
        known = sorted(engine.algorithms)
        errors = [
            _error(
                self.document,
                ("conditions", "cross"),
                f"the engine `{engine.name}` has no congestion control `{name}`",
                words.one_of(known),
                words.did_you_mean(name, known),
            )
            for name in names
            if name not in known
        ]
        if errors:
            raise ThalwegErrors(errors)


def _base(document: Document) -> list[ThalwegError]:
    path = document.raw["path"]
    assert isinstance(path, dict)
    errors = []
    if document.swept:
        errors.append(_error(document, (), "the scenario has a [sweep]", "one point", "remove [sweep]"))
    if "rate" not in path or not isinstance(path.get("loss", 0.0), int | float):
        expected = "path.rate, and a number as path.loss if there is any"
        errors.append(_error(document, (), "the path already changes", expected, "set rate in [path]"))
    return errors


def _failures(document: Document, table: FuzzTable, errors: list[ThalwegError]) -> list[Failure]:
    flows = [str(flow["name"]) for flow in document.flows]
    failures = []
    for name, text in table.fails.items():
        try:
            failure = Failure.parse(name, text, flows)
            check_sampled(failure.bound.term, document)
            failures.append(failure)
        except TermError as error:
            errors.append(_error(document, ("fails", name), error.message, error.expected, error.hint))
    if any(failure.window_s or failure.after_s for failure in failures) and 0 in intervals_ns(document):
        expected = "a sample_interval above 0, for measures within a window"
        errors.append(_error(document, ("fails",), "nothing is sampled", expected, 'sample_interval = "50ms"'))
    return failures


def _ranges(
    document: Document, table: FuzzTable, duration: str, errors: list[ThalwegError]
) -> dict[str, dict[str, Parameter]]:
    ranges: dict[str, dict[str, Parameter]] = {}
    for kind, settings in table.conditions.items():
        key_path = ("conditions", kind)
        if kind not in KINDS:
            hint = words.did_you_mean(kind, list(KINDS))
            errors.append(_error(document, key_path, f"there is no condition `{kind}`", words.one_of(KINDS), hint))
            continue
        kinds = KINDS[kind]
        values: ConditionTable = {"at": ["0s", duration]} if "at" in kinds else {}
        values |= settings
        count = values.pop("count", 1)
        max_count = 1 if kind in ONCE else MAX_ELEMENTS
        if not isinstance(count, int) or not 1 <= count <= max_count:
            errors.append(_error(document, key_path, f"`count` is {show(count)}", f"a number from 1 to {max_count}"))
            continue
        if set(values) != set(kinds):
            unknown = [name for name in values if name not in kinds]
            wrong = unknown[0] if unknown else next(name for name in kinds if name not in values)
            message = f"`{kind}` has no value `{wrong}`" if unknown else f"`{wrong}` is missing in `{kind}`"
            hint = words.did_you_mean(wrong, list(kinds)) if unknown else None
            errors.append(_error(document, key_path, message, ", ".join(kinds), hint))
            continue
        ranges[kind] = {}
        for name, ends in values.items():
            try:
                ranges[kind][name] = _range(f"{kind}.{name}", ends, kinds[name])
            except TermError as error:
                errors.append(_error(document, key_path, error.message, error.expected, error.hint))
    return ranges


def _range(address: str, ends: list[Value] | int, expected_kind: str) -> Parameter:
    if isinstance(ends, int):
        raise TermError(f"`{address}` is {ends}", "a range in brackets")
    if expected_kind == "choice":
        if not ends or not all(isinstance(end, str) for end in ends):
            raise TermError(f"`{address}` has no names", 'algorithms, such as ["cubic", "bbr"]')
        return Parameter(address, "choice", choices=ends)
    parameter = ranged(address, ends, is_log=False)
    if parameter.kind != expected_kind:
        raise TermError(f"`{address}` is a range of {parameter.kind}", f"a range of {expected_kind}")
    # Ranges of a factor of 10 or more are sampled on a log scale, except those of start times.
    is_log = parameter.low > 0 and not address.endswith(".at") and parameter.high / parameter.low >= 10
    return Parameter(address, parameter.kind, parameter.low, parameter.high, is_log)


def _error(document: Document, key_path: KeyPath, message: str, expected: str, hint: str | None = None) -> ThalwegError:
    full_path = (NAME, *key_path)
    return ThalwegError(
        "bad-fuzz", message, place=dotted(full_path), expected=expected, hint=hint, source=document.source(full_path)
    )
