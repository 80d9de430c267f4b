"""Malformed files: each line is imported, or reported and counted; none causes a crash or is dropped silently."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from importing import AT_S, SAMPLES, imported
from thalweg.errors import ThalwegError
from thalweg.records.imports import (
    CsvTable,
    Imported,
    Importer,
    Ndt,
    Nginx,
    Ss,
    Varnish,
    items,
    mapping,
    ss,
    ss_sockets,
)
from thalweg.records.imports.values import LARGEST

LINE = '203.0.113.9 - - [{}] "GET / HTTP/1.1" 200 {} "-" "x"\n'
TIME = "22/Nov/2026:00:37:31 +0100"
GOOD = LINE.format(TIME, 44321)

IMPORTERS: dict[str, Callable[[], Importer]] = {
    "nginx": Nginx,
    "varnish": Varnish,
    "csv": lambda: CsvTable(mapping(["end_us=t"], None)),
    "ndt": Ndt,
    "ss": Ss,
}

NOTHING = {
    "empty": b"",
    "blank": b"\n\n\r\n",
    "mark": b"\xef\xbb\xbf",
    "binary": bytes(range(256)) * 2000,
    "zeros": bytes(300_000),
    "packed nothing": gzip.compress(b""),
    "other": b"nothing that anybody expects\n" * 5,
}


def why(done: Imported) -> list[str]:
    return [line.why for line in done.first_unread]


@pytest.mark.parametrize("form", IMPORTERS)
@pytest.mark.parametrize("name", NOTHING)
def test_a_file_without_records_is_an_error_and_leaves_no_files(tmp_path: Path, form: str, name: str) -> None:
    (tmp_path / "file").write_bytes(NOTHING[name])
    with pytest.raises(ThalwegError) as caught:
        imported(IMPORTERS[form](), tmp_path / "file", out=tmp_path / "out")
    assert caught.value.code in ("no-records", "no-column", "no-csv")
    assert caught.value.expected
    assert len(caught.value.text()) < 5000
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_byte_order_marks_and_foreign_line_ends_are_removed(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "a.csv").write_bytes("t,size\r\n1795304248,5\r\n1795304249,6\r\n".encode(encoding))
    importer = CsvTable(mapping(["end_us=t", "acked_bytes=size"], None))
    rows, done = imported(importer, tmp_path / "a.csv", out=tmp_path / "out")
    assert ([row["acked_bytes"] for row in rows], done.unread) == ([5, 6], 0)


def test_a_heading_without_rows_is_reported(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("t,size\n")
    with pytest.raises(ThalwegError, match="contains no record"):
        imported(IMPORTERS["csv"](), tmp_path / "a.csv", out=tmp_path / "out")


def test_duplicate_column_names_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("t,size,t\n1,2,3\n")
    with pytest.raises(ThalwegError, match="several columns `t`"):
        imported(IMPORTERS["csv"](), tmp_path / "a.csv", out=tmp_path / "out")


@pytest.mark.parametrize(
    ("magic", "name"), [(b"\xfd7zXZ\x00", "xz"), (b"BZh91AY", "bzip2"), (b"\x28\xb5\x2f\xfd", "zstd")]
)
def test_unsupported_compression_is_reported_with_a_remedy(tmp_path: Path, magic: bytes, name: str) -> None:
    (tmp_path / "a.log").write_bytes(magic + bytes(100))
    with pytest.raises(ThalwegError, match=f"compressed by {name}") as caught:
        imported(Nginx(), tmp_path / "a.log", out=tmp_path / "out")
    assert f"{name} -dk" in (caught.value.hint or "")


@pytest.mark.parametrize(
    "when", ["01/Jan/0001:00:00:00 +0100", "31/Dec/9999:23:59:59 -0100", "31/Nov/2026:00:00:00 +0000", "1/1/26"]
)
def test_a_line_with_an_impossible_date_is_malformed(tmp_path: Path, when: str) -> None:
    (tmp_path / "a.log").write_text(GOOD + LINE.format(when, 7))
    rows, done = imported(Nginx(), tmp_path / "a.log", out=tmp_path / "out")
    assert (len(rows), done.unread) == (1, 1)


def test_a_time_without_a_zone_is_utc(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("t\n2026-11-21T23:37:28\n2026-11-22 00:37:28+01:00\n")
    rows, _ = imported(IMPORTERS["csv"](), tmp_path / "a.csv", out=tmp_path / "out")
    assert {row["end_us"] for row in rows} == {AT_S * 1_000_000}


def test_three_decimals_are_not_taken_for_thousands(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("t,rtt\n1700000005,20.125\n1700000006,0.671\n1700000007,1234.5\n")
    rows, done = imported(
        CsvTable(mapping(["end_us=t", "rtt_min_us=rtt:ms"], None)), tmp_path / "a.csv", out=tmp_path / "out"
    )
    assert [row["rtt_min_us"] for row in rows] == [20_125, 671, 1_234_500]
    assert done.unread == 0


@pytest.mark.parametrize(
    ("column", "valid", "invalid", "names"),
    [("direction", "in", "IN", "in, out"), ("assignment", "treated", "TREATED", "treated, held_out, untouched")],
)
def test_a_text_that_is_not_a_name_of_its_column_is_malformed(
    tmp_path: Path, column: str, valid: str, invalid: str, names: str
) -> None:
    (tmp_path / "a.csv").write_text(f"t,x\n1700000005,{valid}\n1700000006,{invalid}\n1700000007,\n")
    importer = CsvTable(mapping(["end_us=t", f"{column}=x"], None))
    rows, done = imported(importer, tmp_path / "a.csv", out=tmp_path / "out")
    assert [row.get(column) for row in rows] == [valid, None]
    assert f"{column}: not one of {names}: `{invalid}`" in "".join(why(done))


@pytest.mark.parametrize(
    ("column", "text", "reason"),
    [
        ("acked_bytes", str(2**63), ""),
        ("acked_bytes", str(LARGEST), ""),
        ("acked_bytes", str(2**64), "too large"),
        ("acked_bytes", "9" * 5000, "too large"),
        ("acked_bytes", "-1", "a negative number"),
        ("goodput_bps", "-5", "goodput_bps is out of range: -5"),
        ("goodput_bps", "1e400", "too large"),
        ("app_limited_share", "-0.1", "a share that is not from 0 to 1: `-0.1`"),
        ("app_limited_share", "1.5", "a share that is not from 0 to 1: `1.5`"),
        ("app_limited_share", "1", ""),
        ("app_limited_share", "0.671", ""),
    ],
)
def test_out_of_range_numbers_are_reported(tmp_path: Path, column: str, text: str, reason: str) -> None:
    (tmp_path / "a.csv").write_text(f"t,x\n1700000005,1\n1700000006,{text}\n")
    importer = CsvTable(mapping(["end_us=t", f"{column}=x"], None))
    rows, done = imported(importer, tmp_path / "a.csv", out=tmp_path / "out")
    assert len(rows) == (1 if reason else 2)
    assert reason in "".join(why(done))
    assert done.unread == bool(reason)


def test_nan_is_unknown(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("t,x\n1700000005,nan\n1700000006,-\n1700000007,\n")
    importer = CsvTable(mapping(["end_us=t", "rtt_min_us=x"], None))
    rows, done = imported(importer, tmp_path / "a.csv", out=tmp_path / "out")
    assert (len(rows), done.unread) == (3, 0)
    assert all("rtt_min_us" not in row for row in rows)


def test_the_zone_of_an_ipv6_address_is_dropped(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("t,a\n1700000005,fe80::1%eth0\n1700000006,[fe80::2%3]\n")
    importer = CsvTable(mapping(["end_us=t", "remote_address=a"], None))
    rows, _ = imported(importer, tmp_path / "a.csv", out=tmp_path / "out")
    assert {(row["remote_address"], row["ip_version"]) for row in rows} == {("fe80::/48", 6)}


def test_lines_inside_an_unterminated_quote_are_counted(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('t,x\n1700000005,a\n1700000006,"b\n' + "1700000007,c\n" * 40)
    importer = CsvTable(mapping(["end_us=t", "cc=x"], None))
    rows, done = imported(importer, tmp_path / "a.csv", out=tmp_path / "out")
    assert ([row["cc"] for row in rows], done.unread) == (["a"], 41)

    (tmp_path / "b.csv").write_text(
        't,x\n1700000005,a\n1700000006,"b\n' + "1700000007,c\n" * 40 + '1700000008,d",e\n1700000009,f\n'
    )
    rows, done = imported(importer, tmp_path / "b.csv", out=tmp_path / "out")
    assert ([row["cc"] for row in rows], done.unread) == (["a", "f"], 42)
    assert [(line.line, line.why) for line in done.first_unread] == [
        (3, "a quote is opened and not closed: the 41 lines after it are also skipped")
    ]


def test_an_unbounded_line_is_counted_in_bounded_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(items, "LONGEST", 1000)
    (tmp_path / "a.log").write_text(GOOD + "x" * 1_000_000 + "\n" + GOOD)
    rows, done = imported(Nginx(), tmp_path / "a.log", out=tmp_path / "out")
    assert (len(rows), [(line.line, "longer than" in line.why) for line in done.first_unread]) == (2, [(2, True)])

    (tmp_path / "a.csv").write_text("t,x\n1700000005,a\n1700000006," + "b" * 5000 + "\n1700000007,c\n")
    importer = CsvTable(mapping(["end_us=t", "cc=x"], None))
    rows, done = imported(importer, tmp_path / "a.csv", out=tmp_path / "out")
    assert ([row["cc"] for row in rows], done.unread) == (["a", "c"], 1)


def test_an_unbounded_socket_entry_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ss_sockets, "LONGEST_SOCKET", 1000)
    socket = "ESTAB 0 0 192.0.2.1:443 198.51.100.7:5 sk:7\n\t cubic rto:204 rtt:10/5 segs_out:9 bytes_sent:4000\n"
    (tmp_path / "dump").write_text(socket + "\t more\n" * 1000 + socket)
    rows, done = imported(Ss(AT_S * 1_000_000), tmp_path / "dump", out=tmp_path / "out")
    assert (len(rows), why(done)) == (1, ["it is longer than 1,000 characters"])


@pytest.mark.parametrize(
    "field", ["delivery_rate 1.2.3Mbps", f"delivery_rate {'9' * 400}bps", f"sk:{'f' * 6000}", "bbr:(bw:...bps,mrtt:1)"]
)
def test_a_line_with_invalid_ss_fields_is_malformed(tmp_path: Path, field: str) -> None:
    socket = "ESTAB 0 0 192.0.2.1:443 198.51.100.7:5 {}\n\t cubic rto:204 rtt:10/5 segs_out:9 bytes_sent:4000\n"
    (tmp_path / "dump").write_text(socket.format("sk:7") + socket.format(field))
    rows, done = imported(Ss(AT_S * 1_000_000), tmp_path / "dump", out=tmp_path / "out")
    assert (len(rows), done.unread) == (1, 1)


@pytest.mark.parametrize("line", ["tcp", 'users:(("a",pid=1,fd=2))', "ESTAB", "ESTAB 0 0 x y"])
def test_truncated_lines_of_ss_are_reported(tmp_path: Path, line: str) -> None:
    socket = "ESTAB 0 0 192.0.2.1:443 198.51.100.7:5 sk:7\n\t cubic rto:204 rtt:10/5 segs_out:9 bytes_sent:4000\n"
    (tmp_path / "dump").write_text(f"{line}\n{socket}")
    rows, done = imported(Ss(AT_S * 1_000_000), tmp_path / "dump", out=tmp_path / "out")
    assert (len(rows), done.unread) == (1, 1)


def test_multi_line_csv_fields_that_are_not_mapped_are_accepted(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('t,note,x\n1700000005,"one\ntwo",a\n1700000006,three,b\n')
    importer = CsvTable(mapping(["end_us=t", "cc=x"], None))
    rows, done = imported(importer, tmp_path / "a.csv", out=tmp_path / "out")
    assert ([row["cc"] for row in rows], done.unread) == (["a", "b"], 0)


def test_algorithms_of_the_most_recent_connections_are_cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ss, "MAX_SEEN", 2)
    socket = "{} 0 0 192.0.2.1:443 198.51.100.7:5 sk:{}\n\t {} rto:204 rtt:10/5 segs_out:9 bytes_sent:4000\n"
    opened = [socket.format("ESTAB", number, "bbr") for number in (1, 2, 1, 3)]
    closed = [socket.format("UNCONN", number, "") for number in (1, 2, 3)]
    (tmp_path / "dump").write_text("".join([*opened, *closed]))
    rows, _ = imported(Ss(AT_S * 1_000_000), tmp_path / "dump", out=tmp_path / "out")
    assert [row.get("cc") for row in rows if row["kind"] == "close"] == ["bbr", None, "bbr"]


def ndt_rows() -> list[str]:
    return (SAMPLES / "ndt7.jsonl").read_text().splitlines()


def test_a_json_list_on_one_line_is_streamed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    row = json.loads(ndt_rows()[2])
    rows = [row | {"id": f"test-{number}", "a": row["a"] | {"UUID": f"test-{number}"}} for number in range(300)]
    text = json.dumps(rows)
    monkeypatch.setattr(items, "LONGEST", 5000)
    assert len(text) > 10 * items.LONGEST
    (tmp_path / "list.json").write_text(text)
    imported_rows, done = imported(Ndt(), tmp_path / "list.json", out=tmp_path / "out")
    assert (len(imported_rows), len({row["connection"] for row in imported_rows}), done.unread) == (300, 300, 0)


def test_a_truncated_json_list_is_reported(tmp_path: Path) -> None:
    for cut, reason in ((1, "does not end"), (40, "not JSON")):
        (tmp_path / "list.json").write_text(json.dumps([json.loads(ndt_rows()[2])] * 3)[:-cut])
        rows, done = imported(Ndt(), tmp_path / "list.json", out=tmp_path / "out")
        assert (len(rows), done.unread) == (3 if cut == 1 else 2, 1)
        assert reason in why(done)[0]


def test_unpaired_surrogates_do_not_stop_the_import(tmp_path: Path) -> None:
    row = json.loads(ndt_rows()[2])
    row["a"] |= {"CongestionControl": "cub\ud800ic", "UUID": "\udfff"}
    (tmp_path / "a.json").write_text(json.dumps(row))
    (imported_row,), _ = imported(Ndt(), tmp_path / "a.json", out=tmp_path / "out")
    assert imported_row["cc"] == "cub?ic"
