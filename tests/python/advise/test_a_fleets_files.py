"""`thalweg advise` on a fleet's folder: hundreds of files of very different sizes, some of them damaged."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import bad_fleet
import polars as pl
import pyarrow.parquet as pq
import pytest
from bad_fleet import BadFleet
from thalweg import synth

ROWS = 150_000


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> tuple[BadFleet, int]:
    """Return two weeks of files of five PoPs, by day and PoP, including bad files of all kinds, and the number of valid
    rows.
    """
    place = tmp_path_factory.mktemp("fleet")
    synth.write(synth.make(synth.Settings(ROWS, days=14, truth="none")), place)
    folder = place / synth.RECORDS
    files = sorted(folder.rglob("*.parquet"))
    counts = {file: pq.read_metadata(file).num_rows for file in files}
    assert len(files) > 300
    assert max(counts.values()) > 10 * min(counts.values())
    bad = bad_fleet.make(folder)
    rows = ROWS + bad.rows
    largest = sorted(files, key=lambda file: -counts[file])
    for file in largest[:3]:  # an incomplete upload
        rows -= counts[file]
        content = file.read_bytes()
        file.write_bytes(content[: len(content) * 2 // 3])
        bad.bad[file] = "damaged"
    for file in largest[3:6]:  # files of an agent that was not upgraded
        pl.read_parquet(file).drop(bad_fleet.OLDER).write_parquet(file)
    return bad, rows


def named(document: dict[str, Any]) -> dict[Path, str]:
    return {Path(file["file"]): file["why"] for file in document["left_out"]}


def test_advise_counts_valid_files_and_names_every_invalid_one(
    thalweg: Callable[..., Any], fleet: tuple[BadFleet, int]
) -> None:
    files, rows = fleet
    done = thalweg("advise", str(files.folder), "--by", "pop", "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    why = named(document)
    assert set(why) == {*files.bad, *files.copies, *files.damaged}
    assert all(why.values()), "each with its reason"
    assert document["rows"] == rows
    assert {part["part"][0] for part in document["parts"]} >= set(synth.clients.POPS)


def test_text_output_names_the_first_invalid_files_and_counts_the_rest(
    thalweg: Callable[..., Any], fleet: tuple[BadFleet, int]
) -> None:
    files, _ = fleet
    done = thalweg("advise", str(files.folder), "--by", "pop")
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stderr.splitlines() if line.startswith("left out: ")]
    count = len(files.bad) + len(files.copies) + len(files.damaged)
    assert len(lines) == 6
    assert lines[-1] == f"left out: {count - 5} more files"


def test_only_invalid_files_is_an_error_that_names_one(thalweg: Callable[..., Any], tmp_path: Path) -> None:
    files = bad_fleet.make(tmp_path / "records")
    for file in [*files.good, *files.copies]:
        file.unlink()
    done = thalweg("advise", str(files.folder))
    assert done.returncode != 0
    assert any(file.name in done.stderr for file in [*files.bad, *files.damaged])
