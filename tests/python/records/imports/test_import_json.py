"""Imports of arbitrary JSON with a map."""

import json
from pathlib import Path
from typing import Any

import pytest
from importing import AT_S, imported
from thalweg.errors import ThalwegError
from thalweg.records.imports import Addresses, Imported, JsonLines, Notation, mapping

MAP = ["end_us=time", "remote_address=client.ip", "cc=cc", "acked_bytes=bytes", "fct_us=took:ms", "ecn=ecn"]


def rows_of(folder: Path, text: str, maps: list[str] = MAP, **notation: str) -> tuple[list[dict[str, Any]], Imported]:
    (folder / "a.json").write_text(text)
    importer = JsonLines(mapping(maps, None), Notation(**notation))
    return imported(importer, folder / "a.json", out=folder / "out", addresses=Addresses("whole"))


LINES = [
    {"time": AT_S, "cc": "bbr", "bytes": 1_000_000, "took": 800.5, "client": {"ip": "[2001:db8::1]:443"}, "ecn": True},
    {
        "ecn": False,
        "client": {"ip": "203.0.113.5"},
        "took": "800.5",
        "bytes": "1000000",
        "cc": None,
        "time": f"{AT_S}.5",
    },
]


@pytest.mark.parametrize("form", ["lines", "list", "indented", "containerd", "docker"])
def test_object_keys_may_be_in_any_order(tmp_path: Path, form: str) -> None:
    texts = [json.dumps(line) for line in LINES]
    text = {
        "lines": "\n".join(texts),
        "list": json.dumps(LINES),
        "indented": json.dumps(LINES, indent=2),
        "containerd": "".join(f"2026-11-21T23:37:28.1Z stdout F {line}\n" for line in texts),
        "docker": "".join(json.dumps({"log": f"{line}\n", "stream": "stdout", "time": "x"}) + "\n" for line in texts),
    }[form]
    rows, done = rows_of(tmp_path, text)
    assert done.unread == 0
    assert [row["acked_bytes"] for row in rows] == [1_000_000] * 2
    assert [row["fct_us"] for row in rows] == [800_500] * 2
    assert [(row["remote_address"], row.get("remote_port")) for row in rows] == [
        ("2001:db8::1", 443),
        ("203.0.113.5", None),
    ]
    assert [(row.get("cc"), row["ecn"], row["end_us"] - AT_S * 1_000_000) for row in rows] == [
        ("bbr", True, 0),
        (None, False, 500_000),
    ]


def test_keys_that_a_line_lacks_are_empty_and_reported(tmp_path: Path) -> None:
    rows, done = rows_of(tmp_path, "\n".join(json.dumps({"time": AT_S, "bytes": size}) for size in (1, 2)))
    assert [row["acked_bytes"] for row in rows] == [1, 2]
    assert {what: reason.count for what, reason in done.fallbacks.items()} == {
        f"{column}: there is no key `{key}`": 2
        for column, key in (("remote_address", "client.ip"), ("cc", "cc"), ("fct_us", "took"), ("ecn", "ecn"))
    }


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", '"inf"', "null", '""'])
def test_a_non_number_is_unknown(tmp_path: Path, number: str) -> None:
    text = f'{{"time": {AT_S}, "x": {number}, "y": {number}}}'
    (row,), done = rows_of(tmp_path, text, ["end_us=time", "goodput_bps=x", "acked_bytes=y"])
    assert not {"goodput_bps", "acked_bytes"} & row.keys()
    assert done.unread == 0


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("1e999", "a number that is too large"),
        ("9" * 5000, "a number that is too large"),
        ("-1", "a negative number"),
        ("[1]", "is a list or an object"),
        ('"1.000.000"', "a decimal comma or a thousands separator"),
        ('"many"', "not a number"),
        ("true", "not a number"),
        ("tru", "not JSON"),
    ],
)
def test_out_of_range_values_are_counted_by_reason(tmp_path: Path, value: str, why: str) -> None:
    good = json.dumps({"time": AT_S, "bytes": 5})
    text = f'{good}\n{{"time": {AT_S}, "bytes": {value}}}\n'
    rows, done = rows_of(tmp_path, text, ["end_us=time", "acked_bytes=bytes"])
    assert (len(rows), done.first_unread[0].line) == (1, 2)
    assert why in done.first_unread[0].why


def test_strings_are_read_in_the_configured_notation(tmp_path: Path) -> None:
    text = json.dumps({"t": "11/21/2026 11:37 PM", "bytes": "1.000.000"})
    (row,), _ = rows_of(tmp_path, text, ["end_us=t", "acked_bytes=bytes"], decimal=",", time_format="%m/%d/%Y %I:%M %p")
    assert (row["end_us"], row["acked_bytes"]) == ((AT_S - 28) * 1_000_000, 1_000_000)


def test_a_json_fraction_has_no_thousands_separator(tmp_path: Path) -> None:
    for rtt in (21.1, 21.12, 21.125):
        (row,), _ = rows_of(tmp_path, json.dumps({"time": AT_S, "rtt": rtt}), ["end_us=time", "rtt_min_us=rtt"])
        assert row["rtt_min_us"] == 21
    with pytest.raises(ThalwegError, match="a decimal point, although --decimal is a comma"):
        rows_of(tmp_path, json.dumps({"time": AT_S, "rtt": 12.34}), ["end_us=time", "rtt_min_us=rtt"], decimal=",")


def test_a_map_without_a_time_is_refused() -> None:
    with pytest.raises(ThalwegError, match="has no end time of rows"):
        JsonLines(mapping(["cc=cc"], None))
