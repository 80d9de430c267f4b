"""Value classes are the same in Python and in an engine, for all edges."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from query_buckets import bucket_edges, engine_buckets
from thalweg.advise import DuckDb
from thalweg.advise.counting import buckets

WHOLE = st.integers(1, buckets.LARGEST - 1)


@given(WHOLE)
def test_a_number_lies_in_its_bucket_and_buckets_are_narrow(value: int) -> None:
    number = buckets.of_number(value)
    low, end = buckets.lows(np.array([number, number + 1]))
    assert low <= value < end
    assert end - low <= low / buckets.PER_OCTAVE


@given(WHOLE, WHOLE)
def test_buckets_are_monotonic(one: int, other: int) -> None:
    assert (buckets.of_number(one) <= buckets.of_number(other)) == (one <= other) or buckets.of_number(
        one
    ) == buckets.of_number(other)


def test_engines_agree_on_bucket_boundaries() -> None:
    values = [*bucket_edges(), buckets.LARGEST, buckets.LARGEST + 1, 2**50]
    assert engine_buckets(DuckDb(), values) == [buckets.of_number(value) for value in values]


def test_null_is_in_the_lowest_bucket() -> None:
    assert engine_buckets(DuckDb(), [None, 5]) == [0, buckets.of_number(5)]


@pytest.mark.parametrize("power", range(40))
def test_a_power_of_two_starts_an_octave(power: int) -> None:
    assert buckets.of_number(2**power) == power * buckets.PER_OCTAVE
