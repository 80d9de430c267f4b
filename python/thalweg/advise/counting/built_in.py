"""Functions that engines have under the same name, but that Ibis lacks or translates differently."""

from collections.abc import Callable

import ibis
from ibis.expr.types import IntegerValue, StringValue, Value


def built_in(name: str, takes: type, gives: type) -> Callable[[Value], Value]:
    """Return an engine's function of one column, by its name and types."""
    # Ibis uses this function only for the name of its argument; the engine implements it.
    function: Callable[[Value], Value] = ibis.udf.scalar.builtin(
        lambda value: value, name=name, signature=((takes,), gives)
    )
    return function


md5 = built_in("md5", str, str)


def number_of(text: StringValue, digits: int) -> IntegerValue:
    """Return a uniformly distributed hash of a text, below 16 to the power of `digits`."""
    digest = md5(text)
    number: IntegerValue = ibis.literal(0, type="int64")
    for place in range(digits):
        number = number * 16 + _digit(digest, place)
    return number


def _digit(digest: StringValue, place: int) -> IntegerValue:
    character = digest.substr(place, 1).ascii_str()
    return ibis.ifelse(character >= 97, character - 87, character - 48).cast("int64")
