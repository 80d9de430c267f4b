"""Imports of ss dumps from many kernels, with times in many formats, filtered, wrapped and truncated; absent fields are
null.
"""

import os
import time
from pathlib import Path
from typing import Any

import pytest
from importing import AT_S, imported
from thalweg.records import read
from thalweg.records.imports import Addresses, Imported, Ss

HEAD = "ESTAB      0      0      192.0.2.10:443                198.51.100.7:51234              \n\t "
AT = f"{AT_S}\n"

LINUX_3_10 = (
    "cubic wscale:7,7 rto:208 rtt:6.125/3.5 ato:40 mss:1448 cwnd:10 send 18.9Mbps retrans:0/3 rcv_space:29200\n"
)
LINUX_4_4 = (
    "cubic wscale:7,7 rto:208 rtt:6.125/3.5 ato:40 mss:1448 cwnd:10 ssthresh:7 bytes_acked:612345 bytes_received:2050 "
    "segs_out:451 segs_in:236 send 18.9Mbps lastsnd:40 lastrcv:44 lastack:12 pacing_rate 37.8Mbps retrans:0/3 "
    "rcv_space:29200\n"
)
LINUX_4_9 = (
    "cubic wscale:7,7 rto:208 rtt:6.125/3.5 mss:1448 cwnd:10 bytes_acked:612345 segs_out:451 segs_in:236 "
    "data_segs_out:440 send 18.9Mbps lastsnd:40 pacing_rate 37.8Mbps delivery_rate 11.2Mbps retrans:0/3 "
    "rcv_space:29200 minrtt:5.5\n"
)
LINUX_5_10 = (
    "cubic wscale:7,7 rto:208 rtt:6.125/3.5 mss:1448 pmtu:1500 rcvmss:536 advmss:1448 cwnd:10 bytes_sent:620000 "
    "bytes_acked:612345 segs_out:451 segs_in:236 data_segs_out:440 send 18.9Mbps lastsnd:40 pacing_rate 37.8Mbps "
    "delivery_rate 11.2Mbps delivered:441 busy:900ms rcv_space:29200 rcv_ssthresh:29200 minrtt:5.5 snd_wnd:65535\n"
)
RECEIVER_4_9 = (
    "cubic wscale:7,7 rto:208 rtt:6.125/3.5 ato:40 mss:1448 cwnd:10 bytes_received:700000 segs_out:236 segs_in:500 "
    "data_segs_in:498 send 18.9Mbps lastsnd:40 rcv_space:29200 rcv_ssthresh:64076 minrtt:5.5\n"
)

NEW_COUNTERS = {
    "sent_bytes", "retransmitted_bytes", "segments", "busy_us", "rwnd_limited_us", "sndbuf_limited_us", "ce_packets",
    "reorderings", "rtt_min_us",
}  # fmt: skip


def rows_of(folder: Path, text: str, at_us: int | None = None) -> tuple[list[dict[str, Any]], Imported]:
    (folder / "dump").write_text(text)
    return imported(Ss(at_us), folder / "dump", out=folder / "out", addresses=Addresses("whole"))


def one(folder: Path, fields: str) -> dict[str, Any]:
    (row,), done = rows_of(folder, AT + HEAD + fields)
    assert done.unread == 0
    return row


def test_counters_that_linux_4_4_lacks_are_empty(tmp_path: Path) -> None:
    row = one(tmp_path, LINUX_4_4)
    assert (row["acked_bytes"], row["received_bytes"], row["retransmits"], row["segments_out"]) == (
        612_345,
        2050,
        3,
        451,
    )
    assert not NEW_COUNTERS & row.keys()


def test_counters_that_linux_3_10_lacks_are_empty(tmp_path: Path) -> None:
    row = one(tmp_path, LINUX_3_10)
    assert (row["retransmits"], row["rtt_smoothed_us"], row["cc"]) == (3, 6125, "cubic")
    assert not (NEW_COUNTERS | {"acked_bytes", "received_bytes", "segments_out", "segments_in"}) & row.keys()


def test_counters_that_linux_4_9_lacks_are_empty_and_the_others_zero(tmp_path: Path) -> None:
    row = one(tmp_path, LINUX_4_9)
    assert (row["segments"], row["received_bytes"], row["rtt_min_us"], row["acked_bytes"]) == (440, 0, 5500, 612_345)
    assert not (NEW_COUNTERS - {"segments", "rtt_min_us"}) & row.keys()


