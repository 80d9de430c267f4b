"""Which files and rows are read: each once; files that are left out are reported, except unfinished ones."""

import contextlib
import os
import resource
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import synthetic_records as synthetic
from thalweg.errors import Exit, ThalwegError
from thalweg.records import find, read, summarise, summary
from thalweg.records.schema import SCHEMA

Thalweg = Callable[..., Any]


def connections(*places: Path) -> list[int]:
    records = read(places)
    return sorted(records.collect(records.rows.select("connection"))[0]["connection"].to_list())


def test_files_are_concatenated_with_ordered_columns(tmp_path: Path) -> None:
    for number in range(40):
        synthetic.flushed(tmp_path / f"web{number % 3}", number, number, [synthetic.closed(number)])
    records = read([tmp_path])
    assert connections(tmp_path) == list(range(40))
    assert records.rows.collect_schema() == SCHEMA
    assert records.left_out == []


def test_a_file_given_twice_counts_once(tmp_path: Path) -> None:
    file = synthetic.flushed(tmp_path, 1, 1, [synthetic.closed(1)])
    assert connections(tmp_path, file, file) == [1]


def test_a_file_contained_in_another_is_skipped_and_reported(tmp_path: Path) -> None:
    parts = [synthetic.flushed(tmp_path, number, number, [synthetic.closed(number)]) for number in (1, 2, 3)]
    merged = synthetic.flushed(tmp_path, 1, 3, [synthetic.closed(number) for number in (1, 2, 3)])
    synthetic.flushed(tmp_path, 4, 4, [synthetic.closed(4)])
    # Flush numbers of another machine are unrelated to these.
    synthetic.flushed(tmp_path / "web2", 2, 2, [synthetic.closed(20)])
    assert connections(tmp_path) == [1, 2, 3, 4, 20]
    left_out = read([tmp_path]).left_out
    assert sorted(entry.file for entry in left_out) == parts
    assert all(merged.name in entry.why for entry in left_out)


def test_files_of_two_machines_in_one_folder_are_all_read(tmp_path: Path) -> None:
    """Numbers of flushes are times, so that a file of a busy machine lies within that of a quiet one."""
    hour = synthetic.flushed(tmp_path, 100, 3700, [synthetic.closed(n, machine="quiet") for n in (1, 2)])
    busy = synthetic.flushed(tmp_path, 200, 900, [synthetic.closed(n, machine="busy") for n in (2, 3)])
    older = synthetic.flushed(tmp_path, 150, 3600, [synthetic.closed(n, machine="other") for n in (7, 8, 9)])
    copy = synthetic.flushed(tmp_path, 300, 310, [synthetic.closed(3, machine="busy")])
    found = find.find([tmp_path])
    assert set(found.files) == {hour, busy, older}
    assert found.left_out == [find.LeftOutFile(copy, f"its rows are also in {busy.name}")]


def test_a_folder_copied_into_its_copy_is_read_once(tmp_path: Path) -> None:
    folder = tmp_path / "web1"
    first = synthetic.flushed(folder, 1, 2, [synthetic.closed(number) for number in (1, 2)])
    # Two machines can have files of one name and one size.
    other = synthetic.flushed(tmp_path / "web2", 1, 2, [synthetic.closed(number) for number in (3, 4)])
    shutil.copytree(folder, tmp_path / "again")
    shutil.move(tmp_path / "again", folder / "records")
    newer = synthetic.flushed(folder / "records", 3, 3, [synthetic.closed(5)])
    found = find.find([tmp_path])
    assert set(found.files) == {first, other, newer}
    copy = folder / "records" / first.name
    assert found.left_out == [find.LeftOutFile(copy, f"it is a copy of {first}")]
    assert connections(tmp_path) == [1, 2, 3, 4, 5]


def test_only_rows_that_meet_the_conditions_are_read(tmp_path: Path) -> None:
    rows = [synthetic.closed(n, direction="in" if n < 3 else "out", local_port=443 + n % 2) for n in range(1, 6)]
    synthetic.flushed(tmp_path, 1, 2, rows)
    records = read([tmp_path], (("direction", "in"), ("local_port", "444")))
    assert records.collect(records.rows.select("connection"))[0]["connection"].to_list() == [1]
    with pytest.raises(ThalwegError, match="no column `dir`"):
        read([tmp_path], (("dir", "in"),))


