"""Checks: comparisons of expressions over measures of flows, such as `goodput(ours) > 0.9 * goodput(base)`."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import isclose
from typing import Literal

from thalweg.analysis import MEASURES, quantity
from thalweg.checks import expressions, units
from thalweg.checks.terms import HARM, Term, TermError
from thalweg.errors import ThalwegError, ThalwegErrors
from thalweg.scenario.document import Value
from thalweg.scenario.text import words

Sign = Literal["<", "<=", ">", ">="]

_SIGNS: dict[str, Sign] = {"<=": "<=", "<": "<", "≤": "<=", ">=": ">=", ">": ">", "≥": ">="}
_SIGN = re.compile(r"(<=|>=|==|!=|<|>|=|≤|≥)")
_CALL = re.compile(r"([A-Za-z_]\w*)\s*\(([^()]*)\)")
_NUMBER = r"[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"
_QUANTITY = re.compile(rf"(?<![\w.])({_NUMBER})\s*(%|/s(?!\w)|[A-Za-z][A-Za-z/]*(?!\w))")
_PLACEHOLDER = re.compile(r"\b_[0-9]+\b")
_JUXTAPOSED = re.compile(r"[\w)]\s+[\w(]")
_KINDS = {"rate": "bit/s", "time": "s", "arrivals": "1/s"}

EXPECTED = "a comparison of measures, such as goodput(ours) > 0.9 * goodput(base)"


@dataclass(frozen=True)
class Side:
    """One side of a comparison."""

    text: str
    expression: str
    """Expression with a placeholder for every term and every quantity."""
    terms: Mapping[str, Term]
    """Terms by placeholder; a measure without brackets is its own placeholder."""
    constants: Mapping[str, float]
    """Quantities in bit/s, s or 1/s, and percentages as fractions, by placeholder."""
    unit: units.Exponents | None

    def value(self, values: Mapping[Term, float | None]) -> float | None:
        """Return the value from those of its terms; None if one is missing, or the result is not a finite number."""
        numbers = {name: values[term] for name, term in self.terms.items()}
        return expressions.value(self.expression, {**numbers, **self.constants})

    def why_no_value(self, values: Mapping[Term, float | None]) -> str | None:
        """Return why the side has no value although each of its terms has one; None if it has one."""
        numbers = {name: values[term] for name, term in self.terms.items()}
        return expressions.why_no_value(self.expression, {**numbers, **self.constants})

    @property
    def is_zero(self) -> bool:
        """Whether the side is the plain number 0, which is compatible with every unit."""
        return self._is_plain and self.value({}) == 0

    @property
    def is_above_1(self) -> bool:
        """Whether the side is a plain number above 1."""
        return self._is_plain and (self.value({}) or 0.0) > 1

    @property
    def _is_plain(self) -> bool:
        return not self.terms and self.unit is None

    @property
    def term(self) -> Term | None:
        """The only term of the side; None for any other expression."""
        return self.terms.get(self.expression)


@dataclass(frozen=True)
class Bound:
    """Two sides and their comparison operator."""

    left: Side
    sign: Sign
    right: Side

    @property
    def unit(self) -> str:
        """The unit of both sides; empty for numbers without a unit, and for units without a name."""
        return units.name_of(self.left.unit if self.left.unit is not None else self.right.unit)

    def check_units(self) -> None:
        """Check the units of the sides; the number 0 has every unit.

        Raises:
            TermError: If the sides have different units, or a fraction is compared with a number above 1.
        """
        measured, other = (self.left, self.right) if self.left.terms else (self.right, self.left)
        if other.is_zero or measured.is_zero:
            return
        if not units.are_compatible(measured.unit, other.unit):
            problem = f"`{measured.text}` {units.words(measured.unit)}, and `{other.text}` {units.words(other.unit)}"
            raise TermError(problem, *_advice(measured, other))
        if measured.term and measured.term.is_fraction and other.is_above_1:
            problem = f"`{measured.text}` is at most 1, and `{other.text}` is larger"
            raise TermError(problem, "a fraction or a percentage, such as 0.9 or 90%", f"did you mean `{other.text}%`?")


@dataclass(frozen=True)
class Check:
    """A comparison, or a chain of comparisons, that must hold."""

    text: str
    bounds: Sequence[Bound]

    @classmethod
    def parse(cls, text: str, flows: Sequence[str], points: Sequence[Mapping[str, Value]] = ({},)) -> "Check":
        """Parse a check.

        Args:
            text: The check as written.
            flows: Names of the scenario's flows.
            points: Values of the sweep's keys at each point.

        Raises:
            TermError: If it is not a comparison, names something unknown, or compares different units.

        >>> Check.parse("goodput(a) >= 5Mbps", ["a"]).bounds[0].right.value({})
        5000000.0
        """
        plain = " ".join(text.split())
        reader = _Reader(plain, flows, points)
        parts = _SIGN.split(reader.lifted)
        if len(parts) < 3 or not all(part.strip() for part in parts):
            raise TermError(f"`{plain}` does not compare two values", EXPECTED)
        for sign in parts[1::2]:
            if sign not in _SIGNS:
                raise TermError(f"`{sign}` is not a bound", "<=, >=, < or >", f"write {plain.replace(sign, '<=', 1)}")
        sides = [reader.side(part) for part in parts[::2]]
        if not any(side.terms for side in sides):
            raise TermError(f"`{plain}` names no measure", EXPECTED)
        bounds = [
            Bound(left, _SIGNS[sign], right) for (left, right), sign in zip(pairwise(sides), parts[1::2], strict=True)
        ]
        for bound in bounds:
            bound.check_units()
        return cls(plain, bounds)

    @property
    def terms(self) -> list[Term]:
        """Distinct terms of the check."""
        sides = (side for bound in self.bounds for side in (bound.left, bound.right))
        return list(dict.fromkeys(term for side in sides for term in side.terms.values()))

    def places(self, points: Mapping[int, Mapping[str, Value]]) -> "list[Place]":
        """Return the points at which the check must hold: one per combination of the keys that a term leaves open.

        Raises:
            TermError: If a term refers to a point that is not in the sweep.
        """
        fixed = set.intersection(*(set(term.at) for term in self.terms))
        numbers = {frozenset(point.items()): number for number, point in points.items()}
        by_keys: dict[frozenset[tuple[str, Value]], Place] = {}
        for point in points.values():
            open_keys = {key: value for key, value in point.items() if key not in fixed}
            experiments = {}
            for term in self.terms:
                at = open_keys | dict(term.at)
                number = numbers.get(frozenset(at.items()))
                if number is None:
                    where = ", ".join(f"{key} = {value}" for key, value in at.items())
                    raise TermError(f"the sweep has no point {where} for `{term}`", "a point of the sweep")
                experiments[term] = number
            by_keys[frozenset(open_keys.items())] = Place(open_keys, experiments)
        return list(by_keys.values())


@dataclass(frozen=True)
class Place:
    """A point at which a check must hold."""

    point: Mapping[str, Value]
    """Values of the sweep keys that a term leaves open."""
    experiments: Mapping[Term, int]
    """Index of the sweep point at which each term is evaluated."""


def parse_all(
    texts: Sequence[str], flows: Sequence[str], points: Mapping[int, Mapping[str, Value]], option: str = "--check"
) -> list[Check]:
    """Parse the checks of a command line.

    Raises:
        ThalwegErrors: If there are mistakes.
    """
    checks, mistakes = [], []
    for text in texts:
        try:
            check = Check.parse(text, flows, list(points.values()))
            if any(term.measure == HARM for term in check.terms):
                raise TermError(
                    "harm requires separate runs with the flow alone", "a measure of one run", "share(FLOW) >= 0.4"
                )
            check.places(points)
            checks.append(check)
        except TermError as error:
            mistakes.append(
                ThalwegError(
                    "bad-check",
                    error.message,
                    place=option,
                    found=f'{option} "{text}"',
                    expected=error.expected,
                    hint=error.hint,
                )
            )
    if mistakes:
        raise ThalwegErrors(mistakes)
    return checks


class _Reader:
    """Replaces notation that is not valid Python: measures with conditions, and quantities with units."""

    def __init__(self, text: str, flows: Sequence[str], points: Sequence[Mapping[str, Value]]) -> None:
        self.flows, self.points = flows, points
        self.terms: dict[str, Term] = {}
        self.constants: dict[str, float] = {}
        self.units: dict[str, units.Exponents] = {}
        self.sources: dict[str, str] = {}
        if stray := _PLACEHOLDER.search(text):
            raise TermError(f"there is no measure `{stray[0]}`", EXPECTED)
        self.lifted = _QUANTITY.sub(self._quantity, _CALL.sub(self._call, text))

    def side(self, lifted: str) -> Side:
        """Parse a side, in which terms with brackets and quantities are already replaced by placeholders."""
        expression = lifted.strip()
        text = _PLACEHOLDER.sub(lambda placeholder: self.sources[placeholder[0]], expression)
        if expressions.mistake(expression, ()) == expressions.NOT_ARITHMETIC:
            hint = "write * between two factors" if _JUXTAPOSED.search(expression) else None
            raise TermError(f"`{text}` is not arithmetic over measures", EXPECTED, hint)
        names = expressions.names(expression)
        for name in sorted(names - self.sources.keys()):
            term = Term.of(name, None, self.flows)
            self.terms[name], self.units[name], self.sources[name] = term, units.BY_NAME[term.unit], name
        if why := expressions.mistake(expression, names):
            raise TermError(f"`{text}`: {why}", EXPECTED)
        side = Side(
            text,
            expression,
            {name: term for name, term in self.terms.items() if name in names},
            {name: constant for name, constant in self.constants.items() if name in names},
            units.unit_of(expression, self.units),
        )
        if not side.terms and (why := side.why_no_value({})):
            raise TermError(f"`{text}` has no value: {why}", "a finite number")
        return side

    def _placeholder(self, source: str, unit: str) -> str:
        name = f"_{len(self.sources)}"
        self.sources[name], self.units[name] = source, units.BY_NAME[unit]
        return name

    def _call(self, match: re.Match[str]) -> str:
        if match[1] in expressions.FUNCTIONS:
            return match[0]
        arguments = [argument.strip() for argument in match[2].split(",")] if match[2].strip() else []
        flow_names = [argument for argument in arguments if "=" not in argument]
        if len(flow_names) > 1:
            raise TermError(f"`{match[0]}` names several flows", "one flow, and KEY=VALUE of the sweep")
        term = Term.of(match[1], flow_names[0] if flow_names else None, self.flows)
        at = dict(self._condition(argument) for argument in arguments if "=" in argument)
        name = self._placeholder(match[0], term.unit)
        self.terms[name] = replace(term, at=at)
        return name

    def _condition(self, text: str) -> tuple[str, Value]:
        key, _, value = (part.strip() for part in text.partition("="))
        keys = list(dict.fromkeys(key for point in self.points for key in point))
        if key not in keys:
            expected = words.one_of(keys) if keys else "a scenario with a sweep"
            raise TermError(f"`{key}` is not a key of the sweep", expected, words.did_you_mean(key, keys))
        choices = list(dict.fromkeys(point[key] for point in self.points if key in point))
        for choice in choices:
            if _is_same(value, choice):
                return key, choice
        raise TermError(
            f"`{key}` is never `{value}` in the sweep", words.one_of(_written(choice) for choice in choices)
        )

    def _quantity(self, match: re.Match[str]) -> str:
        number, unit = float(match[1]), match[2]
        if unit == "%":
            return self._constant(match[0], number / 100, "ratio")
        parsed = quantity(f"1{unit}")
        if not parsed or parsed[0] not in _KINDS:
            problem = f"`{match[0].strip()}` is not a number, a rate or a time"
            raise TermError(
                problem,
                "as in 0.9, 90%, 5Mbps or 60ms",
                "a product needs a *" if unit in {*MEASURES, *expressions.FUNCTIONS} else None,
            )
        return self._constant(match[0], number * parsed[1], _KINDS[parsed[0]])

    def _constant(self, source: str, value: float, unit: str) -> str:
        name = self._placeholder(source.strip(), unit)
        self.constants[name] = value
        return name


def _is_same(text: str, value: Value) -> bool:
    """Return whether a text is equal to a value of the sweep.

    >>> _is_same("0.05s", "50ms"), _is_same("2", 2), _is_same("bbr", "cubic")
    (True, True, False)
    """
    if text == _written(value):
        return True
    if isinstance(value, bool):
        return False
    if isinstance(value, str):
        text_quantity, swept_quantity = quantity(text), quantity(value)
        return (
            text_quantity is not None
            and swept_quantity is not None
            and text_quantity[0] == swept_quantity[0]
            and isclose(text_quantity[1], swept_quantity[1])
        )
    try:
        return float(text) == value
    except ValueError:
        return False


def _written(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _advice(measured: Side, other: Side) -> tuple[str, str | None]:
    """Return the expected form of the other side, whose unit is wrong, and a hint."""
    unit = measured.unit
    if unit is not None and units.has_unit(unit):
        without_counts = (*unit[:2], 0)
        example = f", such as {units.EXAMPLES[without_counts]}" if without_counts in units.EXAMPLES else ""
        return f"a value with the unit of `{measured.text}`{example}", _with_unit(other, without_counts)
    if unit != units.COUNT:
        return "a plain number or a percentage, such as 0.9 or 90%", None
    ratio = f"{measured.term.measure.removesuffix('s')}_ratio" if measured.term else ""
    hint = f"did you mean `{replace(measured.term, measure=ratio)}`?" if measured.term and ratio in MEASURES else None
    return "a plain number, such as 10", hint


def _with_unit(side: Side, unit: units.Exponents) -> str | None:
    """Return a hint with the units that a plain number can have; None for any other expression."""
    if not re.fullmatch(rf"-?{_NUMBER}", side.text) or unit not in units.SUFFIXES:
        return None
    return f"did you mean {' or '.join(f'`{side.text}{suffix}`' for suffix in units.SUFFIXES[unit])}?"
