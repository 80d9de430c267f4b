"""`thalweg import`: its output, its files, and the formats of stored addresses."""

import contextlib
import gzip
import json
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from importing import SAMPLES, imported
from thalweg.errors import Exit, ThalwegError
from thalweg.records import imports
from thalweg.records.imports import Addresses, CsvTable, Haproxy, Iperf3, Ndt, Nginx, Ss, Varnish, mapping
from thalweg.records.imports.addresses import with_key
from thalweg.records.schema import SCHEMA

Thalweg = Callable[..., Any]

NGINX = ["nginx", str(SAMPLES / "nginx-tcp.log"), "--config", str(SAMPLES / "nginx.conf"), "--format-name", "tcp"]
KEY = "00112233445566778899aabbccddeeff"


def key_file(folder: Path, text: str = KEY, mode: int = 0o600) -> Path:
    file = folder / "address.key"
    file.write_text(text + "\n")
    file.chmod(mode)
    return file


def test_an_import_prints_its_file_and_the_skipped_lines(thalweg: Thalweg, tmp_path: Path) -> None:
    done = thalweg("import", *NGINX, "--out", "records")
    assert done.returncode == 0, done.stderr
    (file,) = (tmp_path / "records").iterdir()
    assert done.stdout.strip() == str(Path("records") / file.name)
    assert re.fullmatch(r"nginx-20261121T233728Z-[0-9a-f]{12}\.parquet", file.name)
    assert "4 records" in done.stderr
    assert "1 line could not be read" in done.stderr
    assert "nginx-tcp.log:5: " in done.stderr


def test_importing_again_replaces_the_records(thalweg: Thalweg, tmp_path: Path) -> None:
    for addresses in ("truncated", "whole"):
        done = thalweg("import", *NGINX, "--out", "records", "--addresses", addresses, "--cc", "bbr")
        assert done.returncode == 0, done.stderr
    assert "had been imported before" in done.stderr
    assert len(list((tmp_path / "records").iterdir())) == 1
    document = json.loads(thalweg("records", "records", "--json").stdout)
    assert [(algorithm["cc"], algorithm["transfers"]) for algorithm in document["algorithms"]] == [("bbr", 4)]


def test_a_file_imported_again_with_others_counts_once(tmp_path: Path) -> None:
    line = '203.0.113.9 - - [22/Nov/2026:00:37:31 +0100] "GET /{} HTTP/1.1" 200 44321 "-" "x"\n'
    logs = [tmp_path / name for name in ("a.log", "b.log", "none.log")]
    for log, text in zip(logs, [line.format("a"), line.format("b"), "nothing\n"], strict=True):
        log.write_text(text)
    imported(Nginx(), logs[0], out=tmp_path / "out")
    rows, done = imported(Nginx(), *logs, logs[1], out=tmp_path / "out")
    assert (len(rows), done.replaced, done.unread) == (2, 1, 1)
    assert len(list((tmp_path / "out").iterdir())) == 2


def test_a_copy_of_a_file_counts_once(tmp_path: Path) -> None:
    line = '203.0.113.9 - - [22/Nov/2026:00:37:31 +0100] "GET /a HTTP/1.1" 200 44321 "-" "x"\nnothing\n'
    logs = [tmp_path / name for name in ("a.log", "b.log")]
    for log in logs:
        log.write_text(line)
    rows, done = imported(Nginx(), *logs, out=tmp_path / "out")
    assert (len(rows), done.rows, done.unread, len(done.files), done.replaced) == (1, 1, 1, 1, 0)
    assert done.left_out.counts() == {"a file with the content of an earlier one": 1}


def test_a_log_that_has_grown_replaces_its_beginning(tmp_path: Path) -> None:
    line = '203.0.113.9 - - [22/Nov/2026:00:37:31 +0100] "GET /{} HTTP/1.1" 200 44321 "-" "x"\n'
    log, rotated, other = (tmp_path / name for name in ("access.log", "access.log.1.gz", "other.log"))
    log.write_text("".join(map(line.format, "ab")))
    other.write_text("".join(map(line.format, "ax")))
    assert imported(Nginx(), log, other, out=tmp_path / "out")[1].replaced == 0
    rotated.write_bytes(gzip.compress("".join(map(line.format, "abc")).encode()))
    assert imported(Nginx(), rotated, out=tmp_path / "out")[1].replaced == 1
    # The other log of the same second, which begins with the same line, stays.
    assert sum(len(pl.read_parquet(file)) for file in (tmp_path / "out").iterdir()) == 3 + 2
    assert imported(Nginx(), rotated, out=tmp_path / "out")[1].replaced == 1


