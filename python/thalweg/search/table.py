"""Parses and checks the table `[search]` of a scenario."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal, TypeVar, cast

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictFloat, StrictInt, StrictStr, ValidationError

from thalweg import scenario
from thalweg.checks import Term, TermError
from thalweg.errors import ThalwegError, ThalwegErrors
from thalweg.scenario import Document, rows, sweep
from thalweg.scenario.document import Raw, TomlValue, Value
from thalweg.scenario.mistakes import Mistakes, by_line
from thalweg.scenario.model_mistakes import Described, translate
from thalweg.scenario.places import show
from thalweg.scenario.positions import KeyPath, dotted
from thalweg.scenario.rows import KEY as ROWS
from thalweg.scenario.rows import Rows
from thalweg.scenario.text import words
from thalweg.search.parameters import Parameter, expanded, ranged
from thalweg.search.terms import Constraint, Objective, check_over, check_sampled

NAME = "search"

Scalar = StrictBool | StrictInt | StrictFloat | StrictStr


class SearchesTable(BaseModel):
    """A table of a search: keys that are not declared are mistakes."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, use_attribute_docstrings=True)


Model = TypeVar("Model", bound=SearchesTable)


class ParameterTable(SearchesTable):
    """The values of a parameter, in the longer form."""

    low: Scalar | None = None
    """The low end of a range: a number, or a quantity such as `"0.5bdp"`."""
    high: Scalar | None = None
    """High end of the range, of the same kind."""
    scale: Literal["linear", "log"] = "linear"
    """`log` tries values evenly over the logarithm."""
    int: list[StrictInt] | None = None
    """A range of whole numbers: both ends."""
    choices: list[Scalar] | None = None
    """Values without an order, at least two."""


class ObjectiveTable(SearchesTable):
    """A quantity that the search maximises or minimises."""

    measure: str
    """A measure of docs/reference/analysis.md, or `harm`."""
    of: str | None = None
    """The flow that is measured; left out for measures of the path."""
    goal: Literal["maximise", "minimise"]
    """Direction of the search."""
    over: str = "mean"
    """Reduction of the sweep's points to one number: `mean`, `median`, `worst`, `best`, or a percentile: `p10`."""


class SearchTable(SearchesTable):
    """Table of `thalweg optimise`."""

    parameters: dict[str, list[Scalar] | ParameterTable] = Field(min_length=1)
    """Keys of the scenario, as in [sweep], and what each can be: `[low, high]`, or a table."""
    objectives: list[ObjectiveTable] = Field(min_length=1)
    """Objectives of the search; with several, it finds the Pareto front."""
    constraints: list[str] = []
    """Bounds that a candidate keeps at every point: `measure(flow) <= number`, or `>=`."""
    held_out: dict[str, list[Scalar]] = {}
    """Values of the sweep, by key, or files of its `rows`. The search sees no point with one of them; the best
    candidates are judged there."""
    budget: Annotated[int, Field(ge=1, le=100_000, strict=True)] = 100
    """Number of candidates."""


