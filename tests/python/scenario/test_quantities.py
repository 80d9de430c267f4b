"""Quantities: the vectors that Rust reads too, and what only a scenario has."""

import contextlib
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from thalweg.scenario import quantities
from thalweg.scenario.quantities import Bdps, PacketCount, PerSecond, QuantityError, Rtts
from thalweg.scenario.words import quantity_hint

VECTORS = json.loads((Path(__file__).parents[2] / "vectors" / "quantities.json").read_text())
PARSERS = {"rate": quantities.rate, "size": quantities.size, "time": quantities.time}


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: f"{vector['kind']}:{vector['text']}")
def test_texts_have_the_values_that_rust_reads(vector: dict[str, Any]) -> None:
    parse = PARSERS[vector["kind"]]
    if vector["value"] is None:
        with pytest.raises(QuantityError):
            parse(vector["text"])
    else:
        assert parse(vector["text"]) == vector["value"]


@given(st.integers(0, 2**64 // 10**9), st.integers(0, 10**9 - 1))
def test_no_binary_fraction_stands_between_text_and_value(whole: int, fraction: int) -> None:
    value = whole * 10**9 + fraction
    if value < 2**64:
        assert quantities.time(f"{whole}.{fraction:09d}s") == value


@given(st.text(max_size=12))
def test_any_text_is_a_quantity_or_an_error(text: str) -> None:
    for parse in (quantities.time_or_rtt, quantities.buffer, quantities.size_or_unlimited, quantities.arrival_rate):
        with contextlib.suppress(QuantityError):
            parse(text)


def test_units_that_only_some_keys_take() -> None:
    assert quantities.time_or_rtt("0.1rtt") == Rtts(Fraction(1, 10))
    assert quantities.buffer("0.5bdp") == Bdps(Fraction(1, 2))
    assert quantities.buffer("1packet") == PacketCount(1)
    assert quantities.arrival_rate("0.5/s") == PerSecond(Fraction(1, 2))
    assert quantities.size_or_unlimited("unlimited") is None
    for text in ("1bdp", "1rtt", "3/s"):
        with pytest.raises(QuantityError):
            quantities.time(text)
    with pytest.raises(QuantityError, match="whole"):
        quantities.buffer("1.5packets")


@pytest.mark.parametrize(
    ("given_", "format_", "hint"),
    [
        ("40", "rate", '"40Mbps"'),
        (40, "rate", '"40Mbps"'),
        ("40mbps", "rate", '"40Mbps"'),
        ("40 Mbit/s", "rate", '"40Mbps"'),
        ("100KB", "size", '"100kB"'),
        (0.5, "buffer", '"0.5bdp"'),
        ("45 sec", "time", '"45s"'),
        ("1RTT", "time-or-rtt", '"1rtt"'),
        ("240pkts", "buffer", '"240packets"'),
        ("40MB", "rate", None),
        ("-1ms", "time", None),
        (True, "time", None),
        ("", "time", None),
        ("fast", "rate", None),
    ],
)
def test_a_slip_gets_the_text_that_was_meant(given_: Any, format_: str, hint: str | None) -> None:
    assert quantity_hint(given_, format_) == (f"did you mean {hint}?" if hint else None)
