"""Units of arithmetic expressions, so that a rate is not compared with a time.

A unit is a pair of exponents, of bits and of seconds: `(1, -1)` is bit/s. A literal without a unit is compatible with
every unit in sums and comparisons.
"""

import ast
from collections.abc import Mapping

from thalweg.checks.terms import TermError

Exponents = tuple[float, float]

BY_NAME: dict[str, Exponents] = {"bit/s": (1, -1), "s": (0, 1), "bit": (1, 0), "ratio": (0, 0), "count": (0, 0)}
"""Exponents of the units of measures."""

EXAMPLES: dict[Exponents, str] = {(1, -1): ", such as 5Mbps", (0, 1): ", such as 60ms"}
"""Example values of each unit, for hints."""


def unit_of(text: str, units: Mapping[str, Exponents]) -> Exponents | None:
    """Return the unit of a valid expression; None if it consists of plain numbers.

    Raises `TermError` if different units are added or compared.

    >>> unit_of("rate * 2 * rtt", {"rate": (1, -1), "rtt": (0, 1)}), unit_of("2 + 3", {})
    ((1, 0), None)
    """
    return _unit(ast.parse(text.strip(), mode="eval").body, units)


def name_of(unit: Exponents | None) -> str:
    """Return the name of a unit; empty for plain numbers and for units without a name.

    >>> name_of((1, -1)), name_of((0, 0)), name_of(None)
    ('bit/s', '', '')
    """
    return next((name for name, named_unit in BY_NAME.items() if named_unit == unit), "") if unit and any(unit) else ""


def words(unit: Exponents) -> str:
    """Describe a unit.

    >>> words((1, -1)), words((0, 0)), words((1, 1))
    ('in bit/s', 'a number without a unit', 'in bit^1 s^1')
    """
    if not any(unit):
        return "a number without a unit"
    return f"in {name_of(unit) or f'bit^{unit[0]:g} s^{unit[1]:g}'}"


def _common(first: Exponents | None, second: Exponents | None, problem: str) -> Exponents | None:
    if first is not None and second is not None and first != second:
        raise TermError(f"{problem}: one is {words(first)}, another one {words(second)}", "equal units")
    return second if first is None else first


def _unit(node: ast.expr, units: Mapping[str, Exponents]) -> Exponents | None:
    match node:
        case ast.Name(id=name):
            return units[name]
        case ast.UnaryOp(operand=operand):
            return _unit(operand, units)
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub(), right=right):
            return _common(_unit(left, units), _unit(right, units), "the terms of a sum have different units")
        case ast.BinOp(left=left, op=ast.Pow(), right=ast.Constant(value=int() | float() as power)):
            unit = _unit(left, units)
            return unit and (unit[0] * power, unit[1] * power)
        case ast.BinOp(left=left, op=ast.Mult() | ast.Div() as op, right=right):
            return _product(_unit(left, units), _unit(right, units), 1 if isinstance(op, ast.Mult) else -1)
        case ast.Call(func=ast.Name(id="min" | "max"), args=arguments):
            common = None
            for argument in arguments:
                common = _common(common, _unit(argument, units), "the arguments of min or max have different units")
            return common
        case ast.Call(func=ast.Name(id="sqrt"), args=[argument_]):
            unit = _unit(argument_, units)
            return unit and (unit[0] / 2, unit[1] / 2)
        case _:
            return None


def _product(first: Exponents | None, second: Exponents | None, power: int) -> Exponents | None:
    if second is None:
        return first
    left = first or (0, 0)
    return left[0] + power * second[0], left[1] + power * second[1]