def test_an_import_as_json_has_the_same_content(thalweg: Thalweg) -> None:
    document = json.loads(thalweg("import", *NGINX, "--out", "records", "--machine", "web7", "--json").stdout)
    assert (document["rows"], document["unread"], document["replaced"], len(document["files"])) == (4, 1, 0, 1)
    assert document["first_unread"][0]["line"] == 5
    assert {"machine", "rtt_smoothed_us"} <= set(document["columns"])


def test_strict_stops_at_the_line_and_leaves_no_files(thalweg: Thalweg, tmp_path: Path) -> None:
    done = thalweg("import", *NGINX, "--out", "records/deep", "--strict")
    assert done.returncode == Exit.FAILED
    assert "error[unread-line]: line 5 cannot be read" in done.stderr
    assert "nginx-tcp.log:5" in done.stderr
    assert not (tmp_path / "records").exists()


def test_a_failing_file_removes_the_output_of_earlier_ones(tmp_path: Path) -> None:
    line = '203.0.113.9 - - [22/Nov/2026:00:37:31 +0100] "GET / HTTP/1.1" 200 44321 "-" "x"\n'
    (tmp_path / "good.log").write_text(line)
    (tmp_path / "torn.log").write_text(line + "203.0.113.9 - -")
    with pytest.raises(ThalwegError, match="line 2 cannot be read"):
        imported(Nginx(), tmp_path / "good.log", tmp_path / "torn.log", out=tmp_path / "out" / "deep", strict=True)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["good.log", "torn.log"]


def test_a_log_of_another_format_is_an_error_with_a_hint(thalweg: Thalweg, tmp_path: Path) -> None:
    done = thalweg("import", "nginx", str(SAMPLES / "varnish.log"), "--out", "records")
    assert done.returncode == Exit.FAILED
    assert done.stderr.startswith("error[no-records]")
    assert "--format-string" in done.stderr
    assert not (tmp_path / "records").exists()


def test_an_existing_folder_is_kept_after_a_failed_import(thalweg: Thalweg, tmp_path: Path) -> None:
    (tmp_path / "records").mkdir()
    (tmp_path / "empty.log").write_text("")
    assert thalweg("import", "nginx", "empty.log", "--out", "records").returncode == Exit.FAILED
    assert list((tmp_path / "records").iterdir()) == []


def test_a_folder_that_cannot_be_created_is_reported(thalweg: Thalweg, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = thalweg("import", *NGINX, "--out", "file/records")
    assert done.returncode == Exit.CANNOT_WRITE
    assert "error[cannot-write]" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["apache", "x", "--out", "r"], "nginx, varnish, csv, json, haproxy, iperf3, ndt, ss"),
        (["ss", "x", "--out", "r", "--map", "a=b"], ", not for ss"),
        (["ndt", "x", "--out", "r", "--config", "b"], "--config is for nginx"),
        (["nginx", "x", "--out", "r", "--format-name", "b"], "--format-name requires --config"),
        (["ss", "x", "--out", "r", "--time", "noon"], "not a time: `noon`"),
        (["ss", "x", "--out", "r"], "there is no file `x`"),
        (["ss", ".", "--out", "r"], "is a folder"),
        (["ss", "x", "--out", "r", "--addresses", "none"], "unknown form of addresses: `none`"),
        (["ss", "x", "--out", "r", "--key", "k"], "--key is for hashed addresses"),
        (["csv", "x", "--out", "r"], "has no end time of rows"),
    ],
)
def test_usage_errors_suggest_the_correct_usage(
    thalweg: Thalweg, tmp_path: Path, arguments: list[str], message: str
) -> None:
    done = thalweg("import", *arguments)
    assert done.returncode == Exit.USAGE
    assert message in done.stderr
    assert not (tmp_path / "r").exists()