def test_absent_counters_of_a_new_kernel_are_zero(tmp_path: Path) -> None:
    row = one(tmp_path, LINUX_5_10)
    zeros = ("retransmitted_bytes", "rwnd_limited_us", "sndbuf_limited_us", "ce_packets", "reorderings", "retransmits")
    assert {name: row[name] for name in zeros} == dict.fromkeys(zeros, 0)
    assert (row["sent_bytes"], row["busy_us"], row["reordering"]) == (620_000, 900_000, 3)


def test_a_receiver_has_zero_bytes_sent_if_counted(tmp_path: Path) -> None:
    row = one(tmp_path, RECEIVER_4_9)
    assert (row["segments"], row["sent_bytes"], row["acked_bytes"], row["busy_us"]) == (0, 0, 0, 0)
    assert row["received_bytes"] == 700_000


def test_a_truncated_line_never_yields_a_wrong_number(tmp_path: Path) -> None:
    fields = LINUX_5_10.rstrip()
    sockets = [HEAD.replace("51234", str(length)) + fields[:length] for length in range(20, len(fields) + 1)]
    rows, _ = rows_of(tmp_path, AT + "\n".join(sockets) + "\n")
    complete = rows[-1]
    assert complete["remote_port"] == len(fields)
    # The prefix `minrtt:5` of `minrtt:5.5` is the only one that cannot be detected as truncated.
    undetectable = fields.index("minrtt:5.5") + len("minrtt:5")
    differing = [
        (row["remote_port"], name)
        for row in rows
        for name, value in row.items()
        if complete.get(name) != value and name not in ("remote_port", "connection")
    ]
    assert differing == [(undetectable, "rtt_min_us")]


def test_a_field_with_a_truncated_name_is_noted(tmp_path: Path) -> None:
    fields = LINUX_5_10.rstrip()
    end = fields.index("bytes_acked:") + len("bytes_ack")
    (row,), done = rows_of(tmp_path, AT + HEAD + fields[:end])
    assert "acked_bytes" not in row
    assert [name for name in done.fallbacks if name.startswith("acked_bytes: ")]


def test_a_truncated_name_that_is_also_a_field_is_noted(tmp_path: Path) -> None:
    fields = LINUX_5_10.rstrip()
    end = fields.index("delivered:") + len("delivered")
    (row,), done = rows_of(tmp_path, AT + HEAD + fields[:end])
    assert "ce_packets" not in row
    assert [name for name in done.fallbacks if name.startswith("ce_packets: ")]


def test_the_last_value_of_a_file_without_a_newline_is_ignored(tmp_path: Path) -> None:
    (row,), done = rows_of(tmp_path, AT + HEAD + LINUX_4_9.rstrip()[:-2])
    assert "rtt_min_us" not in row
    assert row["acked_bytes"] == 612_345
    assert [name for name in done.fallbacks if name.startswith("rtt_min_us: ")]


@pytest.mark.parametrize("fields", [LINUX_3_10, LINUX_4_4, LINUX_4_9, LINUX_5_10])
@pytest.mark.parametrize("width", [60, 79, 80, 81, 100, 120, 132])
def test_text_wrapped_by_a_terminal_is_joined_or_counted(tmp_path: Path, fields: str, width: int) -> None:
    complete = one(tmp_path / "whole" if (tmp_path / "whole").mkdir() is None else tmp_path, fields)
    text = HEAD + fields
    lines = [line[at : at + width] for line in text.splitlines() for at in range(0, len(line), width)]
    (row,), done = rows_of(tmp_path, AT + "\n".join(lines) + "\n")
    assert (row, done.unread) == (complete, 0)


def test_ambiguously_wrapped_text_is_counted(tmp_path: Path) -> None:
    head = "ESTAB 0 0 192.0.2.10:443 198.51.100.7:51235\n\t "
    lines = LINUX_4_4.replace("segs_out:451 segs_in", "segs_out:4\n51 segs_in").replace("cubic", "ecn\nseen cubic")
    rows, done = rows_of(tmp_path, AT + HEAD + LINUX_4_4 + head + "ts sack ecn cubic lp\n" + lines)
    assert [row["segments_out"] for row in rows] == [451]
    assert done.unread >= 1


