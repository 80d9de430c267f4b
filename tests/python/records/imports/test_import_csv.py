"""Imports of arbitrary CSV with a map."""

from pathlib import Path

import pytest
from importing import AT_S, SAMPLES, imported
from thalweg.errors import ThalwegError
from thalweg.records.imports import CsvTable, mapping

CSV = SAMPLES / "flows.csv"
TIME = "end_us=finished"


def test_columns_and_units_are_converted(tmp_path: Path) -> None:
    settings = [TIME, "remote_address=client", "cc=algorithm", "acked_bytes=size_kB:kB", "fct_us=time_ms:ms",
                "rtt_min_us=min_rtt_ms:ms", "retransmits=lost", "ecn=secure"]  # fmt: skip
    rows, done = imported(CsvTable(mapping(settings, None)), CSV, out=tmp_path)
    first = {name: value for name, value in rows[0].items() if name != "connection"}
    assert first == {
        "end_us": AT_S * 1_000_000 + 500_000,
        "kind": "transfer",
        "source": "csv",
        "ip_version": 4,
        "remote_address": "198.51.100.0/24",
        "cc": "cubic",
        "acked_bytes": 1_000_000,
        "retransmits": 3,
        "ecn": True,
        "rtt_min_us": 20_500,
        "fct_us": 800_000,
        "goodput_bps": 1e7,
    }
    assert "acked_bytes" not in rows[2]
    assert [(line.line, line.why) for line in done.first_unread] == [
        (5, "acked_bytes: not a number: `ten`"),
        (6, "number of fields differs from the heading's: 4 instead of 8"),
    ]


def test_a_toml_map_is_read_and_settings_override_it(tmp_path: Path) -> None:
    rows, _ = imported(CsvTable(mapping(["cc=algorithm"], SAMPLES / "flows.toml")), CSV, out=tmp_path / "a")
    assert [row["cc"] for row in rows] == ["cubic", "bbr", "bbr"]
    rows, _ = imported(CsvTable(mapping([], SAMPLES / "flows.toml")), CSV, out=tmp_path / "b")
    assert {row["cc"] for row in rows} == {"reno"}
    assert rows[0]["goodput_bps"] == 1e7


@pytest.mark.parametrize(
    ("setting", "hint"),
    [
        ("acked_bytes=size:kilobytes", "`kilobytes` is not a unit of acked_bytes; units: "),
        ("cc=size:kB", "cc has no unit"),
        ("acked_bytes=bytes", "--map acked_bytes=HEADING"),
    ],
)
def test_a_wrong_unit_is_told_from_a_wrong_heading(tmp_path: Path, setting: str, hint: str) -> None:
    (tmp_path / "a.csv").write_text("t,size\n1795304248,5\n")
    with pytest.raises(ThalwegError) as caught:
        imported(CsvTable(mapping(["end_us=t", setting], None)), tmp_path / "a.csv", out=tmp_path / "out")
    assert (caught.value.hint or "").startswith(hint)


def test_rows_without_a_transfer_are_connections(tmp_path: Path) -> None:
    rows, _ = imported(CsvTable(mapping([TIME, "acked_bytes=size_kB:kB"], None)), CSV, out=tmp_path)
    assert {row["kind"] for row in rows} == {"close"}


def test_a_time_in_the_wrong_unit_is_reported(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("t\n1795304248\n1795304248000\n")
    rows, done = imported(CsvTable(mapping(["end_us=t:s"], None)), tmp_path / "a.csv", out=tmp_path / "out")
    assert [row["end_us"] for row in rows] == [AT_S * 1_000_000]
    assert "another unit" in done.first_unread[0].why


def test_separators_and_connection_identifiers_are_arbitrary_text(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("id\tt\nx\t1700000005\ny\t1700000006\nx\t1700000007\n")
    rows, _ = imported(
        CsvTable(mapping(["end_us=t:s", "connection=id"], None)), tmp_path / "a.tsv", out=tmp_path / "out"
    )
    x, y, again = (row["connection"] for row in rows)
    assert x == again != y
    assert rows[0]["end_us"] == 1_700_000_005_000_000


def test_truncated_or_hashed_addresses_are_kept(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("t,a\n1700000005,198.51.100.0/24\n1700000006,h:73a92d6adb7d024a\n1700000007,no\n")
    importer = CsvTable(mapping(["end_us=t", "remote_address=a"], None))
    rows, done = imported(importer, tmp_path / "a.csv", out=tmp_path / "out")
    assert [row["remote_address"] for row in rows] == ["198.51.100.0/24", "h:73a92d6adb7d024a"]
    assert done.first_unread[0].why == "remote_address: not an address: `no`"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["acked_bytes=size_kB"], "has no end time of rows"),
        ([TIME, "goodput=x"], "no column `goodput`"),
        ([TIME, "source=x"], "`source` cannot be mapped"),
        ([TIME, "cc"], "names no field"),
        ([TIME, "cc=algorithm", "cc=other"], "`cc` is mapped twice"),
    ],
)
def test_an_invalid_map_is_refused(settings: list[str], message: str) -> None:
    with pytest.raises(ThalwegError, match=message):
        CsvTable(mapping(settings, None))


def test_a_toml_file_without_a_map_is_refused(tmp_path: Path) -> None:
    for text, message in (
        ("end_us = 5", "neither a field nor a value"),
        ("end_us = {form = 's'}", "neither a field nor a value"),
        ("end_us = {from = 't', unit = 'kB'}", "is not a unit of end_us"),
        ("end_us", "is not valid TOML"),
    ):
        (tmp_path / "map.toml").write_text(text)
        with pytest.raises(ThalwegError, match=message):
            mapping([], tmp_path / "map.toml")


def test_a_missing_heading_is_reported_with_the_present_ones(tmp_path: Path) -> None:
    with pytest.raises(ThalwegError, match="no column `size`") as caught:
        imported(CsvTable(mapping([TIME, "acked_bytes=size"], None)), CSV, out=tmp_path / "out")
    assert "`size_kB`" in (caught.value.found or "")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_a_file_that_may_have_been_cut_is_noted(tmp_path: Path, line_end: str) -> None:
    lines = ["finished,fct", "1795304248,650", "1795304249,650"]
    notes = {}
    for last in (line_end, ""):
        file = tmp_path / f"{len(last)}.csv"
        file.write_text(line_end.join(lines) + last, newline="")
        importer = CsvTable(mapping([TIME, "fct_us=fct:ms"], None))
        rows, done = imported(importer, file, out=tmp_path / "out")
        assert [row["fct_us"] for row in rows] == [650_000, 650_000]
        notes[last] = [(what, reason.first.line) for what, reason in done.fallbacks.items()]
    assert notes[line_end] == []
    assert notes[""] == [("the last line has no line end: if the file was cut, so is its last value", 3)]


def test_invalid_utf_8_and_implausible_rtts_are_noted(tmp_path: Path) -> None:
    file = tmp_path / "odd.csv"
    file.write_bytes(b"finished,algorithm,rtt_ms\n1795304248,bbr,20\n1795304249,caf\xe9,99999999\n")
    settings = [TIME, "cc=algorithm", "rtt_min_us=rtt_ms:ms"]
    rows, done = imported(CsvTable(mapping(settings, None)), file, out=tmp_path / "out")
    assert [row.get("rtt_min_us") for row in rows] == [20_000, None]
    assert list(done.fallbacks) == [
        "rtt_min_us: a round-trip time of more than an hour: is it in another unit?",
        "cc: a character that is not UTF-8 was replaced",
    ]
