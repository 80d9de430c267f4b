"""Imports of M-Lab's NDT rows."""

import gzip
from pathlib import Path

import pytest
from importing import AT_S, SAMPLES, imported
from thalweg.errors import ThalwegError
from thalweg.records.imports import Addresses, Ndt


def test_a_row_with_a_time_series_yields_counters_and_bytes_by_second(tmp_path: Path) -> None:
    rows, _ = imported(Ndt(), SAMPLES / "ndt7.jsonl", out=tmp_path)
    first = {name: value for name, value in rows[0].items() if name != "connection"}
    assert first == {
        "start_us": AT_S * 1_000_000 + 500_000,
        "end_us": (AT_S + 10) * 1_000_000 + 512_345,
        "duration_us": 10_012_345,
        "kind": "close",
        "source": "ndt",
        "machine": "mlab1-lga05",
        "ip_version": 4,
        "local_address": "192.0.2.0/24",
        "local_port": 443,
        "remote_address": "198.51.100.0/24",
        "direction": "in",
        "cc": "bbr",
        "sent_bytes": 12_100_000,
        "acked_bytes": 12_000_000,
        "received_bytes": 800,
        "retransmitted_bytes": 2896,
        "segments": 8287,
        "retransmits": 2,
        "segments_out": 8292,
        "segments_in": 300,
        "reordering": 3,
        "reorderings": 0,
        "ecn": False,
        "ce_packets": 0,
        "mss_bytes": 1448,
        "rtt_min_us": 21_500,
        "rtt_smoothed_us": 24_000,
        "delivery_rate_bps": 10_000_000,
        "delivery_rate_app_limited": False,
        "busy_us": 9_980_000,
        "rwnd_limited_us": 0,
        "sndbuf_limited_us": 0,
        "busy_goodput_bps": pytest.approx(8 * 12_000_000 / 9.98),
        "acked_1s_bytes": 1_200_000,
        "acked_3s_bytes": 3_600_000,
        "acked_10s_bytes": 12_000_000,
        "bbr_bw_bps": 10_000_000,
        "bbr_min_rtt_us": 21_500,
    }


def test_a_row_of_the_unified_view_yields_its_summary(tmp_path: Path) -> None:
    rows, done = imported(Ndt(), SAMPLES / "ndt7.jsonl", out=tmp_path, addresses=Addresses("whole"))
    unified = rows[1]
    assert (unified["cc"], unified["rtt_min_us"], unified["busy_goodput_bps"]) == ("cubic", 8250, 42.5e6)
    assert (unified["remote_address"], unified["remote_port"]) == ("2001:db8:1:2::3", 61000)
    assert unified["end_us"] == (AT_S + 120) * 1_000_000
    assert not {"acked_bytes", "retransmits", "fct_us", "goodput_bps", "duration_us"} & unified.keys()
    assert done.left_out.counts() == {"uploads: their sender is the client": 1}
    assert [line.line for line in done.first_unread] == [4, 5]


def test_a_server_file_yields_the_same_connection(tmp_path: Path) -> None:
    rows, _ = imported(Ndt(), SAMPLES / "ndt7.jsonl", out=tmp_path / "a")
    compressed = tmp_path / "ndt7-download.json.gz"
    compressed.write_bytes(gzip.compress((SAMPLES / "ndt-server.json").read_bytes()))
    (own,), _ = imported(Ndt(), compressed, out=tmp_path / "b")
    summary = {"cc", "machine"}
    assert own == {name: value for name, value in rows[0].items() if name not in summary}


def test_csv_with_nested_or_flat_names_is_read(tmp_path: Path) -> None:
    (row,), done = imported(Ndt(), SAMPLES / "ndt7.csv", out=tmp_path)
    assert (row["cc"], row["rtt_min_us"], row["busy_goodput_bps"]) == ("bbr", 12_500, 100.25e6)
    assert (row["remote_address"], row["machine"]) == ("198.51.100.0/24", "lga05")
    assert [(line.line, "neither a throughput" in line.why) for line in done.first_unread] == [(3, True)]


def test_a_list_of_rows_is_read_row_by_row(tmp_path: Path) -> None:
    lines = (SAMPLES / "ndt7.jsonl").read_text().splitlines()
    (tmp_path / "list.json").write_text("[\n" + ",\n".join([lines[0], lines[2]]) + "\n]")
    rows, _ = imported(Ndt(), tmp_path / "list.json", out=tmp_path / "out")
    assert [row["cc"] for row in rows] == ["bbr", "cubic"]


def test_a_truncated_file_is_an_error_and_leaves_no_files(tmp_path: Path) -> None:
    compressed = gzip.compress((SAMPLES / "ndt7.jsonl").read_bytes())
    (tmp_path / "cut.gz").write_bytes(compressed[: len(compressed) // 2])
    with pytest.raises(ThalwegError, match="is damaged"):
        imported(Ndt(), tmp_path / "cut.gz", out=tmp_path / "out" / "deep")
    assert not (tmp_path / "out").exists()