@pytest.mark.parametrize("prefix", ["", "tcp    "])
def test_a_dump_of_one_state_is_read_without_the_state_column(tmp_path: Path, prefix: str) -> None:
    heading = f"{'Netid ' if prefix else ''}Recv-Q Send-Q Local Address:Port  Peer Address:Port Process\n"
    socket = f"{prefix}0      1448     192.0.2.10:443   198.51.100.7:51234\n\t {LINUX_5_10}"
    listening = f"{prefix}0      128     192.0.2.10:443   0.0.0.0:*\n\t cubic rto:1000 mss:536 cwnd:10\n"
    rows, done = rows_of(tmp_path, AT + heading + socket + listening + socket.replace("51234", "51235"))
    assert [(row["kind"], row["sent_bytes"], row["remote_port"]) for row in rows] == [
        ("interim", 620_000, 51234),
        ("interim", 620_000, 51235),
    ]
    assert (done.unread, done.left_out.counts()) == (0, {"headings": 1, "listening sockets": 1})
    assert [reason.count for what, reason in done.fallbacks.items() if "no column State" in what] == [2]


@pytest.mark.parametrize(
    "line",
    [
        "Sat Nov 21 23:37:28 UTC 2026",
        "Sat Nov 21 11:37:28 PM UTC 2026",
        "Sun Nov 22 00:37:28 CET 2026",
        "Sat 21 Nov 2026 11:37:28 PM UTC",
        "Sat 21 Nov 23:37:28 GMT 2026",
        "Sat Nov 21 20:37:28 -03 2026",
        "Sat, 21 Nov 2026 23:37:28 +0000",
        "Sun, 22 Nov 2026 00:37:28 +0100",
        "=== 1795304248 ===",
        "--- 1795304248.000000000 ---",
        "# time: 1795304248",
        "1795304248000",
        "1795304248000000000",
        "TIME: 2026-11-21T23:37:28+00:00",
        "TIME: 2026-11-21 23:37:28 UTC",
        "date=2026-11-21T23:37:28Z",
        "[2026-11-21 23:37:28,000000000+00:00]",
        "### sample 3 at 2026-11-21T23:37:28Z ###",
        "2026-11-21_23:37:28",
        "20261121233728",
        "20261121T233728Z",
        "21.11.2026 23:37:28",
        "2026-11-21T23:37:28.000",
        "Every 60.0s: ss -tin          web1: Sat Nov 21 23:37:28 2026",
    ],
)
def test_a_timestamp_line_applies_to_following_lines(tmp_path: Path, line: str) -> None:
    (row,), done = rows_of(tmp_path, f"{line}\n{HEAD}{LINUX_4_9}")
    assert (row["end_us"], done.unread) == (AT_S * 1_000_000, 0)
    has_zone = any(zone in line for zone in ("UTC", "CET", "GMT", "00", "Z", "-03", "1795304248"))
    assert has_zone or [what for what in done.fallbacks if "no time zone" in what]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("23:37:28", "a time without a date"),
        (" 23:37:28 up 3 days,  1:02,  2 users".strip(), "not a time"),
        ("Nov 21 23:37:28", "a time without a year"),
        ("Sat Nov 21 23:37:28 IST 2026", "a time zone that is unknown or has several meanings"),
        ("Sam. 21 nov. 2026 23:37:28 CET", "not a time"),
        ("11/12/2026 23:37:28", "a date with several meanings"),
        ("Mon Nov 21 23:37:28 UTC 2026", "a date whose day of the week is wrong"),
        ("2026-11-21T23:37:28Z to 2026-11-21T23:38:28Z", "a line with several times"),
    ],
)
def test_connections_after_a_malformed_time_are_counted(tmp_path: Path, line: str, why: str) -> None:
    rows, done = rows_of(tmp_path, f"{AT}{HEAD}{LINUX_4_9}{line}\n{HEAD}{LINUX_4_9}")
    assert [row["end_us"] for row in rows] == [AT_S * 1_000_000]
    assert done.unread == 2
    assert why in done.first_unread[0].why
    assert done.first_unread[1].why == "the time in the line before it cannot be read"


def test_the_time_of_the_file_is_reported_as_a_fallback(tmp_path: Path) -> None:
    (tmp_path / "dump").write_text(HEAD + LINUX_4_9)
    os.utime(tmp_path / "dump", ns=(0, AT_S * 1_000_000_000))
    (row,), done = imported(Ss(), tmp_path / "dump", out=tmp_path / "out")
    assert row["end_us"] == AT_S * 1_000_000
    (reason,) = done.fallbacks
    assert "when the file was last written" in reason