def test_address_hashes_match_the_agent_for_the_same_key(tmp_path: Path) -> None:
    addresses = with_key("hashed", key_file(tmp_path))
    rows, _ = imported(Ss(), SAMPLES / "ss.txt", out=tmp_path / "out", addresses=addresses)
    # HMAC-SHA-256 of the 4 bytes c6 33 64 07, truncated to 64 bits: openssl dgst -sha256 -mac HMAC -macopt hexkey:KEY
    assert rows[0]["remote_address"] == "h:ca967fb2cb9222d5"
    # An IPv4-mapped IPv6 address is the same peer as the IPv4 address.
    assert rows[3]["remote_address"] == rows[0]["remote_address"]
    assert rows[1]["remote_address"] != rows[0]["remote_address"]


def test_a_key_must_exist_be_long_enough_and_private(tmp_path: Path) -> None:
    with pytest.raises(ThalwegError, match="there is no file"):
        with_key("hashed", tmp_path / "address.key")
    for text, mode, message in (
        (KEY[:30], 0o600, "no key"),
        ("x" * 32, 0o600, "no key"),
        (KEY, 0o640, "accessible to users"),
    ):
        with pytest.raises(ThalwegError, match=message):
            with_key("hashed", key_file(tmp_path, text, mode))


def test_an_interrupted_import_leaves_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Ss, "_row", interrupted)
    with pytest.raises(KeyboardInterrupt):
        imports.convert(Ss(), [SAMPLES / "ss.txt"], tmp_path / "a" / "b", addresses=Addresses())
    assert list(tmp_path.iterdir()) == []


def test_an_import_of_many_rows_is_one_file(tmp_path: Path) -> None:
    line = '203.0.113.9 - - [22/Nov/2026:00:37:31 +0100] "GET / HTTP/1.1" 200 44321 "-" "x"\n'
    (tmp_path / "a.log").write_text(line * 120_000)
    done = imports.convert(Nginx(), [tmp_path / "a.log"], tmp_path / "out", addresses=Addresses())
    assert done.rows == 120_000
    assert [file.suffix for file in (tmp_path / "out").iterdir()] == [".parquet"]


TORN = {
    "nginx-tcp.log": lambda: Nginx(imports.log_format(SAMPLES / "nginx.conf", "tcp")),
    "varnish.log": lambda: Varnish("%h %t %D %r %{VCL_Log:tcpi}x %{VCL_Log:tcpi2}x"),
    "ss.txt": Ss,
    "ndt7.jsonl": Ndt,
    "ndt7.csv": Ndt,
    "ndt-server.json": Ndt,
    "flows.csv": lambda: CsvTable(mapping([], SAMPLES / "flows.toml")),
}


@pytest.mark.parametrize("name", TORN)
def test_arbitrary_input_yields_rows_or_an_import_error(tmp_path: Path, name: str) -> None:
    content = (SAMPLES / name).read_text()
    chance = random.Random(name)
    pieces = ["-1", "9" * 30, "9" * 5000, "1e308", "nan", "[" * 20_000, '"', "::", "h:", "{}", "null"]
    pieces += ["\0", "\r", "\x85", "\N{ARABIC-INDIC DIGIT ONE}"]
    for _ in range(60):
        text = content
        for _ in range(chance.randint(1, 4)):
            numbers = [match.span() for match in re.finditer(r"\d+(\.\d+)?", text)]
            begin, end = chance.choice(numbers) if chance.random() < 0.7 else [chance.randrange(len(text))] * 2
            text = text[:begin] + chance.choice(pieces) + text[end:]
        (tmp_path / name).write_text(text)
        with contextlib.suppress(ThalwegError):
            imports.convert(TORN[name](), [tmp_path / name], tmp_path / "out", addresses=Addresses())


@pytest.mark.parametrize("importer", [Haproxy, Iperf3, Ndt, Nginx, Ss, Varnish])
def test_the_reference_names_the_source_of_every_column_that_an_importer_fills(importer: Any) -> None:
    page = (Path(__file__).parents[4] / "docs" / "reference" / "importing.md").read_text()
    section = re.search(rf"^## {importer.source}\b(.*?)(?=^## |\Z)", page, flags=re.M | re.S | re.I)
    assert section is not None
    named = {
        name for row in re.findall(r"^\| (`.*?) \|", section[1], flags=re.M) for name in re.findall(r"`(\w+)`", row)
    }
    assert set(importer.fills) <= SCHEMA.keys()
    everywhere = {"source", "kind", "ip_version"}
    assert named == set(importer.fills) - everywhere
