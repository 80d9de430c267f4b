"""Imports of Varnish's access logs."""

from pathlib import Path

import pytest
from importing import AT_S, SAMPLES, imported
from thalweg.errors import ThalwegError
from thalweg.records.imports import Varnish, mapping

FORM = '%h %t %D "%r" %s %O %b %I %{Varnish:hitmiss}x %{VCL_Log:tcpi}x|%{VCL_Log:tcpi2}x'
LOG = SAMPLES / "varnish.log"


def test_each_request_is_a_transfer_with_what_varnish_and_vmod_tcp_know(tmp_path: Path) -> None:
    rows, done = imported(Varnish(FORM), LOG, out=tmp_path)
    first = {name: value for name, value in rows[0].items() if name != "connection"}
    assert first == {
        "start_us": AT_S * 1_000_000,
        "end_us": AT_S * 1_000_000 + 204_113,
        "duration_us": 204_113,
        "kind": "transfer",
        "transfer": 0,
        "source": "varnish",
        "ip_version": 4,
        "remote_address": "198.51.100.0/24",
        "direction": "in",
        "sent_bytes": 1_048_921,
        "received_bytes": 421,
        "reordering": 3,
        "mss_bytes": 1448,
        "rtt_smoothed_us": 152_000,
    }
    assert "rtt_smoothed_us" not in rows[1]
    assert "mss_bytes" not in rows[2]
    assert len({row["connection"] for row in rows}) == 3
    assert [line.line for line in done.first_unread] == [4]


def test_varnish_timestamps_take_precedence_over_seconds(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("203.0.113.9\t1795304248.250000\t1795304248.750000\t-\n")
    form = r"%h\t%{VSL:Timestamp:Start[1]}x\t%{VSL:Timestamp:Resp[1]}x\t%b"
    (row,), _ = imported(Varnish(form), tmp_path / "a.log", out=tmp_path / "out")
    assert (row["start_us"], row["end_us"]) == (AT_S * 1_000_000 + 250_000, AT_S * 1_000_000 + 750_000)
    assert (row["duration_us"], row["sent_bytes"]) == (500_000, 0)


def test_a_duration_in_microseconds_takes_precedence_over_one_in_seconds(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("203.0.113.9 2026-11-21T23:37:28+0000 0 204113 204 77\n")
    form = "%h %{%FT%T%z}t %T %{us}T %{ms}T %b"
    (row,), _ = imported(Varnish(form), tmp_path / "a.log", out=tmp_path / "out")
    assert row["duration_us"] == 204_113


def test_the_default_varnishncsa_format_is_read_to_the_second(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text('203.0.113.9 - - [21/Nov/2026:23:37:28 +0000] "GET / HTTP/1.1" 200 77 "-" "x"\n')
    (row,), _ = imported(Varnish(), tmp_path / "a.log", out=tmp_path / "out")
    assert (row["end_us"], row["sent_bytes"]) == (AT_S * 1_000_000, 77)
    assert "duration_us" not in row


def test_a_format_without_fields_is_refused() -> None:
    with pytest.raises(ThalwegError, match="has no field"):
        Varnish("100%% sure")


def test_a_field_of_the_format_may_be_the_algorithm(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("203.0.113.9 1795304248 bbr\n203.0.113.9 1795304248 -\n")
    importer = Varnish("%h %{%s}t %{X-CC}o", mapping(["cc=%{X-CC}o"], None))
    rows, done = imported(importer, tmp_path / "a.log", out=tmp_path / "out")
    assert [row.get("cc") for row in rows] == ["bbr", None]
    assert {what: reason.count for what, reason in done.fallbacks.items()} == {
        "end_us: when the request was received: its duration is unknown": 2
    }
