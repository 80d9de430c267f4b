"""The fleet of bad files has the faults on which other tests rely."""

from pathlib import Path

import bad_fleet
import pytest
from thalweg import records
from thalweg.errors import ThalwegError


def test_invalid_files_are_skipped_and_named(tmp_path: Path) -> None:
    fleet = bad_fleet.make(tmp_path, with_damage=False)
    rows = records.read([tmp_path])
    assert set(rows.files) == set(fleet.good)
    reasons = {left_out.file: left_out.why for left_out in rows.left_out}
    assert set(reasons) == {*fleet.bad, *fleet.copies}
    for file, word in fleet.bad.items():
        assert word in reasons[file]
    assert rows.all_rows.collect().height == fleet.rows


def test_damage_before_a_valid_footer_is_detected_when_rows_are_read(tmp_path: Path) -> None:
    fleet = bad_fleet.make(tmp_path)
    rows = records.read([tmp_path])
    assert set(fleet.damaged) <= set(rows.files)
    with pytest.raises(ThalwegError, match="damaged"):
        rows.collect(rows.all_rows)