def test_conditions_of_the_summary_are_shown(thalweg: Thalweg, tmp_path: Path) -> None:
    rows = [synthetic.closed(n, direction="in" if n < 3 else "out") for n in range(1, 6)]
    synthetic.flushed(tmp_path / "web", 1, 2, rows)
    done = thalweg("records", "web", "--where", "direction=in", "--out", "web.html")
    assert "2 connections closed" in done.stdout
    assert "only rows with direction = in\n" in done.stdout
    assert "Only rows with direction = in count." in (tmp_path / "web.html").read_text()
    none = thalweg("records", "web", "--where", "direction=sideways")
    assert none.stderr.startswith("error[no-records]: no row has direction = sideways\n")
    assert thalweg("records", "web", "--where", "direction").returncode == Exit.USAGE


def test_a_file_within_an_unreadable_one_is_read(tmp_path: Path) -> None:
    part = synthetic.flushed(tmp_path, 1, 1, [synthetic.closed(1)])
    merged = synthetic.flushed(tmp_path, 1, 3, [synthetic.closed(number) for number in (1, 2, 3)])
    merged.write_bytes(merged.read_bytes()[:200])
    found = find.find([tmp_path])
    assert set(found.files) == {part}
    assert [file.file for file in found.left_out] == [merged]


def test_an_unfinished_file_is_ignored(tmp_path: Path) -> None:
    synthetic.flushed(tmp_path, 1, 1, [synthetic.closed(1)])
    (tmp_path / ".20261121T120010Z-0000000002-0000000002.parquet").write_bytes(b"PAR1 half")
    records = read([tmp_path])
    assert len(records.files) == 1
    assert records.left_out == []


def test_files_without_records_are_skipped_with_a_reason(tmp_path: Path) -> None:
    synthetic.flushed(tmp_path, 1, 1, [synthetic.closed(1)])
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 and no more")
    pl.DataFrame({"experiment": [1]}).write_parquet(tmp_path / "flows.parquet")
    synthetic.write(tmp_path / "texts.parquet", [synthetic.closed(2)])
    pl.read_parquet(tmp_path / "texts.parquet").with_columns(end_us=pl.lit("noon")).write_parquet(
        tmp_path / "texts.parquet"
    )
    reasons = {entry.file.name: entry.why for entry in read([tmp_path]).left_out}
    assert connections(tmp_path) == [1]
    assert "damaged" in reasons["broken.parquet"]
    assert "no column end_us" in reasons["flows.parquet"]
    assert "end_us is String" in reasons["texts.parquet"]


def test_an_empty_folder_is_an_error_with_a_command(tmp_path: Path) -> None:
    with pytest.raises(ThalwegError, match="there are no records") as caught:
        read([tmp_path])
    assert caught.value.exit_code == Exit.FAILED
    assert "thalweg-agent" in (caught.value.hint or "")


def test_a_missing_path_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ThalwegError, match="there is no file or folder"):
        read([tmp_path / "nowhere"])


