"""Output of `thalweg synth cdn`: the requested number of rows, of plausible connections."""

import hashlib
import ipaddress
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from synthetic import classes, read, world, written
from thalweg import records, synth
from thalweg.cli.live.synth import runs_beside
from thalweg.errors import Exit, ThalwegError
from thalweg.records.schema import SCHEMA
from thalweg.synth import fleet as writing

Thalweg = Callable[..., Any]


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fleet")
    written(folder)
    return folder


def bytes_of(folder: Path) -> dict[str, str]:
    files = sorted((folder / synth.RECORDS).rglob("*.parquet"))
    return {str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def test_the_number_of_rows_is_as_requested(fleet: Path) -> None:
    result = records.read([fleet / synth.RECORDS])
    assert result.all_rows.select(pl.len()).collect().item() == 20_000


def test_a_small_number_of_rows_is_as_requested(tmp_path: Path) -> None:
    for rows in (1, 7):
        written(tmp_path / str(rows), rows=rows)
        result = records.read([tmp_path / str(rows) / synth.RECORDS])
        assert result.all_rows.select(pl.len()).collect().item() == rows


def test_the_columns_are_those_of_records(fleet: Path) -> None:
    for file in (fleet / synth.RECORDS).rglob("*.parquet"):
        assert pl.read_parquet_schema(file) == dict(SCHEMA)


def test_files_are_partitioned_and_of_skewed_sizes(fleet: Path) -> None:
    files = list((fleet / synth.RECORDS).glob("day=*/pop=*/*.parquet"))
    assert len(files) == 2 * 5 * 2 * 4
    rows = sorted(pl.scan_parquet(file).select(pl.len()).collect().item() for file in files)
    assert rows[-1] > 10 * rows[0]


def test_the_same_seed_writes_the_same_bytes_on_any_number_of_threads(tmp_path: Path) -> None:
    for name, seed, threads in (("one", 3, 1), ("two", 3, 4), ("other", 4, 1)):
        synth.write(world(3_000, seed=seed), tmp_path / name, threads=threads)
    assert bytes_of(tmp_path / "one") == bytes_of(tmp_path / "two")
    assert not set(bytes_of(tmp_path / "one").values()) & set(bytes_of(tmp_path / "other").values())


def test_a_connection_is_the_sum_of_its_transfers(fleet: Path) -> None:
    rows = read(fleet)
    key = ["machine", "connection"]
    transfers = (
        rows.filter(pl.col("kind") == "transfer")
        .group_by(key)
        .agg(
            pl.col("acked_bytes", "segments", "retransmits", "fct_us").sum(),
            pl.col("start_us").min().alias("first_us"),
            pl.col("end_us").max().alias("last_us"),
        )
    )
    closed = rows.filter(pl.col("kind") == "close")
    both = closed.join(transfers, on=key, suffix="_sum")
    assert both.height == transfers.height
    for column in ("acked_bytes", "segments", "retransmits"):
        assert both[column].equals(both[f"{column}_sum"])
    assert both["busy_us"].equals(both["fct_us_sum"])
    assert (both["start_us"] <= both["first_us"]).all()
    assert (both["end_us"] >= both["last_us"]).all()


def test_every_connection_closes_once_and_its_interim_rows_are_replaced(fleet: Path) -> None:
    everything = records.read([fleet / synth.RECORDS]).all_rows.collect()
    assert everything.filter(pl.col("kind") == "interim").height > 0
    rows = read(fleet)
    assert not rows.filter(pl.col("kind") == "interim").height
    closed = rows.filter(pl.col("kind") == "close")
    assert closed.height == closed.n_unique(["machine", "connection"])
    transfers = rows.filter(pl.col("kind") == "transfer").select("machine", "connection").unique()
    assert transfers.join(closed, on=["machine", "connection"], how="anti").is_empty()


def test_times_and_rates_are_consistent(fleet: Path) -> None:
    rows = read(fleet)
    assert (rows["end_us"] - rows["start_us"]).equals(rows["duration_us"].alias("end_us"))
    transfers = rows.filter(pl.col("kind") == "transfer")
    rate = 8e6 * transfers["acked_bytes"] / transfers["fct_us"]
    assert (rate - transfers["goodput_bps"]).abs().max() < 1e-6 * rate.max()
    ages = rows.filter(pl.col("kind") == "close").select("acked_1s_bytes", "acked_3s_bytes", "acked_bytes").drop_nulls()
    assert ages.height > 100
    assert (ages["acked_1s_bytes"] <= ages["acked_3s_bytes"]).all()
    assert (ages["acked_3s_bytes"] <= ages["acked_bytes"]).all()


def test_every_address_is_in_the_table_of_prefixes_with_its_class(fleet: Path) -> None:
    table = pl.read_csv(fleet / synth.PREFIXES)
    listed = [(ipaddress.ip_network(network), name) for network, name in table.select("network", "class").iter_rows()]
    addresses = classes(read(fleet)).select("remote_address", "class").unique()
    for address, name in addresses.iter_rows():
        network = ipaddress.ip_network(address)
        of = {prefix for place, prefix in listed if place.version == network.version and network.subnet_of(place)}
        assert of == {name}


def test_existing_records_are_not_overwritten(tmp_path: Path, thalweg: Thalweg) -> None:
    generated = thalweg("synth", "cdn", "--truth", "none", "--rows", "500", "--out", "synthetic", "--json")
    assert generated.returncode == Exit.FINE
    assert json.loads(generated.stdout)["rows"] == 500
    before = bytes_of(tmp_path / "synthetic")
    again = thalweg("synth", "cdn", "--truth", "none", "--rows", "600", "--out", "synthetic")
    assert again.returncode == Exit.CANNOT_WRITE
    assert "error[exists]" in again.stderr
    assert "rm -r synthetic/records" in again.stderr
    assert bytes_of(tmp_path / "synthetic") == before


def test_an_incomplete_generation_leaves_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, calls = writing.write_piece, []

    def full(fleet: synth.Fleet, piece: Any, file: Path) -> None:
        calls.append(file)
        if len(calls) == 5:
            raise OSError(28, "No space left on device")
        real(fleet, piece, file)

    monkeypatch.setattr(writing, "write_piece", full)
    with pytest.raises(ThalwegError, match="no space left on device"):
        synth.write(world(1_000), tmp_path / "new" / "fleet", threads=1)
    assert len(calls) >= 5
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--truth", "tinny"], "did you mean `tiny`?"),
        (["--design", "abc", "--truth", "none"], "did you mean `ab`?"),
        (["--truth", "paradox", "--design", "switchback"], "determine the assignment of algorithms"),
        (["--truth", "none", "--design", "before-after", "--days", "1"], "--days 2"),
        (["--truth", "none", "--quick"], "--quick has no effect"),
    ],
)
def test_invalid_parameters_are_reported(thalweg: Thalweg, tmp_path: Path, arguments: list[str], message: str) -> None:
    done = thalweg("synth", "cdn", "--out", "synthetic", *arguments)
    assert done.returncode == Exit.USAGE
    assert message in done.stderr
    assert not (tmp_path / "synthetic").exists()


@pytest.mark.parametrize("out", ["synthetic", "made/up", ".", "..", "made/.."])
def test_runs_are_outside_the_records_folder(out: str) -> None:
    assert not runs_beside(Path(out)).resolve().is_relative_to(Path(out).resolve())
