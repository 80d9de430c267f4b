"""Importing rows in blocks and one by one has the same results: rows, counts and errors."""

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from importing import AT_S
from test_import_anything import EDITS, IMPORTERS, edited
from thalweg.errors import ThalwegError
from thalweg.records.imports import (
    Addresses,
    CsvTable,
    Importer,
    Mapped,
    Ndt,
    Nginx,
    Notation,
    Ss,
    Varnish,
    convert,
    items,
    mapping,
    ndt,
    ss,
    table,
)
from thalweg.records.imports.addresses import AddressForm
from thalweg.records.imports.blocks import BlockImporter
from thalweg.records.imports.items import Item, SourceFile
from thalweg.records.imports.varnish import DEFAULT


class OneByOne:
    """An importer without support for blocks."""

    def __init__(self, importer: Importer) -> None:
        self._importer = importer
        self.source = importer.source
        self.shows_cuts = importer.shows_cuts
        self.expected = importer.expected
        self.hint = importer.hint

    def read(self, source: SourceFile) -> Iterator[Item]:
        return self._importer.read(source)


def outcome(importer: Importer, file: Path, form: AddressForm, constants: dict[str, str], strict: bool) -> object:
    """Import a file; return the complete result that a user sees."""
    with tempfile.TemporaryDirectory() as out:
        try:
            done = convert(importer, [file], Path(out), addresses=Addresses(form, b"k" * 32), constants=constants,
                           strict=strict)  # fmt: skip
        except ThalwegError as error:
            return error.text()
        rows = [pl.read_parquet(written).rows() for written in done.files]
        names = [written.name for written in done.files]
        return names, rows, done.rows, list(done.unread_lines.items()), list(done.left_out.items()), \
            list(done.fallbacks.items()), sorted(done.filled)  # fmt: skip


def check(make: Callable[[], Importer], content: bytes, form: AddressForm = "whole", **options: Any) -> None:
    constants, strict = options.get("constants", {}), options.get("strict", False)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "file"
        file.write_bytes(content)
        blocks, rows = (outcome(reader, file, form, constants, strict) for reader in (make(), OneByOne(make())))
        assert blocks == rows


def in_blocks_of_two(patch: pytest.MonkeyPatch, usual: int) -> None:
    """Make blocks of two lines, the first of which has a usual length."""
    one_line = items.Lines.block
    patch.setattr(items, "BLOCK", 1)
    patch.setattr(items.Lines, "block", lambda lines: one_line(lines) + one_line(lines))
    patch.setattr(ndt, "BLOCK", usual + 2)
    for rows in (ss, table):
        patch.setattr(rows, "BLOCK_ROWS", 2)


