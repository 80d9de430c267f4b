"""Imports of ss dumps, and of the events of ss -E."""

import os
from pathlib import Path

from importing import AT_S, SAMPLES, imported
from thalweg.records import read
from thalweg.records.imports import Addresses, Ss

DUMP = SAMPLES / "ss.txt"
LINE = "ESTAB 0 0 192.0.2.1:443 198.51.100.7:5 sk:7\n\t cubic rto:204 rtt:10/5 bytes_sent:4000 segs_out:9 minrtt:9\n"


def test_an_open_connection_has_every_counter_that_ss_prints(tmp_path: Path) -> None:
    rows, _ = imported(Ss(), DUMP, out=tmp_path, addresses=Addresses("whole"))
    assert rows[0] == {
        "end_us": (AT_S - 28) * 1_000_000,
        "connection": 0x1A2B,
        "kind": "interim",
        "source": "ss",
        "ip_version": 4,
        "local_address": "192.0.2.1",
        "local_port": 443,
        "remote_address": "198.51.100.7",
        "remote_port": 51234,
        "cgroup": "/system.slice/nginx.service",
        "cc": "bbr",
        "sent_bytes": 500_000,
        "acked_bytes": 480_000,
        "received_bytes": 421,
        "retransmitted_bytes": 2896,
        "segments": 346,
        "retransmits": 2,
        "segments_out": 350,
        "segments_in": 180,
        "reordering": 12,
        "reorderings": 3,
        "ecn": True,
        "ce_packets": 0,
        "mss_bytes": 1448,
        "rtt_min_us": 21_500,
        "rtt_smoothed_us": 23_400,
        "delivery_rate_bps": 12_000_000,
        "delivery_rate_app_limited": True,
        "busy_us": 420_000,
        "rwnd_limited_us": 12_000,
        "sndbuf_limited_us": 0,
        "busy_goodput_bps": 8 * 480_000 / 0.42,
        "bbr_bw_bps": 12_345_678,
        "bbr_min_rtt_us": 21_500,
    }


def test_a_round_trip_time_of_bbr_without_a_sample_is_empty(tmp_path: Path) -> None:
    times = {"21.5": 21_500, "4.29497e+06": None, "4294967.295": None}
    for number, text in enumerate(times):
        (tmp_path / f"{number}.txt").write_text(f"1700000000\n{LINE.rstrip()} bbr:(bw:0bps,mrtt:{text}) minrtt:9\n")
    found = [
        imported(Ss(), tmp_path / f"{number}.txt", out=tmp_path / f"out{number}")[0][0].get("bbr_min_rtt_us")
        for number in range(len(times))
    ]
    assert found == list(times.values())


def test_counters_missing_on_older_kernels_are_empty(tmp_path: Path) -> None:
    rows, _ = imported(Ss(), DUMP, out=tmp_path)
    older = rows[1]
    assert (older["cc"], older["segments"], older["acked_bytes"], older["retransmits"]) == ("cubic", 25, 3001, 0)
    assert not {"sent_bytes", "retransmitted_bytes", "busy_us", "busy_goodput_bps", "ce_packets"} & older.keys()


def test_a_close_event_has_the_algorithm_of_an_earlier_dump(tmp_path: Path) -> None:
    rows, _ = imported(Ss(), DUMP, out=tmp_path)
    closed = rows[3]
    assert (closed["kind"], closed["cc"]) == ("close", "bbr")
    assert closed["end_us"] == 1_795_304_310_250_000
    # 647,106 bytes acknowledged minus 1 for the SYN and 1 for the FIN: all bytes sent, without retransmissions.
    assert closed["acked_bytes"] == 650_000 - 2896
    assert closed["ip_version"] == 4


def test_later_dumps_of_a_connection_replace_earlier_ones(tmp_path: Path) -> None:
    imported(Ss(), DUMP, out=tmp_path)
    records = read([tmp_path])
    (rows,) = records.collect(records.rows.sort("connection").select("connection", "kind"))
    assert rows.rows() == [(0x1A2B, "close"), (0x1A2C, "interim")]


def test_other_sockets_are_skipped_with_a_reason_and_truncated_lines_reported(tmp_path: Path) -> None:
    _, done = imported(Ss(), DUMP, out=tmp_path)
    assert done.left_out.counts() == {
        "headings": 1,
        "listening sockets": 2,
        "connections in TIME-WAIT, which have no TCP information": 1,
        "sockets that are not TCP": 1,
    }
    assert [(line.line, line.why) for line in done.first_unread] == [
        (18, "two queues and two addresses should follow the state")
    ]


def test_a_dump_without_a_time_has_the_file_time_or_the_configured_time(tmp_path: Path) -> None:
    (tmp_path / "dump").write_text(LINE)
    os.utime(tmp_path / "dump", ns=(0, AT_S * 1_000_000_000))
    (row,), _ = imported(Ss(), tmp_path / "dump", out=tmp_path / "out")
    assert row["end_us"] == AT_S * 1_000_000
    (row,), _ = imported(Ss(AT_S * 1_000_000 + 5), tmp_path / "dump", out=tmp_path / "out")
    assert row["end_us"] == AT_S * 1_000_000 + 5


def test_the_peer_port_is_kept_only_with_full_addresses(tmp_path: Path) -> None:
    rows, _ = imported(Ss(), DUMP, out=tmp_path)
    assert all("remote_port" not in row for row in rows)


def test_without_cookies_endpoints_identify_connections(tmp_path: Path) -> None:
    other = LINE.replace("7:5", "7:6")
    (tmp_path / "dump").write_text((LINE + other + LINE).replace(" sk:7", ""))
    rows, _ = imported(Ss(AT_S * 1_000_000), tmp_path / "dump", out=tmp_path / "out")
    one, two, again = (row["connection"] for row in rows)
    assert one == again != two


def test_host_names_are_refused_with_the_required_ss_option(tmp_path: Path) -> None:
    (tmp_path / "dump").write_text(LINE + LINE.replace("198.51.100.7", "client.example.org"))
    _, done = imported(Ss(AT_S * 1_000_000), tmp_path / "dump", out=tmp_path / "out")
    assert "-n" in done.first_unread[0].why


def test_a_line_with_impossible_counters_is_malformed(tmp_path: Path) -> None:
    wrong = [LINE.replace("sk:7", "sk:1" + "0" * 16), LINE.replace("\n\t", "\n\t bytes_retrans:9000 bytes_acked:5")]
    (tmp_path / "dump").write_text("".join([LINE, *wrong]))
    rows, done = imported(Ss(AT_S * 1_000_000), tmp_path / "dump", out=tmp_path / "out")
    assert len(rows) == 1
    assert [line.why for line in done.first_unread] == [
        "a cookie with too many digits: `10000000000000000`",
        "acked_bytes is out of range: -5000",
    ]