@pytest.mark.parametrize(
    ("peer", "address", "port"),
    [
        ("[2001:db8::1]:443", "2001:db8::1", 443),
        ("2001:db8::1:443", "2001:db8::1", 443),
        ("[fe80::1%eth0]:443", "fe80::1", 443),
        ("[fe80::1]%eth0:443", "fe80::1", 443),
        ("192.0.2.9%eth0:443", "192.0.2.9", 443),
        ("[::ffff:192.0.2.9]:443", "192.0.2.9", 443),
        ("::ffff:192.0.2.9:443", "192.0.2.9", 443),
    ],
)
def test_addresses_of_all_versions_of_ss_are_read(tmp_path: Path, peer: str, address: str, port: int) -> None:
    (row,), _ = rows_of(tmp_path, AT + HEAD.replace("198.51.100.7:51234", peer) + LINUX_4_9)
    assert (row["remote_address"], row["remote_port"]) == (address, port)


def test_service_names_leave_the_port_empty_and_are_reported(tmp_path: Path) -> None:
    (row,), done = rows_of(tmp_path, AT + HEAD.replace(":443", ":https") + LINUX_4_9)
    assert "local_port" not in row
    assert [what for what in done.fallbacks if "service name" in what]


@pytest.mark.parametrize(("options", "ecn"), [("", None), ("ts sack ", False), ("ts sack ecn ecnseen ", True)])
def test_whether_ecn_was_negotiated_is_known_only_if_ss_prints_options(
    tmp_path: Path, options: str, ecn: bool | None
) -> None:
    assert one(tmp_path, options + LINUX_5_10).get("ecn") is ecn


def test_samples_without_timestamps_keep_their_order(tmp_path: Path) -> None:
    samples = [HEAD + LINUX_5_10.replace("bytes_sent:620000", f"bytes_sent:{620_000 + number}") for number in range(3)]
    rows, _ = rows_of(tmp_path, "".join(samples), AT_S * 1_000_000)
    assert [row["end_us"] - AT_S * 1_000_000 for row in rows] == [0, 1, 2]
    records = read([tmp_path / "out"])
    (kept,) = records.collect(records.rows.select("sent_bytes"))
    assert kept["sent_bytes"].to_list() == [620_002]


def test_the_output_of_one_line_per_socket_is_read(tmp_path: Path) -> None:
    text = f"0 0 192.0.2.10:443 198.51.100.7:51234 {LINUX_5_10}"
    rows, done = rows_of(tmp_path, AT + text + "ESTAB " + text.replace("51234", "51235"))
    assert [row["sent_bytes"] for row in rows] == [620_000, 620_000]
    assert done.unread == 0


def test_a_dump_in_a_container_log_is_read_without_its_prefix(tmp_path: Path) -> None:
    prefix = "2026-11-21T23:37:28.123456789Z stdout F "
    text = "".join(f"{prefix}{line}\n" for line in (AT + HEAD + LINUX_5_10).splitlines())
    (row,), done = rows_of(tmp_path, text)
    assert (row["end_us"], row["sent_bytes"], done.unread) == (AT_S * 1_000_000, 620_000, 0)


def test_an_uptime_line_does_not_change_the_time(tmp_path: Path) -> None:
    (row,), done = rows_of(tmp_path, f"{AT} 23:37:28 up 3 days,  1:02,  2 users\n{HEAD}{LINUX_5_10}")
    assert (row["end_us"], done.unread) == (AT_S * 1_000_000, 1)


def test_a_number_continued_on_an_indented_line_is_ignored(tmp_path: Path) -> None:
    text = HEAD + LINUX_5_10
    torn = text.replace("bytes_acked:612345", "bytes_acked:612\n   345").replace("51234", "51235")
    rows, done = rows_of(tmp_path, AT + text + torn)
    assert ([row["remote_port"] for row in rows], done.unread) == ([51234], 1)


def test_text_wrapped_at_spaces_is_joined(tmp_path: Path) -> None:
    fields = LINUX_5_10.replace(" cwnd", "\ncwnd").replace(" busy", " \nbusy").replace(" minrtt", "\n   minrtt")
    assert one(tmp_path, fields)["acked_bytes"] == 612_345


@pytest.mark.parametrize(
    "text",
    ["mss:1448\nmss:1448 " * 20_000, "\n\t mss:1448" * 50_000, 'users:(("' * 50_000, "\n" + "Tue Nov 14 " * 50_000],
)
def test_adversarial_dumps_are_read_in_linear_time(tmp_path: Path, text: str) -> None:
    began = time.monotonic()
    rows, _ = rows_of(tmp_path, f"{AT}{HEAD}{LINUX_4_9}{HEAD}cubic rto:208 rtt:6/3 {text}\n")
    assert rows
    assert time.monotonic() - began < 30
