"""Imports of CSV from spreadsheets: separators, decimal commas and dates are parsed correctly, or counted
with a hint.
"""

from pathlib import Path

import pytest
from importing import AT_S, imported
from thalweg.errors import ThalwegError
from thalweg.records.imports import Addresses, CsvTable, Importer, Notation, mapping

MAP = ["end_us=t", "acked_bytes=bytes", "fct_us=ms:ms"]


def table(delimiter: str = "", **notation: str) -> Importer:
    return CsvTable(mapping(MAP, None), delimiter, Notation(**notation))


@pytest.mark.parametrize(("delimiter", "typed"), [(";", "';'"), ("\t", r"'\t'"), ("|", "'|'")])
def test_a_heading_with_another_separator_suggests_the_option(tmp_path: Path, delimiter: str, typed: str) -> None:
    (tmp_path / "a.csv").write_text("t;bytes;ms\n".replace(";", delimiter))
    with pytest.raises(ThalwegError, match="are separated by") as caught:
        imported(table(), tmp_path / "a.csv", out=tmp_path / "out")
    assert caught.value.hint == f"--delimiter {typed}"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_the_separator_is_read_from_the_first_line(tmp_path: Path, encoding: str) -> None:
    text = f"sep=;\r\nt;bytes;ms\r\n{AT_S};7;800\r\n{AT_S};7;x\r\n"
    (tmp_path / "a.csv").write_bytes(text.encode(encoding))
    (row,), done = imported(table(), tmp_path / "a.csv", out=tmp_path / "out")
    assert (row["acked_bytes"], row["fct_us"], done.first_unread[0].line) == (7, 800_000, 4)


@pytest.mark.parametrize(
    "number",
    ["1.000.000", "1,000,000", "1 000 000", "1\u00a0000\u00a0000", "1'000'000", "1.000", "1,5", "1_000"],
)
def test_an_ambiguous_number_is_counted(tmp_path: Path, number: str) -> None:
    (tmp_path / "a.csv").write_text(f"t;bytes;ms\n{AT_S};7;800\n{AT_S};{number};800\n")
    rows, done = imported(table(";"), tmp_path / "a.csv", out=tmp_path / "out")
    assert (len(rows), done.unread) == (1, 1)
    assert done.first_unread[0].why.startswith("acked_bytes: ")


@pytest.mark.parametrize(
    ("decimal", "bytes_", "ms", "read"),
    [
        (",", "1.000.000", "800,5", (1_000_000, 800_500)),
        (",", "1.000", "0,25", (1000, 250)),
        (",", "1000", "1.000,5", (1000, 1_000_500)),
        (".", "1,000,000", "800.5", (1_000_000, 800_500)),
        (".", "1.000", "1.204", (1, 1204)),
    ],
)
def test_a_configured_decimal_mark_is_read(
    tmp_path: Path, decimal: str, bytes_: str, ms: str, read: tuple[int, int]
) -> None:
    (tmp_path / "a.csv").write_text(f"t;bytes;ms\n{AT_S};{bytes_};{ms}\n{AT_S};1;1.2,3.4\n")
    (row,), done = imported(table(";", decimal=decimal), tmp_path / "a.csv", out=tmp_path / "out")
    assert (row["acked_bytes"], row["fct_us"], done.unread) == (*read, 1)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("21.11.2026 23:37:28", AT_S),
        ("21.11.2026 23:37", AT_S - 28),
        ("21-Nov-2026 23:37:28", AT_S),
        ("21.11.2026", AT_S - 28 - 37 * 60 - 23 * 3600),
        ("2026/11/21 23:37:28", AT_S),
        ("21.11.26 23:37", None),
        ("11/21/2026 11:37 PM", None),
        ("11/12/2026", None),
        ("21-11-2026 23:37", None),
        ("46347.98435185", None),
    ],
)
def test_unambiguous_dates_are_read_as_utc_and_others_counted(tmp_path: Path, text: str, seconds: int | None) -> None:
    (tmp_path / "a.csv").write_text(f"t,bytes,ms\n{AT_S},7,800\n{text},7,800\n")
    rows, done = imported(table(), tmp_path / "a.csv", out=tmp_path / "out")
    assert [row["end_us"] for row in rows[1:]] == ([] if seconds is None else [seconds * 1_000_000])
    assert done.unread == (seconds is None)
    assert bool([what for what in done.fallbacks if "no time zone" in what]) == (seconds is not None)


def test_a_configured_time_format_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("t,bytes,ms\n11/21/2026 11:37 PM,7,800\n2026-11-21,7,800\n")
    importer = table(time_format="%m/%d/%Y %I:%M %p")
    (row,), done = imported(importer, tmp_path / "a.csv", out=tmp_path / "out")
    assert (row["end_us"], done.unread) == ((AT_S - 28) * 1_000_000, 1)


