"""Any input of any importer results in rows or in an error of thalweg, without NaN, control characters or leftover
files.
"""

import json
import math
import re
import tempfile
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from importing import AT_S, SAMPLES
from test_import_haproxy import HTTP, TCP
from test_import_iperf3 import TEST
from test_import_ss_dumps import AT, HEAD, LINUX_4_4, LINUX_5_10
from thalweg import printable
from thalweg.errors import ThalwegError
from thalweg.records.imports import (
    Addresses,
    CsvTable,
    Haproxy,
    Importer,
    Iperf3,
    JsonLines,
    Ndt,
    Nginx,
    Notation,
    Ss,
    Varnish,
    convert,
    log_format,
    mapping,
)

MAP = ["end_us=end_us", "acked_bytes=size", "goodput_bps=rate", "remote_address=client", "cc=cc"]
OBJECT = {"end_us": AT_S, "size": 1000, "rate": 1.5e6, "client": "203.0.113.5:443", "cc": "bbr"}
ROW = ",".join(str(value) for value in OBJECT.values())

IMPORTERS: dict[str, tuple[Callable[[], Importer], str]] = {
    "nginx": (
        lambda: Nginx(log_format(SAMPLES / "nginx.conf", "tcp"), mapping(["rtt_min_us=tcpinfo_rttvar"], None)),
        (SAMPLES / "nginx-tcp.log").read_text(),
    ),
    "varnish": (
        lambda: Varnish("%h %t %D %r %{VCL_Log:tcpi}x %{VCL_Log:tcpi2}x"),
        (SAMPLES / "varnish.log").read_text(),
    ),
    "haproxy": (Haproxy, f"{HTTP}\n<134>Nov 21 23:37:28 lb1 haproxy[1]: {TCP}\n"),
    "ss": (Ss, (SAMPLES / "ss.txt").read_text()),
    "ss of old kernels": (Ss, f"{AT}{HEAD}{LINUX_4_4}Sat Nov 21 23:37:28 UTC 2026\n{HEAD}{LINUX_5_10}"),
    "ndt": (Ndt, (SAMPLES / "ndt7.jsonl").read_text()),
    "ndt as CSV": (Ndt, (SAMPLES / "ndt7.csv").read_text()),
    "iperf3": (Iperf3, json.dumps(TEST)),
    "json": (lambda: JsonLines(mapping(MAP, None)), f"{json.dumps(OBJECT)}\n" * 3),
    "csv": (lambda: CsvTable(mapping(MAP, None)), f"{','.join(OBJECT)}\n{ROW}\n{ROW}\n"),
    "csv of a spreadsheet": (
        lambda: CsvTable(mapping(MAP, None), "", Notation(",")),
        f"sep=;\n{';'.join(OBJECT)}\n" + ROW.replace(",", ";").replace(".", ",") + "\n",
    ),
}

PIECES = [
    "NaN", "nan", "-inf", "Infinity", "1e999", "-1", "9" * 30, "9" * 5000, "1.000.000", "0,5", "\x1b[2J", "\x9b", "\0",
    "\u202e", "\N{ARABIC-INDIC DIGIT ONE}", "\ud800".encode("utf-8", "surrogatepass").decode("latin-1"), '"', "\\", "[",
    "{", "}", "]", "[" * 3000, "null", "true", "::", "[::1]:99999", "h:", "/", "-", "+", ";", ",", "\t", "\n", "\r",
    " ", "11/12/2026", "2026-11-21T23:37:28", "23:37:28", "P", "unix:", "sep=;",
]  # fmt: skip

EDITS = st.lists(
    st.tuples(st.floats(0, 1), st.integers(0, 40), st.sampled_from(PIECES) | st.text(max_size=8)), max_size=5
)


def edited(text: str, edits: list[tuple[float, int, str]], at_numbers: bool) -> str:
    """Replace pieces of a text, only its numbers if `at_numbers`."""
    for place, length, piece in edits:
        numbers = [match.span() for match in re.finditer(r"\d+(\.\d+)?", text)] if at_numbers else []
        begin = int(place * max(0, len(text) - 1))
        start, end = numbers[int(place * (len(numbers) - 1))] if numbers else (begin, begin + length)
        text = text[:start] + piece + text[end:]
    return text


def check(importer: Importer, content: bytes) -> None:
    """Import a file, and check the result."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "file").write_bytes(content)
        out = Path(folder) / "out" / "deep"
        try:
            done = convert(importer, [Path(folder) / "file"], out, addresses=Addresses("whole"))
        except ThalwegError:
            assert [file_.name for file_ in Path(folder).iterdir()] == ["file"]
            return
        assert [file.name for file in out.iterdir()] == [file.name for file in done.files]
        (frame,) = [pl.read_parquet(file) for file in done.files]
        assert done.rows == len(frame)
        for column in frame.iter_columns():
            if column.dtype.is_float():
                assert all(math.isfinite(value) for value in column.drop_nulls())
            elif column.dtype == pl.String:
                assert all(printable.value(value) == value for value in column.drop_nulls())
        reasons = [file_.first.why for file_ in (*done.unread_lines.values(), *done.fallbacks.values())]
        assert not any("\x1b" in why or "\x9b" in why or "\n" in why for why in reasons)


@pytest.mark.parametrize("name", IMPORTERS)
def test_a_mutated_file_yields_rows_or_an_import_error(name: str) -> None:
    make, text = IMPORTERS[name]

    @settings(max_examples=15, deadline=None)
    @given(edits=EDITS, at_numbers=st.booleans(), cut=st.floats(0.5, 1))
    def run(edits: list[tuple[float, int, str]], at_numbers: bool, cut: float) -> None:
        changed = edited(text, edits, at_numbers)
        check(make(), changed[: int(len(changed) * cut) or 1].encode(errors="surrogatepass"))

    run()


@pytest.mark.parametrize("name", IMPORTERS)
def test_a_random_file_yields_rows_or_an_import_error(name: str) -> None:
    make, _ = IMPORTERS[name]

    @settings(max_examples=10, deadline=None)
    @given(content=st.binary(max_size=300) | st.text(max_size=300).map(lambda text: text.encode()))
    def run(content: bytes) -> None:
        check(make(), content)

    run()
