"""Quantities: the test vectors that Rust also uses, and quantities that only scenarios have."""

import contextlib
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thalweg.scenario.text import quantities
from thalweg.scenario.text.hints import quantity_hint
from thalweg.scenario.text.quantities import Bdps, PacketCount, PerSecond, QuantityError, Rtts
from thalweg.scenario.text.texts import PARSERS as BY_FORMAT
from thalweg.scenario.text.texts import UNITS

VECTORS = json.loads((Path(__file__).parents[3] / "vectors" / "quantities.json").read_text())
PARSERS = {"rate": quantities.rate, "size": quantities.size, "time": quantities.time}


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: f"{vector['kind']}:{vector['text']}")
def test_quantities_have_the_values_of_the_rust_parser(vector: dict[str, Any]) -> None:
    parse = PARSERS[vector["kind"]]
    if vector["value"] is None:
        with pytest.raises(QuantityError):
            parse(vector["text"])
    else:
        assert parse(vector["text"]) == vector["value"]


@given(st.integers(0, 2**64 // 10**9), st.integers(0, 10**9 - 1))
def test_quantities_are_parsed_without_binary_rounding(integer: int, fraction: int) -> None:
    value = integer * 10**9 + fraction
    if value < 2**64:
        assert quantities.time(f"{integer}.{fraction:09d}s") == value


@given(st.text(max_size=12))
def test_any_text_is_a_quantity_or_an_error(text: str) -> None:
    for parse in (quantities.time_or_rtt, quantities.buffer, quantities.size_or_unlimited, quantities.arrival_rate):
        with contextlib.suppress(QuantityError):
            parse(text)


def test_units_are_limited_to_their_keys() -> None:
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
def test_a_typo_suggests_the_intended_text(given_: Any, format_: str, hint: str | None) -> None:
    assert quantity_hint(given_, format_) == (f"did you mean {hint}?" if hint else None)


@pytest.mark.parametrize(
    ("given_", "format_", "place", "hint"),
    [
        (20, "time", "duration", "20s"),
        (60000, "time", "duration", "60s"),
        ("1h", "time", "duration", "60min"),
        ("5m", "time", "duration", "5min"),
        ("1m30s", "time", "duration", "90s"),
        (0.045, "time", "path.rtt", "45ms"),
        (45, "time", "path.rtt", "45ms"),
        ("5m", "time", "path.rtt", "5ms"),
        ("0,5s", "time", "path.rtt", "0.5s"),
        (10_000_000, "rate", "path.rate", "10Mbps"),
        (1_500_000, "rate", "path.rate", "1.5Mbps"),
        (10, "rate", "path.rate", "10Mbps"),
        (10_000, "rate", "path.rate", None),
        ("10M", "rate", "path.rate", "10Mbps"),
        ("10MB/s", "rate", "path.rate", "80Mbps"),
        ("1e6bps", "rate", "path.rate", "1Mbps"),
        (100, "buffer", "path.buffer", "100packets"),
        (1, "buffer", "path.buffer", "1packet"),
        (1.5, "buffer", "path.buffer", "1.5bdp"),
        (100_000, "buffer", "path.buffer", "100kB"),
        ("50%", "buffer", "path.buffer", "0.5bdp"),
        ("10M", "size-or-unlimited", "flow.size", "10MB"),
        (30_000_000, "size-or-unlimited", "flow.size", "30MB"),
        ("inf", "size-or-unlimited", "flow.size", "unlimited"),
        (100, "size", "flow.requests.size", "100kB"),
        (6_291_456, "size", "host.receiver.rcvbuf_max", "6MiB"),
        (50, "time", "flow.requests.think", "50ms"),
        (0.1, "time", "flow.repeat.gap", "100ms"),
        (20, "time", "host.sender.delay_jitter", "20us"),
        (1, "time", "host.sender.cpu_per_packet", "1us"),
        (1, "time-or-rtt", "start_jitter", "1rtt"),
        (20, "arrival-rate", "flow.repeat.rate", "20/s"),
        (10_000_000, "arrival-rate", "flow.repeat.rate", "10Mbps"),
        (float("nan"), "time", "path.rtt", None),
        pytest.param(0x10**5000, "rate", "path.rate", None, id="thousands of digits"),
    ],
)
def test_a_number_without_a_unit_suggests_a_plausible_one(
    given_: Any, format_: str, place: str, hint: str | None
) -> None:
    assert quantity_hint(given_, format_, place.split(".")) == (f'did you mean "{hint}"?' if hint else None)


@settings(max_examples=300)
@given(number=st.integers(0, 2**64) | st.floats(0, 1e12), format_=st.sampled_from(sorted(UNITS)))
def test_a_hint_is_a_valid_quantity(number: float, format_: str) -> None:
    hint = quantity_hint(number, format_)
    if hint:
        assert BY_FORMAT[format_](hint.split('"')[1]) is not None