@dataclass(frozen=True)
class Search:
    """A search, checked against its scenario."""

    document: Document
    """The scenario; its sweep includes the held-out values."""
    parameters: Sequence[Parameter]
    objectives: Sequence[Objective]
    constraints: Sequence[Constraint]
    held_out: Mapping[str, Sequence[Value]]
    """Held-out values of the sweep, by key; for `rows`, names of files of rows."""
    budget: int
    held_out_rows: Rows | None = None

    @property
    def terms(self) -> list[Term]:
        """All distinct measures that are used."""
        return list(dict.fromkeys(quantity.term for quantity in self.quantities))

    def is_held_out(self, point: Mapping[str, object]) -> bool:
        """Return whether a point of the sweep is held out."""
        rows = self.held_out_rows
        if rows and tuple(point[address] for address in rows.addresses) in rows.axis.choices:
            return True
        return any(point[key] in values for key, values in self.held_out.items() if key != ROWS)

    def expanded(self, settings: Mapping[str, Value]) -> dict[str, Value]:
        """Return the settings by key of the scenario; a parameter of every flow is expanded to all flows."""
        flows = names_of_flows(self.document)
        return {key: value for address, value in settings.items() for key in expanded(address, flows)}

    @property
    def written(self) -> dict[str, Value]:
        """Values of the parameters that the scenario sets; a parameter of every flow has the first flow's value."""
        values: dict[str, Value] = {}
        for parameter in self.parameters:
            value: TomlValue = self.document.raw
            first = expanded(parameter.address, names_of_flows(self.document))[0]
            for key in sweep.locate(first, self.document.raw):
                if isinstance(value, dict):
                    value = value.get(str(key))
                elif isinstance(value, list) and isinstance(key, int):
                    value = value[key]
            if isinstance(value, bool | int | float | str):
                values[parameter.address] = value
        return values

    @property
    def quantities(self) -> list[Objective | Constraint]:
        """Objectives, then constraints: the quantities of each candidate."""
        return [*self.objectives, *self.constraints]

    @classmethod
    def of(cls, document: Document) -> "Search":
        """Parse and check the table of a checked scenario.

        Raises:
            ThalwegErrors: If the table has mistakes.
            ThalwegError: If the table is missing.
        """
        if NAME not in document.searches:
            raise ThalwegError(
                "no-search",
                f"`{document.file}` has no table [search]",
                place=NAME,
                expected="a table that names parameters and objectives",
                hint="docs/guide/search-for-parameters.md shows one",
                source=document.source(()),
            )
        table = shaped(document, NAME, SearchTable)
        checker = _Checker(document)
        parameters = [checker.parameter(address, values) for address, values in table.parameters.items()]
        objectives = [checker.objective(number, row) for number, row in enumerate(table.objectives)]
        constraints = [checker.constraint(number, row) for number, row in enumerate(table.constraints)]
        checker.held_out(table.held_out)
        checker.raise_errors()
        search = cls(
            document,
            [parameter for parameter in parameters if parameter],
            [objective for objective in objectives if objective],
            [constraint for constraint in constraints if constraint],
            {address: list(values) for address, values in table.held_out.items()},
            table.budget,
            checker.held_out_rows,
        )
        checker.ends(search.parameters)
        checker.raise_errors()
        return search


def shaped(document: Document, name: str, model: type[Model]) -> Model:
    """Parse a table of searches as its model.

    Raises:
        ThalwegErrors: If values are unknown, missing or invalid.
        ThalwegError: If it is not a table.
    """
    table = document.searches[name]
    if not isinstance(table, dict):
        raise ThalwegError(
            "wrong-type", f"`{name}` is {show(table)}", place=name, found=show(table), expected=f"a table [{name}]",
            source=document.source((name,)),
        )  # fmt: skip
    try:
        return model.model_validate(table)
    except ValidationError as error:
        mistakes = translate(error, Described(model, f"[{name}]"), cast(Raw, table)).entries
        raise ThalwegErrors(
            by_line(
                mistake.error(dotted((name, *mistake.key_path)), document.source((name, *mistake.key_path)))
                for mistake in mistakes
            )
        ) from None


def names_of_flows(document: Document) -> list[str]:
    """Return the names of the flows of a checked scenario."""
    return [str(flow["name"]) for flow in document.flows if "name" in flow]


