"""Functions that every engine has by the same name, but Ibis has not, or writes in another way."""

from collections.abc import Callable
from typing import Any

import ibis


def built_in(name: str, takes: type, gives: type) -> Callable[[Any], Any]:
    """Give an engine's function of one column, by its name, the type of the column and that of the result."""
    # Ibis wants a function for the name of its argument alone; what it would do is the engine's.
    found: Callable[[Any], Any] = ibis.udf.scalar.builtin(lambda value: value, name=name, signature=((takes,), gives))
    return found
