"""A damaged file never causes a traceback: the error names the file, for any exception of the library."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
import synthetic_runs
import synthetic_traffic
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from thalweg.cli.main import app
from thalweg.errors import Exit
from thalweg.results import open_run
from thalweg.results.reading import Unreadable, reading

FIXED = {"derandomize": True, "deadline": None, "suppress_health_check": [HealthCheck.function_scoped_fixture]}

SHORT = 4096
"""Number of bytes that count as the end of a file."""

BYTE_OF_A_LENGTH = 910
"""Offset of a length in the damaged table of flows; if its lowest bit is flipped, polars aborts the process."""

SIGN_OF_A_COUNT = 14
"""Offset of the number of values of the first page in a file of records; its lowest bit is the sign."""

FIELD_NAME = 1358
"""Distance from the end of that file to a column name that polars, unlike Arrow, validates."""

flips = st.tuples(st.booleans(), st.integers(0, 2**31), st.integers(0, 7))
"""Flipped bits: near the end or anywhere, the byte, and the bit within it."""

Run = Callable[..., tuple[int, str]]


@pytest.fixture
def thalweg(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    """Run `thalweg` in this process; returns its exit code and its entire output."""

    def run(*words: str | Path) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["thalweg", *map(str, words)])
        capfd.readouterr()
        code = app()
        return code, "".join(capfd.readouterr())

    return run


def flipped(content: bytes, flip: tuple[bool, int, int]) -> bytes:
    is_near_end, number, bit = flip
    size = len(content)
    place = size - 1 - number % min(SHORT, size) if is_near_end else number % size
    return content[:place] + bytes([content[place] ^ 1 << bit]) + content[place + 1 :]


def run_subprocess(command: str, place: Path) -> tuple[int, str]:
    """Run `thalweg COMMAND PLACE` in a separate process, which may abort; return its exit code and standard error."""
    words = [sys.executable, "-m", "thalweg", command, str(place)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, bytes]:
    """Return a folder of records with two files, and the content of the one that is damaged."""
    folder = tmp_path_factory.mktemp("records")
    synthetic_traffic.write(folder / "whole.parquet", synthetic_traffic.Traffic(rows=1200, clients=40, seed=2).frame())
    file = synthetic_traffic.write(folder / "bad.parquet", synthetic_traffic.Traffic(rows=300, clients=40).frame())
    return folder, file.read_bytes()


def assert_damage_is_reported(code: int, text: str, name: str) -> None:
    """Check that a command succeeded, possibly without the file, or named it in an error."""
    assert code in (Exit.FINE, Exit.FAILED, Exit.USAGE), text
    assert code == Exit.FINE or name in text, text
    assert "engine-failed" not in text
    assert "Traceback" not in text
    assert "panicked" not in text


@settings(max_examples=30, **FIXED)  # type: ignore[arg-type]
@given(flip=flips)
def test_records_with_a_flipped_bit_are_read_or_reported_by_file(
    thalweg: Run, records: tuple[Path, bytes], flip: tuple[bool, int, int]
) -> None:
    folder, content = records
    (folder / "bad.parquet").write_bytes(flipped(content, flip))
    assert_damage_is_reported(*thalweg("records", folder), name="bad.parquet")


@settings(max_examples=4, **FIXED)  # type: ignore[arg-type]
@given(flip=flips)
def test_advice_on_records_with_a_flipped_bit_leaves_them_out(
    thalweg: Run, records: tuple[Path, bytes], flip: tuple[bool, int, int]
) -> None:
    folder, content = records
    (folder / "bad.parquet").write_bytes(flipped(content, flip))
    code, text = thalweg("advise", folder, "--by", "machine", "--replicates", "100")
    assert code == Exit.FINE, text
    assert_damage_is_reported(code, text, "bad.parquet")


@settings(max_examples=60, **FIXED)  # type: ignore[arg-type]
@given(flip=flips)
def test_results_of_a_run_with_a_flipped_bit_are_read_or_name_the_file(
    thalweg: Run, tmp_path: Path, flip: tuple[bool, int, int]
) -> None:
    run = synthetic_runs.grid(tmp_path, 1, 1).write() if not (tmp_path / "run").exists() else tmp_path / "run"
    file = next((run / "flows").iterdir())
    content = file.read_bytes()
    file.write_bytes(flipped(content, flip))
    try:
        assert_damage_is_reported(*thalweg("results", run), name=file.name)
    finally:
        file.write_bytes(content)


@pytest.mark.parametrize("command", ["results", "report"])
def test_a_polars_panic_becomes_a_command_error(tmp_path: Path, command: str) -> None:
    run = synthetic_runs.grid(tmp_path, 1, 1).write()
    file = next((run / "flows").iterdir())
    # polars interprets the changed length of a page as exabytes.
    file.write_bytes(flipped(file.read_bytes(), (False, BYTE_OF_A_LENGTH, 0)))
    code, text = run_subprocess(command, run)
    assert code == Exit.USAGE, text
    assert_damage_is_reported(code, text, file.name)


def test_a_negative_value_count_in_a_parquet_page_names_the_file(records: tuple[Path, bytes]) -> None:
    folder, content = records
    bad = folder / "bad.parquet"
    # polars would try to allocate exabytes for it, and abort.
    bad.write_bytes(flipped(content, (False, SIGN_OF_A_COUNT, 0)))
    code, text = run_subprocess("records", folder)
    assert code == Exit.FAILED, text
    assert_damage_is_reported(code, text, bad.name)
    assert "negative number of values" in text


def test_a_footer_that_only_arrow_can_read_is_reported_as_damage(thalweg: Run, records: tuple[Path, bytes]) -> None:
    folder, content = records
    (folder / "bad.parquet").write_bytes(flipped(content, (True, FIELD_NAME, 2)))
    code, text = thalweg("records", folder)
    assert code == Exit.FINE, text
    assert "bad.parquet: it is damaged, or not a Parquet file" in text


@pytest.mark.parametrize("content", [b"", b"PAR1", b"no Parquet at all\n" * 9, None], ids=["empty", "4", "text", "cut"])
def test_an_incomplete_parquet_file_is_skipped(
    thalweg: Run, records: tuple[Path, bytes], content: bytes | None
) -> None:
    folder, intact = records
    (folder / "bad.parquet").write_bytes(intact[: len(intact) // 2] if content is None else content)
    for command in (["records", folder], ["advise", folder, "--by", "machine", "--replicates", "100"]):
        code, text = thalweg(*command)
        assert code == Exit.FINE, text
        assert "bad.parquet: it is damaged, or not a Parquet file" in text


def test_a_panic_is_a_read_error_without_a_stack_trace(capfd: pytest.CaptureFixture[str]) -> None:
    def panics() -> None:
        with reading():
            os.write(2, b"thread 'worker' panicked")
            raise pl.exceptions.PanicException("a panic")

    with pytest.raises(Unreadable):
        panics()
    with reading():
        os.write(2, b"a warning")
    assert capfd.readouterr().err == "a warning"


def test_ctrl_c_is_not_a_read_error() -> None:
    # A Spark session of other tests does not restore the signal handler.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt), reading():
            signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)


def test_non_finite_floats_of_a_run_are_null(tmp_path: Path) -> None:
    run = synthetic_runs.grid(tmp_path, 1, 1).write()
    (file,) = (run / "flows").iterdir()
    table = pl.read_parquet(file)
    for value in (float("nan"), float("inf"), float("-inf")):
        table.with_columns(goodput_bps=pl.lit(value), rtt_p95_us=pl.lit(value, pl.Float32)).write_parquet(file)
        assert open_run(run).flows().select("goodput_bps", "rtt_p95_us").row(0) == (None, None)
