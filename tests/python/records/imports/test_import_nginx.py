"""Imports of nginx's access logs."""

from pathlib import Path

import pytest
from importing import AT_S, SAMPLES, imported
from thalweg.errors import ThalwegError
from thalweg.records.imports import Addresses, Nginx, log_format, mapping

CONFIG = SAMPLES / "nginx.conf"
LOG = SAMPLES / "nginx-tcp.log"


def test_each_request_is_a_transfer_with_what_nginx_knows(tmp_path: Path) -> None:
    rows, done = imported(Nginx(log_format(CONFIG, "tcp")), LOG, out=tmp_path)
    assert rows[0] == {
        "end_us": AT_S * 1_000_000 + 123_000,
        "start_us": AT_S * 1_000_000 - 81_000,
        "duration_us": 204_000,
        "connection": 17,
        "kind": "transfer",
        "transfer": 0,
        "source": "nginx",
        "ip_version": 4,
        "local_address": "192.0.2.0/24",
        "local_port": 443,
        "remote_address": "198.51.100.0/24",
        "direction": "in",
        "sent_bytes": 1_048_921,
        "received_bytes": 421,
        "rtt_smoothed_us": 23_456,
    }
    assert [row["transfer"] for row in rows] == [0, 1, 0, 0]
    assert [row["ip_version"] for row in rows] == [4, 4, 4, 6]
    assert "rtt_smoothed_us" not in rows[2]
    assert rows[3]["remote_address"] == "2001:db8:1::/48"
    assert [(line.line, done.unread) for line in done.first_unread] == [(5, 1)]


def test_the_nginx_clock_yields_no_completion_time(tmp_path: Path) -> None:
    rows, _ = imported(Nginx(log_format(CONFIG, "tcp")), LOG, out=tmp_path)
    assert all("fct_us" not in row and "goodput_bps" not in row and "acked_bytes" not in row for row in rows)


def test_the_log_time_is_the_fallback(tmp_path: Path) -> None:
    line = '203.0.113.9 - - [22/Nov/2026:00:37:31 +0100] "GET / HTTP/1.1" 200 44321 "-" "x"\n'
    (tmp_path / "a.log").write_text(line)
    (row,), _ = imported(Nginx(), tmp_path / "a.log", out=tmp_path / "out")
    assert row["end_us"] == (AT_S + 3) * 1_000_000
    assert row["sent_bytes"] == 44_321
    assert "start_us" not in row


def test_json_lines_are_read_by_their_format(tmp_path: Path) -> None:
    line = r'{"time": "2026-11-21T23:37:28+00:00", "client": "203.0.113.9", "request": "GET /\"a\", b", '
    line += '"sent": 7, "took": 0.5, "rtt": ""}'
    (tmp_path / "a.log").write_text(line + "\n")
    (row,), _ = imported(Nginx(log_format(CONFIG, "json")), tmp_path / "a.log", out=tmp_path / "out")
    assert (row["end_us"], row["sent_bytes"], row["duration_us"]) == (AT_S * 1_000_000, 7, 500_000)
    assert "rtt_smoothed_us" not in row


def test_arbitrary_request_text_is_parsed_correctly_and_in_linear_time(tmp_path: Path) -> None:
    evil = " ".join(["[21/Nov/2026:23:37:28 +0000]", "200 5 1.0", '" '] * 3000)
    line = f'203.0.113.9 - - [22/Nov/2026:00:37:31 +0100] "GET /{evil} HTTP/1.1" 200 44321 "-" "x"\n'
    (tmp_path / "a.log").write_text(line * 3 + '203.0.113.9 - - [22/Nov/2026:00:37:31 +0100] "-" 400 0 "-" "-"\n')
    rows, done = imported(Nginx(), tmp_path / "a.log", out=tmp_path / "out")
    assert (len(rows), done.unread) == (1, 3)


def test_a_format_that_cannot_be_parsed_is_refused() -> None:
    with pytest.raises(ThalwegError, match="there is no text between"):
        Nginx("$bytes_sent$request_time $msec")
    with pytest.raises(ThalwegError, match="has no variable"):
        Nginx("combined")