def test_a_file_with_damaged_rows_is_reported(tmp_path: Path) -> None:
    synthetic.flushed(tmp_path, 1, 1, [synthetic.closed(1)])
    file = synthetic.flushed(tmp_path, 2, 2, [synthetic.closed(number) for number in range(2000)])
    content = bytearray(file.read_bytes())
    content[4 : len(content) // 3] = bytes(len(content) // 3 - 4)
    file.write_bytes(content)
    with pytest.raises(ThalwegError, match=file.name) as caught:
        connections(tmp_path)
    assert caught.value.code == "damaged-records"


def test_columns_missing_in_older_versions_are_empty(tmp_path: Path) -> None:
    synthetic.write(tmp_path / "a.parquet", [synthetic.closed(1)])
    old = pl.read_parquet(tmp_path / "a.parquet").drop("buffer_bdp", "cc")
    old.with_columns(connection=pl.lit(2, pl.Int64)).write_parquet(tmp_path / "b.parquet")
    records = read([tmp_path])
    (rows,) = records.collect(records.rows.sort("connection").select("connection", "cc", "buffer_bdp"))
    assert rows.rows() == [(1, "cubic", 1.0), (2, None, None)]


def test_a_timestamp_of_zero_is_unknown(tmp_path: Path) -> None:
    synthetic.write(tmp_path / "a.parquet", [synthetic.closed(1, end_us=0), synthetic.closed(2, start_us=0)])
    records = read([tmp_path])
    (rows,) = records.collect(records.rows.sort("connection").select("end_us", "start_us"))
    assert [list(map(bool, row)) for row in rows.rows()] == [[False, True], [True, False]]
    assert rows["end_us"][0] is None


def test_an_interim_row_that_occurs_twice_is_not_lost(tmp_path: Path) -> None:
    synthetic.flushed(tmp_path, 1, 1, [synthetic.interim(1, 1), synthetic.interim(1, 2)])
    synthetic.flushed(tmp_path, 3, 3, [synthetic.interim(1, 2)])
    records = read([tmp_path])
    (rows,) = records.collect(records.rows.select("connection", "end_us").unique())
    assert rows.height == 1
    assert records.superseded.height == 1


def test_only_the_last_sample_of_an_open_connection_counts(tmp_path: Path) -> None:
    looks = [synthetic.interim(1, minute, acked_bytes=minute) for minute in (1, 2, 3)]
    synthetic.flushed(tmp_path, 1, 1, [looks[2], looks[0], synthetic.transfer(1)])
    synthetic.flushed(tmp_path, 2, 2, [looks[1]])
    records = read([tmp_path])
    (rows,) = records.collect(records.rows.sort("kind").select("kind", "acked_bytes"))
    assert rows.rows() == [("interim", 3), ("transfer", 1_000_000)]
    assert records.superseded.height == 2


def test_a_close_row_replaces_all_samples(tmp_path: Path) -> None:
    end_us = synthetic.NOON_US + 2 * synthetic.MINUTE
    rows = [synthetic.interim(1, 1), synthetic.interim(1, 2), synthetic.closed(1, end_us=end_us)]
    synthetic.flushed(tmp_path, 1, 1, rows)
    records = read([tmp_path])
    (kinds,) = records.collect(records.rows.select("kind"))
    assert kinds["kind"].to_list() == ["close"]


def test_connection_ids_are_unique_per_host_and_start(tmp_path: Path) -> None:
    after = synthetic.NOON_US + 60 * synthetic.MINUTE
    rows = [
        synthetic.interim(1, 5),
        synthetic.interim(1, 9, machine="web2"),
        synthetic.interim(1, 9, machine=None),
        synthetic.closed(1, start_us=after, end_us=after + synthetic.SECOND),
    ]
    synthetic.flushed(tmp_path, 1, 1, rows)
    records = read([tmp_path])
    assert records.collect(records.rows.select(pl.len()))[0].item() == 4
    assert records.superseded.is_empty()


def test_a_file_that_is_merged_away_while_it_is_read_counts_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = [synthetic.flushed(tmp_path, number, number, [synthetic.closed(number)]) for number in (1, 2)]
    tries = []

    def merged_meanwhile(records: summary.Records) -> summary.Summary:
        if not tries:
            synthetic.flushed(tmp_path, 1, 2, [synthetic.closed(1), synthetic.closed(2)])
            for part in parts:
                part.unlink()
        tries.append(records)
        return summarise(records)

    monkeypatch.setattr(summary, "summarise", merged_meanwhile)
    assert summary.summary_of([tmp_path]).rows == 2
    assert len(tries) == 2


def test_a_file_that_is_merged_away_while_files_are_listed_counts_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = [synthetic.flushed(tmp_path, number, number, [synthetic.closed(number)]) for number in (1, 2)]
    schema_of = find._schema

    def merged_meanwhile(file: Path) -> pl.Schema | str:
        if parts:
            synthetic.flushed(tmp_path, 1, 2, [synthetic.closed(1), synthetic.closed(2)])
            while parts:
                parts.pop().unlink()
        return schema_of(file)

    monkeypatch.setattr(find, "_schema", merged_meanwhile)
    assert connections(tmp_path) == [1, 2]


def test_repeatedly_disappearing_files_are_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synthetic.flushed(tmp_path, 1, 1, [synthetic.closed(1)])

    def removed(records: summary.Records) -> summary.Summary:
        (file,) = records.files
        content = file.read_bytes()
        file.unlink()
        try:
            return summarise(records)
        finally:
            file.write_bytes(content)

    monkeypatch.setattr(summary, "summarise", removed)
    with pytest.raises(ThalwegError, match="was removed while"):
        summary.summary_of([tmp_path])


def test_rows_of_a_future_kind_are_skipped_and_reported(thalweg: Callable[..., Any], tmp_path: Path) -> None:
    rows = [synthetic.closed(1), synthetic.closed(2, kind="probe", acked_bytes=7), synthetic.closed(3, kind="probe")]
    file = synthetic.flushed(tmp_path / "r", 1, 1, rows)
    # The file has an additional column.
    pl.read_parquet(file).with_columns(jitter_us=pl.lit(5)).write_parquet(file)
    summary = summarise(read([tmp_path / "r"]))
    assert (summary.rows, summary.unknown_kinds) == (1, {"probe": 2})
    assert summary.algorithms["cubic"].acked_bytes == 1_000_000
    done = thalweg("records", "r")
    assert done.returncode == 0, done.stderr
    assert "left out: 2 rows of the kind `probe`" in done.stderr
    synthetic.flushed(tmp_path / "r", 1, 1, rows[1:])
    assert "2 of the kind `probe`" in thalweg("records", "r").stderr


def test_impossible_numbers_are_handled(thalweg: Callable[..., Any], tmp_path: Path) -> None:
    maximum = 2**64 - 1
    rows = [
        synthetic.closed(
            1, end_us=maximum, start_us=0, acked_bytes=maximum, sampled_one_in=2, busy_goodput_bps=float("inf")
        ),
        synthetic.closed(2, acked_bytes=maximum, busy_goodput_bps=float("nan"), buffer_bdp=-1.0, rtt_min_us=maximum),
    ]
    synthetic.flushed(tmp_path / "r", 1, 1, rows)
    done = thalweg("records", "r", "--out", "page.html")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "page.html").stat().st_size < 5_000_000
    assert summarise(read([tmp_path / "r"])).algorithms["cubic"].acked_bytes == pytest.approx(3 * maximum)