@dataclass
class _Checker:
    document: Document
    errors: list[ThalwegError] = field(default_factory=list)
    held_out_rows: Rows | None = None

    @property
    def flows(self) -> list[str]:
        return names_of_flows(self.document)

    def raise_errors(self) -> None:
        if self.errors:
            raise ThalwegErrors(by_line(self.errors))

    def add(
        self, key_path: KeyPath, code: str, message: str, expected: str | None = None, hint: str | None = None
    ) -> None:
        mistakes = Mistakes()
        mistakes.add(code, (NAME, *key_path), message, expected=expected, hint=hint)
        source = self.document.source((NAME, *key_path))
        self.errors.append(mistakes.entries[0].error(dotted((NAME, *key_path)), source))

    def parameter(self, address: str, form: list[Value] | ParameterTable) -> Parameter | None:
        key_path = ("parameters", address)
        addresses = expanded(address, self.flows)
        try:
            for key in addresses:
                sweep.locate(key, self.document.raw)
        except ThalwegError as error:
            message = error.message.replace("cannot be swept", "cannot be searched")
            self.add(key_path, "bad-parameter", message, error.expected, error.hint)
            return None
        if any(key in self.document.swept for key in addresses):
            hint = "remove it from [sweep], or from [search]"
            self.add(key_path, "conflict", f"`{address}` is also in [sweep]", "one of the two", hint)
            return None
        try:
            return _parameter(address, form)
        except TermError as error:
            self.add(key_path, "bad-range", error.message, error.expected, error.hint)
            return None

    def objective(self, number: int, table: ObjectiveTable) -> Objective | None:
        key_path = ("objectives", number)
        try:
            check_over(table.over)
            term = Term.of(table.measure, table.of, self.flows)
            check_sampled(term, self.document)
            return Objective(term, table.goal == "maximise", table.over)
        except TermError as error:
            self.add(key_path, "bad-objective", error.message, error.expected, error.hint)
            return None

    def constraint(self, number: int, text: str) -> Constraint | None:
        try:
            constraint = Constraint.parse(text, self.flows)
            check_sampled(constraint.term, self.document)
            return constraint
        except TermError as error:
            self.add(("constraints", number), "bad-constraint", error.message, error.expected, error.hint)
            return None

    def held_out(self, table: Mapping[str, Sequence[Value]]) -> None:
        swept = self.document.swept
        for address, values in table.items():
            key_path = ("held_out", address)
            if address == ROWS:
                self.rows_held_out(values)
                continue
            if address not in swept:
                hint = words.did_you_mean(address, list(swept)) or f'add "{address}" = [...] to [sweep]'
                expected = words.one_of(swept) if swept else "a key of [sweep], which is missing"
                self.add(key_path, "bad-held-out", f"`{address}` is not a key of [sweep]", expected, hint)
                continue
            unknown = [value for value in values if value not in swept[address]]
            if unknown:
                expected = words.one_of(show(value) for value in swept[address])
                hint = f"add {show(unknown[0])} to `{address}` in [sweep]"
                self.add(
                    key_path,
                    "bad-held-out",
                    f"{show(unknown[0])} is not a value of `{address}` in [sweep]",
                    expected,
                    hint,
                )
            elif not set(swept[address]) - set(values):
                message = f"every value of `{address}` is held out, so the search has no points"
                self.add(key_path, "bad-held-out", message, "at least one other value in [sweep]")
            elif not values:
                self.add(key_path, "empty-list", f"`{address}` has no values", "at least one value of [sweep]")

    def rows_held_out(self, names: Sequence[Value]) -> None:
        key_path = ("held_out", ROWS)
        present = cast(Mapping[str, Sequence[Value]], self.document.raw.get("sweep", {})).get(ROWS, [])
        unknown = [name for name in names if name not in present]
        if unknown or not names:
            problem = f"{show(unknown[0])} is not a file of `rows` in [sweep]" if unknown else "`rows` has no files"
            expected = words.one_of(map(show, present)) if present else "a file of `rows` in [sweep], which has none"
            self.add(key_path, "bad-held-out", problem, expected)
        elif not set(present) - set(names):
            message = "every file of `rows` is held out, so the search has no points"
            self.add(key_path, "bad-held-out", message, "at least one other file in [sweep]")
        else:
            self.held_out_rows = rows.read([str(name) for name in names], self.document.file.parent)

    def ends(self, parameters: Sequence[Parameter]) -> None:
        for parameter in parameters:
            for value in parameter.ends:
                try:
                    settings = dict.fromkeys(expanded(parameter.address, self.flows), value)
                    scenario.checked(scenario.overridden(self.document, settings))
                except ThalwegError as error:
                    first = error.errors[0]
                    message = f"with {parameter.address} = {show(value)}, {first.message}"
                    self.add(("parameters", parameter.address), "bad-range", message, first.expected, first.hint)
                    break


def _parameter(address: str, form: list[Value] | ParameterTable) -> Parameter:
    if isinstance(form, list):
        return ranged(address, form, is_log=False)
    forms = [name for name in ("low", "int", "choices") if getattr(form, name) is not None]
    if len(forms) != 1 or (form.high is not None) != (forms == ["low"]):
        raise TermError(
            f"`{address}` is not a range", "[low, high], or one of low and high, int, choices",
            'as in { low = 1.0, high = 2.0, scale = "log" }, { int = [1, 8] } or { choices = ["a", "b"] }',
        )  # fmt: skip
    is_log = form.scale == "log"
    if form.choices is not None:
        if len(form.choices) < 2 or len(set(form.choices)) < len(form.choices) or is_log:
            raise TermError(f"`{address}` has not several choices", "two different values or more, without a scale")
        return Parameter(address, "choice", choices=form.choices)
    if form.int is not None:
        return ranged(address, cast(list[Value], form.int), is_log=is_log, is_whole=True)
    assert form.low is not None
    assert form.high is not None
    return ranged(address, [form.low, form.high], is_log=is_log)