TCP = (
    "$remote_addr $remote_port $server_addr $msec $request_time $bytes_sent $connection $connection_requests "
    "$tcpinfo_rtt"
)
LINES: dict[str, tuple[Callable[[], Importer], list[list[str]], str]] = {
    "nginx": (
        lambda: Nginx(TCP),
        [
            ["203.0.113.9", "2001:db8:1:2::3", "2001:db8:0:1::5", "::ffff:198.51.100.7", "2001:db8::1",
             "1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7::", "1:2:3::4:5:6:7:8", "0:0:3::", "01:2:3::", "203.0.113.256",
             "203.0.113.09", "fe80::1%eth0", "-", "unix:", "203.0.113.9:443", "[2001:db8:7::1]:443", "Nov",
             "2026-11-21T23:37:28.1Z",
             "ABCD:2:3::", "a:b:c:d:e:f:7"],
            ["443", "-", "", "0", "65535", "65536", "99999", "007", "+5"],
            ["192.0.2.1", "|", "-"],
            ["1795304248.123", "1795304248", "1795304248.1234567", "1795304248.0000005", "915148800.5", "-", "nan",
             "1e9", "9795304248.123", "1795304248.999999999"],
            ["0.204", "-", "", "0.0000005", "0.0000015", "1.5e3", "4000000000.0", "999999999999999.999",
             "-1", "0,5", "12"],
            ["0", "18446744073709551615", "18446744073709551616", "999999999999999999", "-", "1.5", "-7"],
            ["7", "-", "9223372036854775808"],
            ["1", "0", "-"],
            ["0", "23456", "-", "3600000000", "3600000001"],
        ],
        " ",
    ),
    "nginx's own": (
        Nginx,
        [
            ["203.0.113.9 - -", "web1 203.0.113.9 - bob", "a | 203.0.113.9 - -", "<7>1 2 3"],
            ["[21/Nov/2026:23:37:28 +0000]", "[31/Nov/2026:23:37:28 +0000]", "[1/Nov/2026:23:37:28 +0100]",
             "[29/Feb/2028:00:00:00 -0830]", "[21/Nov/2026:23:37:60 +0000]", "[21/Nov/2026:23:37:28]",
             "[21/nov/1999:23:37:28 +0000]", "[01/Jan/2000:00:30:00 +0100]", "[21/Nov/2026:23:37:28 +9999]",
             "[-]"],
            ['"GET / HTTP/1.1" 200', '"GET "x" HTTP/1.1" 200', '"\N{SNOWMAN}" 404'],
            ["153 \"-\" \"curl\"", "- \"-\" \"a, b : c\"", "5 \"x\" \"", "5 \"x\" \"y\" z", "1 \"\ufffd\" \"\""],
        ],
        " ",
    ),
    "nginx with a map": (
        lambda: Nginx("$remote_addr:$remote_port $msec $cc $rtt $upstream_response_time $far $id $upstream_x", [
            *mapping(["cc=$cc", "rtt_min_us=$rtt:ms", "fct_us=$upstream_response_time:s", "remote_address=$far",
                      "connection=$id"], None),
            Mapped("machine", value="web9"),
            Mapped("mss_bytes", value="1448"),
            Mapped("local_address", value="192.0.2.1"),
        ]),
        [
            ["203.0.113.9:443", "2001:db8:1:2::3:443", "203.0.113.9", "unix:"],
            ["1795304248.123"],
            ["bbr", "-", "null", "cub\u00edc", "a\tb"],
            ["21.5", "0.0005", "1,000.5", "-", "1.2.3", "nan", "9999999999"],
            ["0.100", "0.100, 0.050", "0.010 : 1.200", "-", "0.1:"],
            ["198.51.100.0/24", "h:73a92d6adb7d024a", "-", "198.51.100.7", "x"],
            ["17", "conn-17", "-", "18446744073709551616", "1.5"],
            ["-", "a : b", ":"],
        ],
        " ",
    ),
    "varnish": (
        lambda: Varnish("%h %{VSL:ReqStart[2]}x %{VSL:Timestamp:Start[1]}x %{VSL:Timestamp:Resp[1]}x %D %b %t "
                        "%{VCL_Log:tcpi}x"),
        [
            ["203.0.113.9", "2001:db8::1"],
            ["443", "-"],
            ["1795304248.123456", "-", "1795304250"],
            ["1795304249.123456", "-", "1795304240"],
            ["1000000", "-", "12.5"],
            ["-", "0", "77"],
            ["[21/Nov/2026:23:37:28 +0000]", "[x]"],
            ["rtt=5 rtt=6", "rtt=152000 snd_mss=1448 reordering=3", "-", "rtt=0|snd_mss=1",
             "xrtt=5 reordering=99999999999999999999", "rtt=5 \u2003snd_mss=7",
             "rtt=5=6 snd_mss=123456789012345678901"],
        ],
        " ",
    ),
    **{
        f"csv with decimal {decimal!r}": (
            lambda decimal=decimal: CsvTable(
                mapping(["end_us=t", "start_us=s", "remote_address=a", "cc=c", "acked_bytes=k:kB", "rtt_min_us=r:ms",
                         "retransmits=n", "ecn=e", "busy_us=b", "busy_goodput_bps=g:Mbps", "kind=i", "connection=x"],
                        None), ";", Notation(decimal)),  # type: ignore[misc]
            [
                ["2026-11-21T23:37:28.123Z", "2026-11-21 23:37:28 UTC", "2026-11-21T23:37:28.1234567Z", "1795304248.5",
                 "2026-02-29T00:00:00Z", "45000", "2026-11-21T23:37:28", "2026-11-21T23:37:28.12+00:00", "21.11.2026",
                 "11/12/2026", "2026-11-21T24:00:00Z", "21/Nov/2026:23:37:28 +0100", "1795304248", " 1795304248 ", ""],
                ["-", "2026-11-21T23:37:27Z", "2026-11-21T23:37:29Z", "1795304247.000001"],
                ["203.0.113.9", "2001:db8:1:2::3", "198.51.100.0/24", "", " 203.0.113.9", "203.0.113.9:5", "x"],
                ["bbr", "", "null", " bbr", "\"a;b\"", "\"a\nb\"", "\u00e9", "\"open"],
                ["1000", "1.000", "0.5", "12,5", "0.0005", "1125899906.9", "1200000000", "-", "1.5e3",
                 "999999999999999"],
                ["20", "20.5", "0.0005", "1234.567", "123.456", "3600001", "1,5", "nan"],
                ["3", "3.0", "1.5", "-1", "18446744073709551615"],
                ["yes", "0", "maybe", ""],
                ["100000", "0", "-", "0.5", "1.5"],
                ["-", "1.5", "1e3", "-1", "9007199254740993"],
                ["close", "transfer", "interim", "closed", "-", ""],
                ["-", "7", "seven", "-7", "18446744073709551616"],
            ],
            ";",
        )
        for decimal in ("", ".", ",")
    },
    "ndt": (
        Ndt,
        [
            ['{"a": {"UUID": "u1", "TestTime": ', '{"a": {"UUID": "\\udfff", "TestTime": ',
             '{"a": {"UUID": "", "TestTime": ',
             '{"raw": {}, "a": {"UUID": "u1", "TestTime": ', '{"UUID": "x", "a": {"TestTime": ',
             '{"id": 7, "a": {"TestTime": '],
            ['"2026-11-21 23:37:28.5 UTC"', '"2026-11-21T23:37:28"', '"noon"', "1795304248", "null", '""'],
            [', "CongestionControl": "bbr", ', ', "CongestionControl": "-", ', ', "CongestionControl": 7, ', ", ",
             ', "CongestionControl": " b", '],
            ['"MeanThroughputMbps": 9.6, ', '"MeanThroughputMbps": 9, ', '"MeanThroughputMbps": NaN, ', '"x": 1, ',
             '"MeanThroughputMbps": "9.6", ', '"MeanThroughputMbps": -1.5, ', '"MeanThroughputMbps": 1e999, '],
            ['"MinRTT": 21.5}', '"MinRTT": 0.0005}', '"MinRTT": 0.0015}', '"MinRTT": -0.0}', '"MinRTT": 4e9}',
             '"MinRTT": null}',
             '"MinRTT": Infinity}', '"MinRTT": true}', '"MinRTT": "21.5"}'],
            [', "client": {"IP": "198.51.100.7", "Port": 51234}',
             ', "client": {"IP": "2001:db8:1::3", "Port": "51234"}',
             ', "client": {"IP": "198.51.100.7:9", "Port": 51234}', ', "client": {"IP": "x"}',
             ', "client": {"Port": 70000}',
             ', "client": {"Port": true}', ', "client": null', ', "client": {"IP": "", "Port": ""}',
             ', "client": {"Port": " 5"}'],
            [', "server": {"IP": "192.0.2.1", "Port": 443, "Site": "ams03", "Machine": "mlab2"}}', "}",
             ', "server": {"Site": "ams03"}}', ', "server": {"Site": 3, "Machine": "m"}}', ', "server": []}',
             ', "server": {"Machine": "-"}}', ', "server": {"Machine": "a\\tb"}}'],
        ],
        "",
    ),
    "ss": (
        lambda: Ss(AT_S * 1_000_000),
        [
            ["ESTAB", "UNCONN", "tcp ESTAB", "CLOSE-WAIT", "LISTEN", "udp UNCONN", "SYN-SENT", "1795304300\nESTAB",
             "22:13:20\nESTAB", "nothing\nESTAB", "Nov 14 22:13:20 web1 ss[7]: ESTAB"],
            [" 0 9 "],
            ["192.0.2.1:443 ", "[2001:db8::1]:443 ", "192.0.2.1%eth0:443 ", "192.0.2.256:443 ", "*:443 ",
             "192.0.2.1:https "],
            ["198.51.100.7:51234 ", "[::ffff:198.51.100.7]:5 ", "[2001:db8:7::1]:99999 ", "0.0.0.0:* "],
            ['users:(("nginx",pid=12,fd=3),("x",pid=1,fd=2)) ', "", 'users:(("a b: sk:9",pid=1,fd=2)) '],
            ["ino:5 sk:1a2b ", "sk:0 sk:7 ", "", "sk:fffffffffffffffff ", "sk:ffffffffffffffff ", "uid:7 sk:5 "],
            ["cgroup:/system.slice/nginx.service <->", "cgroup:/a:b <->", "<->  ", "cgroup:/\u00e9 <->"],
            ["\n\t ts sack", "\n\t", "\n\t ts ecn", "\n\t ts sack ecnseen", "\n\t ts\n\t", "\t ts", "\n\t  sack"],
            [" bbr", "", " cubic wscale:7,10", " ts"],
            [" rto:224 rtt:23.4/5.1", " rtt:0/0", " rto:224", " rto:1 rtt:0.0005/1", " rto:1 rtt:4000000/1",
             " rto:1 rtt:x/1"],
            [" mss:1448", "", " mss:", " mss:1448 mss:9"],
            [" bytes_sent:5000", "", " bytes_sent:18446744073709551616", " bytes_sent:10 bytes_retrans:20"],
            [" bytes_acked:4001 segs_out:9 segs_in:7", " bytes_acked:1", " segs_out:9", ""],
            [" data_segs_out:6", " data_segs_out:0", ""],
            [" bbr:(bw:12345678bps,mrtt:21.5,pacing_gain:1.25,cwnd_gain:2)", "", " bbr:(bw:0bps,mrtt:0)",
             " bbr:(bw:1.5Mbps,mrtt:0.0005)", " bbr:(bw:0bps,mrtt:4.29497e+06)", " bbr:(bw:0bps,mrtt:4294967.295)",
             " dctcp:(ce_state:0)"],
            [" send 20.8Mbps delivery_rate 12.0Mbps", " delivery_rate 1Kbps delivery_rate 2Kbps", "",
             " delivery_rate 1.2.3bps",
             " delivery_rate 0.5bps", " delivery_rate 7"],
            [" delivered:4 app_limited", "", " delivered_ce:3"],
            [" busy:420ms rwnd_limited:12ms(2.9%)", "", " busy:0.0005ms", " sndbuf_limited:7ms(1%)", " busy:x"],
            [" retrans:0/2", " retrans:1/", ""],
            [" reordering:12 reord_seen:3", ""],
            [" rcv_space:14600", "", " rcv_space:14600 minrtt:21.5", " rcv_space:1 minrtt:0",
             " rcv_space:1 snd_wnd:7 "],
        ],
        "",
    ),
    "varnish's own": (
        lambda: Varnish(DEFAULT),
        [["198.51.100.9 - -"], ["[21/Nov/2026:23:37:28 +0000]", "x"], ['"GET / HTTP/1.1" 200'], ["-", "5"],
         ['"-" "x"']],
        " ",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LINES)
@pytest.mark.parametrize("form", ["whole", "truncated", "hashed"])
def test_block_reading_matches_line_reading_with_one_unusual_field(name: str, form: AddressForm) -> None:
    make, fields, separator = LINES[name]
    usual = [field[0] for field in fields]
    head = "t;s;a;c;k;r;n;e;b;g;i;x\n" if name.startswith("csv") else ""
    lines = [
        separator.join([*usual[:place], text, *usual[place + 1 :]])
        for place, field in enumerate(fields)
        for text in field
    ]
    check(make, (head + "\n".join(lines)).encode(), form)
    if form != "truncated":
        return
    # Each unusual line is in a block with a usual one. An open quote changes the lines after it, and so does a time in
    # ss.
    alone = [line for line in lines if line.count('"') % 2 or (name == "ss" and "\nESTAB" in line)]
    for line in alone:
        check(make, f"{head}{lines[0]}\n{line}\n".encode(), form, constants={"machine": "web7"})
    pairs = "".join(f"{lines[0]}\n{line}\n" for line in lines if line not in alone)
    with pytest.MonkeyPatch.context() as patch:
        in_blocks_of_two(patch, len(lines[0]))
        check(make, f"{head}{pairs}".encode(), form, constants={"machine": "web7"})


@pytest.mark.parametrize("name", LINES)
def test_block_reading_matches_line_reading_with_mixed_fields(name: str) -> None:
    make, fields, separator = LINES[name]
    line = st.tuples(*(st.sampled_from(field[:1]) | st.sampled_from(field) for field in fields)).map(separator.join)
    kinds = st.sampled_from(["whole", "truncated", "hashed"])
    importer = make()
    assert isinstance(importer, BlockImporter)

    @settings(max_examples=12, deadline=None)
    @given(lines=st.lists(line, min_size=1, max_size=12), end=st.sampled_from(["\n", "\r\n", "\r"]), form=kinds,
           constants=st.sampled_from([{}, {"machine": "web7", "cc": "bbr"}]), strict=st.booleans())  # fmt: skip
    def run(lines: list[str], end: str, form: AddressForm, constants: dict[str, str], strict: bool) -> None:
        text = end.join(["t;s;a;c;k;r;n;e;b;g;i;x", *lines] if name.startswith("csv") else lines)
        check(make, text.encode(), form, constants=constants, strict=strict and "web1" not in text)

    run()


@pytest.mark.parametrize("name", IMPORTERS)
def test_block_reading_matches_line_reading_of_a_mutated_file(name: str) -> None:
    make, text = IMPORTERS[name]

    @settings(max_examples=10, deadline=None)
    @given(edits=EDITS, at_numbers=st.booleans(), size=st.sampled_from([7, 100, 2**22]))
    def run(edits: list[tuple[float, int, str]], at_numbers: bool, size: int) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(items, "BLOCK", size)
            check(make, edited(text * 3, edits, at_numbers).encode(errors="surrogatepass"), "truncated")

    run()
