"""Units of arithmetic expressions, so that a rate is not compared with a time.

A unit has exponents of bits, of seconds and of counts: `(1, -1, 0)` is bit/s. A plain number is compatible with
everything that has neither bits nor seconds, and the number 0 with every unit.
"""

import ast
from collections.abc import Mapping, Sequence

from thalweg.checks import expressions
from thalweg.checks.terms import TermError

Exponents = tuple[float, float, float]

RATE: Exponents = (1, -1, 0)
TIME: Exponents = (0, 1, 0)
FREQUENCY: Exponents = (0, -1, 0)
RATIO: Exponents = (0, 0, 0)
COUNT: Exponents = (0, 0, 1)

BY_NAME: dict[str, Exponents] = {
    "bit/s": RATE,
    "s": TIME,
    "1/s": FREQUENCY,
    "bit": (1, 0, 0),
    "ratio": RATIO,
    "count": COUNT,
}

SUFFIXES: dict[Exponents, Sequence[str]] = {RATE: ("Mbps", "bps"), TIME: ("ms", "s"), FREQUENCY: ("/s",)}
"""Suffixes that a hint offers for a plain number: the usual unit, then the base unit."""

EXAMPLES: dict[Exponents, str] = {RATE: "5Mbps", TIME: "60ms", FREQUENCY: "10/s", (1, 0, 0): "5Mbps * 60ms"}


def unit_of(text: str, units: Mapping[str, Exponents]) -> Exponents | None:
    """Return the unit of a valid expression; None for plain numbers, logarithms, exponentials and variable powers.

    Raises:
        TermError: If different units are added, or are arguments of min or max.

    >>> unit_of("rate * 2 * rtt", {"rate": RATE, "rtt": TIME}), unit_of("2 + 3", {})
    ((1, 0, 0), None)
    """
    return _unit(ast.parse(text.strip(), mode="eval").body, units)


def has_unit(unit: Exponents | None) -> bool:
    """Return whether the exponents contain bits or seconds.

    >>> has_unit(RATE), has_unit(COUNT), has_unit(None)
    (True, False, False)
    """
    return unit is not None and any(unit[:2])


def are_compatible(first: Exponents | None, second: Exponents | None) -> bool:
    """Return whether values of two units can be added or compared.

    A count is compatible with a plain number, but not with a ratio.

    >>> are_compatible(COUNT, None), are_compatible(COUNT, RATIO), are_compatible(RATE, None)
    (True, False, False)
    """
    if first is None or second is None:
        return not has_unit(first) and not has_unit(second)
    return first[:2] == second[:2] and {first, second} != {COUNT, RATIO}


def name_of(unit: Exponents | None) -> str:
    """Return the name of a unit; empty for numbers without a unit, and for units without a name.

    >>> name_of(RATE), name_of(COUNT), name_of(None)
    ('bit/s', '', '')
    """
    if unit is None or not has_unit(unit):
        return ""
    return next((name for name, named_unit in BY_NAME.items() if named_unit[:2] == unit[:2]), "")


def words(unit: Exponents | None) -> str:
    """Describe a unit.

    >>> words(RATE), words(COUNT), words(None), words((1, 1, 0))
    ('is in bit/s', 'is a count', 'has no unit', 'is in bit^1 s^1')
    """
    if unit is not None and has_unit(unit):
        return f"is in {name_of(unit) or f'bit^{unit[0]:g} s^{unit[1]:g}'}"
    return "is a count" if unit == COUNT else "is a ratio" if unit == RATIO else "has no unit"


def _common(nodes: Sequence[ast.expr], units: Mapping[str, Exponents], problem: str) -> Exponents | None:
    common, *others = [_unit(node, units) for node in nodes if not _is_zero(node)] or [None]
    for unit in others:
        if not are_compatible(common, unit):
            raise TermError(f"{problem}: one {words(common)}, another one {words(unit)}", "equal units")
        common = unit if common is None else common
    return common


def _constant(node: ast.expr) -> float | None:
    """Return the value of an expression without names; None for any other."""
    text = ast.unparse(node)
    return None if expressions.names(text) else expressions.value(text, {})


def _is_zero(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == 0


def _unit(node: ast.expr, units: Mapping[str, Exponents]) -> Exponents | None:
    match node:
        case ast.Name(id=name):
            return units[name]
        case ast.UnaryOp(operand=operand):
            return _unit(operand, units)
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub(), right=right):
            return _common([left, right], units, "the terms of a sum have different units")
        case ast.BinOp(left=left, op=ast.Pow(), right=right) if (power := _constant(right)) is not None:
            unit = _unit(left, units)
            return unit and (unit[0] * power, unit[1] * power, unit[2] * power)
        case ast.BinOp(left=left, op=ast.Mult() | ast.Div() as op, right=right):
            return _product(_unit(left, units), _unit(right, units), 1 if isinstance(op, ast.Mult) else -1)
        case ast.Call(func=ast.Name(id="min" | "max"), args=arguments):
            return _common(arguments, units, "the arguments of min or max have different units")
        case ast.Call(func=ast.Name(id="sqrt"), args=[argument_]):
            unit = _unit(argument_, units)
            return unit and (unit[0] / 2, unit[1] / 2, unit[2] / 2)
        case _:
            return None


def _product(first: Exponents | None, second: Exponents | None, power: int) -> Exponents | None:
    if second is None:
        return first
    left = first or RATIO
    return left[0] + power * second[0], left[1] + power * second[1], left[2] + power * second[2]