def test_more_files_are_read_than_may_be_open(tmp_path: Path) -> None:
    open_files = len(list(Path("/proc/self/fd").iterdir()))
    for number in range(200):
        synthetic.flushed(tmp_path, number, number, [synthetic.closed(number), synthetic.transfer(number)])
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (open_files + 100, limits[1]))
    try:
        summary = summarise(read([tmp_path]))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert (summary.files, summary.rows, summary.superseded) == (200, 400, 0)


@contextlib.contextmanager
def ordinary_user() -> Iterator[None]:
    """Drop root's privileges for the duration of the context."""
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(user)


@pytest.mark.parametrize("secret", ["r", "r/web1", "r/web1/20261121T120000Z-0000000001-0000000001.parquet"])
def test_unreadable_records_are_not_reported_as_absent(secret: str) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        synthetic.flushed(folder / "r" / "web1", 1, 1, [synthetic.closed(1)])
        (folder / secret).chmod(0)
        with ordinary_user(), pytest.raises(ThalwegError, match="this user may not read") as caught:
            read([folder / "r"])
        (folder / secret).chmod(0o755)
    assert "sudo cp -rT" in (caught.value.hint or "")
    assert caught.value.place == str(folder / secret)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_non_finite_floats_are_null(tmp_path: Path, value: float) -> None:
    names = [name for name, dtype in SCHEMA.items() if dtype.is_float()]
    file = synthetic.flushed(tmp_path, 1, 1, [synthetic.closed(1)])
    rows = pl.read_parquet(file)
    rows.with_columns(pl.lit(value).alias(name) for name in names).write_parquet(file)
    records = read([tmp_path])
    assert names
    assert records.collect(records.rows.select(names))[0].row(0) == (None,) * len(names)
    (algorithm,) = summarise(read([tmp_path])).algorithms.values()
    assert "busy_goodput" not in algorithm.spreads


def test_negative_integers_are_null(tmp_path: Path) -> None:
    file = synthetic.flushed(tmp_path, 1, 1, [synthetic.closed(1)])
    pl.read_parquet(file).with_columns(rtt_min_us=pl.lit(-1)).write_parquet(file)
    records = read([tmp_path])
    assert records.collect(records.rows.select("rtt_min_us"))[0].item() is None