def test_serial_dates_are_read_in_their_unit(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("t\n46347.98435185\n1795304248\n")
    importer = CsvTable(mapping(["end_us=t:excel"], None))
    (row,), done = imported(importer, tmp_path / "a.csv", out=tmp_path / "out")
    assert (round(row["end_us"] / 1e6), done.unread) == (AT_S, 1)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("text", [str(AT_S), str(AT_S * 1000), str(AT_S * 1_000_000), str(AT_S * 1_000_000_000)])
def test_a_time_in_the_wrong_unit_is_counted(tmp_path: Path, unit: str, text: str) -> None:
    (tmp_path / "a.csv").write_text(f"t\n{text}\n")
    importer = CsvTable(mapping([f"end_us=t:{unit}"], None))
    if len(text) == {"s": 10, "ms": 13, "us": 16, "ns": 19}[unit]:
        (row,), _ = imported(importer, tmp_path / "a.csv", out=tmp_path / "out")
        assert row["end_us"] == AT_S * 1_000_000
    else:
        with pytest.raises(ThalwegError, match=r"is it in another unit|too large"):
            imported(importer, tmp_path / "a.csv", out=tmp_path / "out")


@pytest.mark.parametrize("text", ["nan", "NaN", "inf", "-inf", "Infinity", "-Infinity", "NA", "NULL", "-", ""])
def test_nan_and_infinity_are_null(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.csv").write_text(f"t,x,y\n{AT_S},{text},{text}\n")
    importer = CsvTable(mapping(["end_us=t", "goodput_bps=x", "acked_bytes=y"], None))
    (row,), done = imported(importer, tmp_path / "a.csv", out=tmp_path / "out")
    assert not {"goodput_bps", "acked_bytes"} & row.keys()
    assert done.unread == 0


@pytest.mark.parametrize(
    ("text", "address", "port"),
    [
        ("203.0.113.5:50123", "203.0.113.5", 50123),
        ("[2001:db8::1]:443", "2001:db8::1", 443),
        ("2001:db8::1", "2001:db8::1", None),
        ("[fe80::1%eth0]:443", "fe80::1", 443),
        ("203.0.113.5/32", "203.0.113.5", None),
        ("203.0.113.0/24", "203.0.113.0/24", None),
        ("::ffff:203.0.113.5", "203.0.113.5", None),
    ],
)
def test_an_address_may_include_a_port(tmp_path: Path, text: str, address: str, port: int | None) -> None:
    (tmp_path / "a.csv").write_text(f"t,a\n{AT_S},{text}\n")
    importer = CsvTable(mapping(["end_us=t", "remote_address=a"], None))
    (row,), _ = imported(importer, tmp_path / "a.csv", out=tmp_path / "out", addresses=Addresses("whole"))
    assert (row["remote_address"], row.get("remote_port")) == (address, port)


@pytest.mark.parametrize(
    "text", ["GET /a", "h:nothing", "203.0.113.5, 10.0.0.1", "[::1]:99999", "256.0.0.1", "203.0.113.5:x"]
)
def test_a_line_with_an_invalid_address_is_malformed(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.csv").write_text(f't,a\n{AT_S},unix:\n{AT_S},"{text}"\n')
    importer = CsvTable(mapping(["end_us=t", "remote_address=a"], None))
    rows, done = imported(importer, tmp_path / "a.csv", out=tmp_path / "out")
    assert (len(rows), done.unread) == (1, 1)
    assert "remote_address" not in rows[0]


def test_a_serial_date_without_a_unit_suggests_the_unit(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("t\n46347.98435185\n")
    with pytest.raises(ThalwegError, match="its unit is excel"):
        imported(CsvTable(mapping(["end_us=t"], None)), tmp_path / "a.csv", out=tmp_path / "out")


def test_a_fraction_of_a_count_is_not_rounded(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(f"t,n,us\n{AT_S},3.0,45.5\n{AT_S},1.5,45.5\n")
    importer = CsvTable(mapping(["end_us=t", "retransmits=n", "rtt_min_us=us"], None))
    rows, done = imported(importer, tmp_path / "a.csv", out=tmp_path / "out")
    assert [(row["retransmits"], row["rtt_min_us"]) for row in rows] == [(3, 46)]
    assert done.first_unread[0].why == "retransmits: a fraction in a column of whole numbers: `1.5`"


@pytest.mark.parametrize("text", ["1.5e3", "1500", "1500.0"])
def test_a_configured_decimal_point_allows_exponents(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.csv").write_text(f"t;bytes;ms\n{AT_S};{text};800\n")
    (row,), _ = imported(table(";", decimal="."), tmp_path / "a.csv", out=tmp_path / "out")
    assert row["acked_bytes"] == 1500
