"""Imports of logs with prefixes of other programs: each line is imported or counted."""

import gzip
import json
from pathlib import Path

import pytest
from importing import AT_S, imported
from thalweg.records.imports import Addresses, Nginx

LINE = '{} - - [21/Nov/2026:23:37:28 +0000] "GET /a HTTP/1.1" 200 1514283 "-" "x"'

PREFIXES = {
    "containerd": "2026-11-21T23:37:28.123456789Z stdout F {}",
    "containerd tags": "2026-11-21T23:37:28.123456789+00:00 stdout F:x {}",
    "docker timestamps": "2026-11-21T23:37:28.123456789Z {}",
    "docker compose": "web-1  | {}",
    "syslog": "Nov 21 23:37:28 web1 nginx: {}",
    "syslog with a process": "<190>Nov  1 23:37:28 web1 nginx[17]: {}",
    "syslog without a host": "<190>Nov 21 23:37:28 nginx: {}",
    "rsyslog": "2026-11-21T23:37:28.123456+00:00 web1 nginx: {}",
    "journalctl short-iso": "2026-11-21T23:37:28+0000 web1 nginx[17]: {}",
    "RFC 5424": '<190>1 2026-11-21T23:37:28.1Z web1 nginx 17 - [a@1 b="]"] {}',
    "RFC 5424 without data": "<190>1 2026-11-21T23:37:28.1Z web1 nginx 17 - - {}",
}


@pytest.mark.parametrize("name", PREFIXES)
def test_a_prefix_is_not_part_of_the_address(tmp_path: Path, name: str) -> None:
    (tmp_path / "a.log").write_text(PREFIXES[name].format(LINE.format("203.0.113.5")) + "\n")
    (row,), done = imported(Nginx(), tmp_path / "a.log", out=tmp_path / "out", addresses=Addresses("whole"))
    assert (row["remote_address"], row["end_us"], done.unread) == ("203.0.113.5", AT_S * 1_000_000, 0)
    assert row.get("machine") == ("web1" if "web1" in PREFIXES[name] else None)


@pytest.mark.parametrize("wrapped", [{"log": "{}\n", "stream": "stdout"}, {"MESSAGE": "{}", "_HOSTNAME": "web1"}])
def test_lines_in_json_of_docker_and_journald_are_read(tmp_path: Path, wrapped: dict[str, str]) -> None:
    line = json.dumps({name: value.format(LINE.format("203.0.113.5")) for name, value in wrapped.items()})
    (tmp_path / "a.log.gz").write_bytes(gzip.compress(line.encode() + b"\n"))
    (row,), _ = imported(Nginx(), tmp_path / "a.log.gz", out=tmp_path / "out", addresses=Addresses("whole"))
    assert row["remote_address"] == "203.0.113.5"


def test_lines_split_by_containerd_are_joined(tmp_path: Path) -> None:
    line = LINE.format("203.0.113.5")
    parts = [("stdout", "P", line[:20]), ("stderr", "F", "worker exited"), ("stdout", "P", line[20:50])]
    parts += [("stdout", "F", line[50:]), ("stdout", "P", line)]
    text = "".join(f"2026-11-21T23:37:28.1Z {stream} {tag} {part}\n" for stream, tag, part in parts)
    (tmp_path / "a.log").write_text(text)
    rows, done = imported(Nginx(), tmp_path / "a.log", out=tmp_path / "out")
    assert [row["remote_address"] for row in rows] == ["203.0.113.0/24"]
    assert [line.why for line in done.first_unread][1:] == ["a part of a line whose end is missing"]


def test_a_line_with_an_unknown_prefix_is_malformed(tmp_path: Path) -> None:
    lines = [
        LINE.format("203.0.113.5"),
        "web1 says " + LINE.format("203.0.113.5"),
        LINE.format("unix:"),
        LINE.format("-"),
    ]
    (tmp_path / "a.log").write_text("\n".join(lines) + "\n")
    rows, done = imported(Nginx(), tmp_path / "a.log", out=tmp_path / "out")
    assert [row.get("remote_address") for row in rows] == ["203.0.113.0/24", None, None]
    assert [line.why for line in done.first_unread] == ["not an address: `web1 says 203.0.113.5`"]


def test_a_format_that_resembles_a_prefix_is_read_unchanged(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("2026-11-21T23:37:28+00:00 web1 nginx: 203.0.113.5 7\n")
    importer = Nginx("$time_iso8601 $hostname nginx: $remote_addr $bytes_sent")
    (row,), _ = imported(importer, tmp_path / "a.log", out=tmp_path / "out")
    assert (row["machine"], row["sent_bytes"], row["remote_address"]) == ("web1", 7, "203.0.113.0/24")
