"""Arithmetic expressions: numbers, names, + - * / **, brackets, min, max, sqrt, log, log2, exp.

    value("min(rate_bps, 8 * rcvbuf_bytes / rtt_s)", {"rate_bps": 1e9, "rcvbuf_bytes": 1e6, "rtt_s": 0.01})

Nothing else is evaluated, so that an untrusted study cannot run code.
"""

import ast
import math
import operator
from collections.abc import Callable, Collection, Mapping

FUNCTIONS: dict[str, Callable[..., float]] = {
    "min": min,
    "max": max,
    "sqrt": math.sqrt,
    "log": math.log,
    "log2": math.log2,
    "exp": math.exp,
}

_BINARY: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: math.pow,
}


NOT_ARITHMETIC = "it is not an arithmetic expression"

DIVIDES_BY_ZERO = "it divides by 0"
NOT_FINITE = "a number in it is not finite"
UNDEFINED = "a root, logarithm or power in it is undefined"


def value(text: str, names: Mapping[str, float | None]) -> float | None:
    """Evaluate an expression; None if a name has no value, or the result is undefined or not finite.

    >>> value("2 * rtt_s ** 2", {"rtt_s": 3.0}), value("1 / loss", {"loss": 0.0})
    (18.0, None)
    """
    result = _result(text, names)
    return None if isinstance(result, str) else result


def why_no_value(text: str, names: Mapping[str, float | None]) -> str | None:
    """Return why an expression over names with values has no value itself; None if it has one.

    >>> why_no_value("1 / loss", {"loss": 0.0}), why_no_value("1 / loss", {"loss": 0.5})
    ('it divides by 0', None)
    """
    result = _result(text, names)
    return result if isinstance(result, str) else None


def _result(text: str, names: Mapping[str, float | None]) -> float | str:
    try:
        result = _compute(ast.parse(text.strip(), mode="eval").body, names)
    except ZeroDivisionError:
        return DIVIDES_BY_ZERO
    except OverflowError:
        return NOT_FINITE
    except ValueError:
        return UNDEFINED
    return result if math.isfinite(result) else NOT_FINITE


def mistake(text: str, names: Collection[str]) -> str | None:
    """Return a description of the mistake in an expression over `names`; None if it is valid.

    >>> mistake("8 * rtt_s", ["rtt_s"]), mistake("8 * rtt", ["rtt_s"]), mistake("open(1)", [])
    (None, 'there is no `rtt`', 'there is no function `open`')
    """
    try:
        return _mistake(ast.parse(text.strip(), mode="eval").body, names)
    except (SyntaxError, ValueError, RecursionError):
        return NOT_ARITHMETIC


def names(text: str) -> frozenset[str]:
    """Return the names of numbers in a valid expression.

    >>> sorted(names("min(rate_bps, 8 * rcvbuf_bytes / rtt_s)"))
    ['rate_bps', 'rcvbuf_bytes', 'rtt_s']
    """
    identifiers = {node.id for node in ast.walk(ast.parse(text.strip(), mode="eval")) if isinstance(node, ast.Name)}
    return frozenset(identifiers - FUNCTIONS.keys())


def _mistake(node: ast.expr, names: Collection[str]) -> str | None:
    match node:
        case ast.Constant(value=bool()):
            return "it contains a constant that is not a number"
        case ast.Constant(value=int() | float()):
            return why_no_value(ast.unparse(node), {})
        case ast.Name(id=name):
            return None if name in names else f"there is no `{name}`"
        case ast.BinOp(op=ast.Div(), right=ast.Constant(value=0)):
            return DIVIDES_BY_ZERO
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _BINARY:
            return _mistake(left, names) or _mistake(right, names)
        case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=operand):
            return _mistake(operand, names)
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
            if name not in FUNCTIONS:
                return f"there is no function `{name}`"
            if len(arguments) < 2 if name in ("min", "max") else len(arguments) != 1:
                return f"`{name}` has the wrong number of arguments"
            return next(filter(None, (_mistake(argument, names) for argument in arguments)), None)
        case _:
            return "it contains something other than arithmetic"


def _compute(node: ast.expr, names: Mapping[str, float | None]) -> float:
    match node:
        case ast.Constant(value=number) if isinstance(number, int | float):
            return float(number)
        case ast.Name(id=name):
            known = names[name]
            if known is None:
                raise ValueError(name)
            return float(known)
        case ast.BinOp(left=left, op=sign, right=right):
            return _BINARY[type(sign)](_compute(left, names), _compute(right, names))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_compute(operand, names)
        case ast.UnaryOp(operand=operand):
            return _compute(operand, names)
        case ast.Call(func=ast.Name(id=name), args=arguments):
            return FUNCTIONS[name](*(_compute(argument, names) for argument in arguments))
    raise ValueError("no arithmetic")
