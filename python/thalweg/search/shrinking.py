"""Minimises failing conditions: removes elements one by one, then makes numbers milder and rounder."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from thalweg.scenario.document import Value
from thalweg.search.conditions import KINDS, Conditions, Element
from thalweg.search.parameters import Kind, number_of, written

MILDER_WHEN_LESS = {
    ("outage", "for"),
    ("loss", "for"),
    ("loss", "ratio"),
    ("aggregation", "interval"),
    ("jitter", "up_to"),
    ("cross", "size"),
}
"""Values that are halved as long as the failure persists, at most `MAX_HALVINGS` times."""

MAX_HALVINGS = 5


def shrink(conditions: Conditions, fails: Callable[[Conditions], bool]) -> list[Element]:
    """Return failing conditions from which no single element can be removed, with milder and rounder numbers.

    `conditions` must fail; `fails` evaluates others.
    """
    minimal = _fewest(list(conditions), fails)
    for number, element in enumerate(minimal):
        for name in element.values:
            if KINDS[element.kind][name] == "choice":
                continue
            minimal[number] = _simplest(minimal, number, name, fails)
    return _fewest(minimal, fails)


def _fewest(conditions: list[Element], fails: Callable[[Conditions], bool]) -> list[Element]:
    number = 0
    while number < len(conditions):
        rest = [*conditions[:number], *conditions[number + 1 :]]
        if fails(rest):
            conditions, number = rest, 0
        else:
            number += 1
    return conditions


def _simplest(conditions: list[Element], number: int, name: str, fails: Callable[[Conditions], bool]) -> Element:
    def still_fails(value: Value) -> bool:
        tried = _with(element, name, value)
        return fails([*conditions[:number], tried, *conditions[number + 1 :]])

    element = conditions[number]
    if (element.kind, name) in MILDER_WHEN_LESS:
        for _ in range(MAX_HALVINGS):
            half = _scaled(element, name, 0.5)
            if half == element.values[name] or not still_fails(half):
                break
            element = _with(element, name, half)
    for rounded in _rounder(element, name):
        if rounded == element.values[name]:
            break
        if still_fails(rounded):
            return _with(element, name, rounded)
    return element


def _rounder(element: Element, name: str) -> Iterator[Value]:
    """Yield the value with one significant digit, then with two."""
    number = number_of(element.values[name])
    assert number is not None, "a number or a quantity"
    for digits in (1, 2):
        yield written(float(f"{number:.{digits}g}"), KINDS[element.kind][name])


def _scaled(element: Element, name: str, factor: float) -> Value:
    number = number_of(element.values[name])
    assert number is not None, "a number or a quantity"
    kind: Kind = KINDS[element.kind][name]
    return written(float(f"{number * factor:.3g}"), kind)


def _with(element: Element, name: str, value: Value) -> Element:
    return replace(element, values={**element.values, name: value})
