"""Imports of HAProxy's logs: the formats of option httplog and option tcplog, and those of log-format."""

from pathlib import Path
from typing import Any

import pytest
from importing import AT_S, imported
from thalweg.errors import ThalwegError
from thalweg.records.imports import Addresses, Haproxy, Imported, mapping

SYSLOG = "Nov 21 23:37:29 lb1 haproxy[14389]: "
HTTP = (
    "203.0.113.5:50123 [21/Nov/2026:23:37:28.250] www~ static/srv1 10/0/30/69/1500 200 1514848 - - ---- 1/1/1/1/0 0/0 "
)
TCP = "2001:db8::1:50123 [21/Nov/2026:23:37:28.250] ft bk/srv1 0/0/5007 212 -- 0/0/0/0/3 0/0"


def rows_of(folder: Path, text: str, importer: Haproxy | None = None) -> tuple[list[dict[str, Any]], Imported]:
    (folder / "a.log").write_text(text)
    return imported(importer or Haproxy(), folder / "a.log", out=folder / "out", addresses=Addresses("whole"))


@pytest.mark.parametrize("prefix", ["", SYSLOG, "<134>" + SYSLOG])
@pytest.mark.parametrize("captured", ["", "{www.example.org} ", "{a|b} {} "])
def test_a_line_of_httplog_is_a_transfer(tmp_path: Path, prefix: str, captured: str) -> None:
    (row,), done = rows_of(tmp_path, f'{prefix}{HTTP}{captured}"GET /a HTTP/1.1"\n')
    assert row.pop("machine", None) == ("lb1" if prefix else None)
    del row["connection"]
    assert row == {
        "end_us": AT_S * 1_000_000 + 1_750_000,
        "start_us": AT_S * 1_000_000 + 250_000,
        "duration_us": 1_500_000,
        "kind": "transfer",
        "transfer": 0,
        "source": "haproxy",
        "ip_version": 4,
        "remote_address": "203.0.113.5",
        "remote_port": 50123,
        "direction": "in",
        "sent_bytes": 1_514_848,
    }
    assert [what for what in done.fallbacks if "no time zone" in what]


def test_a_line_of_tcplog_is_a_connection(tmp_path: Path) -> None:
    (row,), _ = rows_of(tmp_path, f"{SYSLOG}{TCP}\n")
    assert (row["kind"], row["duration_us"], row["sent_bytes"]) == ("close", 5_007_000, 212)
    assert (row["remote_address"], row["remote_port"]) == ("2001:db8::1", 50123)


def test_other_lines_are_counted_and_incomplete_phases_are_unknown(tmp_path: Path) -> None:
    bad = HTTP.replace("10/0/30/69/1500 200 1514848", "-1/-1/-1/-1/3 400 187") + '"<BADREQ>"'
    early = HTTP.replace("1500 200 1514848", "+1500 200 +1514848") + '"GET / HTTP/1.1"'
    lines = [
        bad,
        early,
        "Server static/srv1 is DOWN, reason: Layer4 timeout.",
        "unix:1" + TCP.removeprefix("2001:db8::1:50123"),
    ]
    rows, done = rows_of(tmp_path, "".join(f"{SYSLOG}{line}\n" for line in lines))
    assert [(row["duration_us"], row["sent_bytes"], row.get("remote_address")) for row in rows] == [
        (3000, 187, "203.0.113.5"),
        (5_007_000, 212, None),
    ]
    assert done.left_out.counts() == {"lines that were logged before the end (option logasap)": 1}
    assert done.unread == 1


def test_a_custom_format_yields_its_tcp_fields(tmp_path: Path) -> None:
    form = r"%ci:%cp\ %fi:%fp\ [%trl]\ %ST\ %B\ %U\ %Ta\ %[fc_rtt(us)]\ %[fc_reordering]\ %[var(txn.cc)]\ %hr\ %{+Q}r"
    importer = Haproxy(form, mapping(["cc=%[var(txn.cc)]"], None))
    line = "203.0.113.5:50123 192.0.2.1:443 [22/Nov/2026:00:37:28 +0100] 200 1000 300 1500 45123 3 bbr "
    line += '{x} "GET / HTTP/1.1"\n'
    rows, done = rows_of(tmp_path, line + line.replace("{x} ", "").replace("45123", "-"), importer)
    assert [row.get("rtt_smoothed_us") for row in rows] == [45_123, None]
    assert {row["cc"] for row in rows} == {"bbr"}
    assert {(row["local_address"], row["local_port"], row["received_bytes"], row["reordering"]) for row in rows} == {
        ("192.0.2.1", 443, 300, 3)
    }
    assert {row["start_us"] for row in rows} == {AT_S * 1_000_000}
    assert not done.fallbacks


def test_a_time_with_a_time_zone_takes_precedence(tmp_path: Path) -> None:
    line = "22/Nov/2026:00:37:28.250 22/Nov/2026:00:37:28 +0100|1500\n"
    (row,), done = rows_of(tmp_path, line, Haproxy("%tr %trl|%Ta"))
    assert row["start_us"] == AT_S * 1_000_000
    assert not done.fallbacks


@pytest.mark.parametrize(
    ("field", "text", "us"), [("fc_rtt", "45", 45_000), ("fc_rtt(ms)", "45", 45_000), ("fc_rtt(us)", "45", 45)]
)
def test_the_round_trip_time_has_the_unit_of_its_field(tmp_path: Path, field: str, text: str, us: int) -> None:
    (row,), _ = rows_of(tmp_path, f"{AT_S} 250 1500 {text}\n", Haproxy(f"%Ts %ms %Tt %[{field}]"))
    assert (row["rtt_smoothed_us"], row["start_us"]) == (us, AT_S * 1_000_000 + 250_000)


@pytest.mark.parametrize(
    ("form", "message"),
    [("plain", "has no field"), ("%{+X}ci %t", "hexadecimal"), ("%ci%cp", "there is no text between")],
)
def test_unsupported_formats_are_refused(form: str, message: str) -> None:
    with pytest.raises(ThalwegError, match=message):
        Haproxy(form)


def test_quotes_around_texts_are_removed(tmp_path: Path) -> None:
    form = '%{+Q}o %{-Q}ci - - [%trg] %r %ST %B "" "" %cp %ms %ft %b %s %TR %Tw %Tc %Tr %Ta %tsc'
    line = '203.0.113.5 - - [21/Nov/2026:23:37:28 +0000] "GET /a HTTP/1.1" 200 212 "" "" 50123 250 '
    line += '"www~" "static" "srv1" 10 0 30 69 109 ----'
    (row,), _ = rows_of(tmp_path, f"{line}\n", Haproxy(form))
    assert (row["remote_address"], row["remote_port"], row["sent_bytes"]) == ("203.0.113.5", 50123, 212)
    assert row["start_us"] == AT_S * 1_000_000 + 250_000