def test_a_configuration_with_several_formats_requires_a_choice(tmp_path: Path) -> None:
    with pytest.raises(ThalwegError, match="3 formats") as caught:
        log_format(CONFIG, None)
    assert caught.value.found == "main, tcp, json"
    with pytest.raises(ThalwegError, match="no log_format `retired`"):
        log_format(CONFIG, "retired")
    (tmp_path / "one.conf").write_text("log_format only '$msec x';")
    assert log_format(tmp_path / "one.conf", None) == "$msec x"


def test_full_addresses_keep_the_peer_port(tmp_path: Path) -> None:
    importer = Nginx(log_format(CONFIG, "tcp"))
    rows, _ = imported(importer, LOG, out=tmp_path, addresses=Addresses("whole"))
    assert [(row["remote_address"], row["remote_port"]) for row in rows[2:]] == [
        ("203.0.113.9", 40000),
        ("2001:db8:1:2::3", 61000),
    ]
    assert rows[0]["local_address"] == "192.0.2.1"


def test_the_configuration_is_read_as_nginx_reads_it(tmp_path: Path) -> None:
    (tmp_path / "a.conf").write_text(
        r"""http {
    # log_format commented '$status';
    log_format ltsv 'time:$time_iso8601\thost:$remote_addr\t' "size:${bytes_sent}\t" ua:\"$http_user_agent\"\\\d;
    server { listen 80; location ~ \.php$ { return 404; } }
}"""
    )
    form = log_format(tmp_path / "a.conf", None)
    assert form == 'time:$time_iso8601\thost:$remote_addr\tsize:${bytes_sent}\tua:"$http_user_agent"\\\\d'
    (tmp_path / "a.log").write_text('time:2026-11-21T23:37:28+00:00\thost:203.0.113.5\tsize:7\tua:"x y"\\\\d\n')
    (row,), _ = imported(Nginx(form), tmp_path / "a.log", out=tmp_path / "out")
    assert (row["sent_bytes"], row["remote_address"]) == (7, "203.0.113.0/24")


def test_conflicting_formats_of_one_name_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.conf").write_text("http { log_format tcp '$msec'; } stream { log_format tcp '$msec $protocol'; }")
    with pytest.raises(ThalwegError, match="several different log_formats `tcp`"):
        log_format(tmp_path / "a.conf", None)


STREAM = (
    "$remote_addr:$remote_port [$time_local] $protocol $status $bytes_sent $bytes_received $session_time $upstream_addr"
)


def test_a_line_of_the_stream_module_is_a_connection(tmp_path: Path) -> None:
    line = "{} [21/Nov/2026:23:37:28 +0000] {} 200 1000 300 2.500 10.0.0.1:80, 10.0.0.2:80\n"
    (tmp_path / "a.log").write_text(line.format("2001:db8::1:50123", "TCP") + line.format("203.0.113.5:53", "UDP"))
    (row,), done = imported(Nginx(STREAM), tmp_path / "a.log", out=tmp_path / "out", addresses=Addresses("whole"))
    assert (row["kind"], row["sent_bytes"], row["received_bytes"]) == ("close", 1000, 300)
    assert (row["remote_address"], row["remote_port"]) == ("2001:db8::1", 50123)
    assert (row["start_us"], row["duration_us"]) == (AT_S * 1_000_000 - 2_500_000, 2_500_000)
    assert "transfer" not in row
    assert done.left_out.counts() == {"sessions that are not TCP": 1}


def test_a_variable_of_the_format_may_be_the_algorithm(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("1795304248.000 bbr 21.5\n1795304248.000 - -\n")
    form = "$msec $sent_http_x_cc $sent_http_x_rtt"
    importer = Nginx(form, mapping(["cc=$sent_http_x_cc", "rtt_min_us=sent_http_x_rtt:ms"], None))
    rows, _ = imported(importer, tmp_path / "a.log", out=tmp_path / "out", constants={"cc": "cubic"})
    assert [(row["cc"], row.get("rtt_min_us")) for row in rows] == [("bbr", 21_500), ("cubic", None)]
    with pytest.raises(ThalwegError, match="has no field `\\$cc`"):
        Nginx(form, mapping(["cc=$cc"], None))
