"""Imports of iperf3 results, as JSON and as a stream of JSON."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from importing import AT_S, imported
from thalweg.errors import ThalwegError
from thalweg.records.imports import Addresses, Iperf3

SENDER = {
    "socket": 5, "start": 0, "end": 10.5, "seconds": 10.5, "bytes": 13_000_000, "bits_per_second": 9_904_761.9,
    "retransmits": 17, "max_snd_cwnd": 200_000, "max_rtt": 45_000, "min_rtt": 21_500, "mean_rtt": 23_400,
    "sender": True,
}  # fmt: skip
RECEIVER = {"socket": 5, "seconds": 10.6, "bytes": 12_500_000, "bits_per_second": 9_433_962.2, "sender": True}
TEST: dict[str, Any] = {
    "start": {
        "connected": [
            {"socket": 5, "local_host": "192.0.2.1", "local_port": 50000, "remote_host": "198.51.100.7",
             "remote_port": 5201},
            {"socket": 7, "local_host": "2001:db8::1", "local_port": 50002, "remote_host": "2001:db8::7",
             "remote_port": 5201},
        ],
        "timestamp": {"time": "Sat, 21 Nov 2026 23:37:28 GMT", "timesecs": AT_S},
        "connecting_to": {"host": "198.51.100.7", "port": 5201},
        "cookie": "abc",
        "test_start": {"protocol": "TCP", "num_streams": 1, "omit": 0, "reverse": 0, "bidir": 0, "target_bitrate": 0},
    },
    "intervals": [],
    "end": {
        "streams": [{"sender": SENDER, "receiver": RECEIVER}],
        "sum_sent": {"bytes": 99, "retransmits": 99},
        "sender_tcp_congestion": "bbr",
        "receiver_tcp_congestion": "cubic",
    },
}  # fmt: skip


def rows_of(folder: Path, *tests: Any, text: str = "") -> list[dict[str, Any]]:
    (folder / "a.json").write_text(text or "\n".join(json.dumps(test, indent=1) for test in tests))
    return imported(Iperf3(), folder / "a.json", out=folder / "out", addresses=Addresses("whole"))[0]


def changed(**settings: Any) -> dict[str, Any]:
    test = copy.deepcopy(TEST)
    test["start"]["test_start"] |= settings
    return test


def test_a_stream_is_a_connection_with_the_values_of_its_sender(tmp_path: Path) -> None:
    (row,) = rows_of(tmp_path, TEST)
    del row["connection"]
    assert row == {
        "end_us": AT_S * 1_000_000 + 10_500_000,
        "start_us": AT_S * 1_000_000,
        "duration_us": 10_500_000,
        "kind": "close",
        "source": "iperf3",
        "ip_version": 4,
        "local_address": "192.0.2.1",
        "local_port": 50000,
        "remote_address": "198.51.100.7",
        "remote_port": 5201,
        "direction": "out",
        "cc": "bbr",
        "sent_bytes": 13_000_000,
        "acked_bytes": 12_500_000,
        "retransmits": 17,
        "rtt_min_us": 21_500,
        "rtt_smoothed_us": 23_400,
        "busy_goodput_bps": 9_433_962.2,
    }


def test_each_stream_of_a_test_in_both_directions_is_a_row_of_its_sender(tmp_path: Path) -> None:
    test = changed(bidir=1)
    other = SENDER | {"socket": 7, "sender": False, "min_rtt": 0, "mean_rtt": 0, "bytes": 7, "retransmits": -1}
    test["end"]["streams"].append({"sender": other, "receiver": RECEIVER | {"bytes": 6}})
    ours, theirs = rows_of(tmp_path, test)
    assert (ours["local_address"], ours["direction"], ours["sent_bytes"]) == ("192.0.2.1", "out", 13_000_000)
    assert (theirs["local_address"], theirs["local_port"], theirs["direction"]) == ("2001:db8::7", 5201, "in")
    assert (theirs["sent_bytes"], theirs["acked_bytes"], theirs["ip_version"]) == (7, 6, 6)
    assert not {"rtt_min_us", "rtt_smoothed_us", "retransmits", "cc"} & theirs.keys()
    assert "cc" not in ours


def test_a_reversed_test_of_an_old_version_is_a_row_of_the_server(tmp_path: Path) -> None:
    test = changed(reverse=1)
    for side in test["end"]["streams"][0].values():
        del side["sender"]
    (row,) = rows_of(tmp_path, test)
    assert (row["local_address"], row["direction"], row["cc"], row["retransmits"]) == ("198.51.100.7", "in", "bbr", 17)
    assert "rtt_min_us" not in row


def test_bytes_not_reported_by_the_peer_are_empty(tmp_path: Path) -> None:
    test = changed()
    test["end"]["streams"][0]["receiver"]["bytes"] = 0
    (row,) = rows_of(tmp_path, test)
    assert not {"acked_bytes", "busy_goodput_bps"} & row.keys()
    assert row["sent_bytes"] == 13_000_000


def test_a_limited_sender_has_no_path_rate(tmp_path: Path) -> None:
    (row,) = rows_of(tmp_path, changed(target_bitrate=1_000_000))
    assert "busy_goodput_bps" not in row
    old = changed()
    del old["start"]["test_start"]["target_bitrate"]
    (row,) = rows_of(tmp_path, old)
    assert "busy_goodput_bps" not in row


def test_a_stream_of_json_is_read_like_a_whole_test(tmp_path: Path) -> None:
    events = [
        {"event": "start", "data": TEST["start"]},
        {"event": "interval", "data": {}},
        {"event": "end", "data": TEST["end"]},
    ]
    (tmp_path / "whole").mkdir()
    expected = rows_of(tmp_path / "whole", TEST)
    assert rows_of(tmp_path, text="\n".join(json.dumps(event) for event in [*events, events[0]])) == expected


def test_failed_and_non_tcp_tests_are_counted(tmp_path: Path) -> None:
    failed = {"start": TEST["start"], "end": {}, "error": "unable to connect\x1b[2J"}
    (tmp_path / "a.json").write_text(
        "\n".join(json.dumps(result) for result in (TEST, changed(protocol="UDP"), failed))
    )
    rows, done = imported(Iperf3(), tmp_path / "a.json", out=tmp_path / "out")
    assert (len(rows), done.left_out.counts()) == (1, {"tests of other protocols than TCP": 1})
    assert [line.why for line in done.first_unread] == [r"the test ended with an error: `unable to connect\x1b[2J`"]


@pytest.mark.parametrize("cut", [1, 40, 400])
def test_a_truncated_result_leaves_no_files(tmp_path: Path, cut: int) -> None:
    with pytest.raises(ThalwegError, match="not JSON"):
        rows_of(tmp_path, text=json.dumps(TEST)[:-cut])
    assert not (tmp_path / "out").exists()
