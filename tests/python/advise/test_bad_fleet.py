"""The fleet of bad files is as bad as it says: what other tests rest on."""

from pathlib import Path

import bad_fleet
import pytest
from thalweg import records
from thalweg.errors import ThalwegError


def test_bad_files_are_left_out_by_name_and_the_others_count(tmp_path: Path) -> None:
    fleet = bad_fleet.make(tmp_path, with_damage=False)
    found = records.read([tmp_path])
    assert set(found.files) == set(fleet.good)
    reasons = {each.file: each.why for each in found.left_out}
    assert set(reasons) == {*fleet.bad, *fleet.copies}
    for file, word in fleet.bad.items():
        assert word in reasons[file]
    assert found.all_rows.collect().height == fleet.rows


def test_damage_behind_a_good_end_is_seen_where_rows_are_read(tmp_path: Path) -> None:
    fleet = bad_fleet.make(tmp_path)
    found = records.read([tmp_path])
    assert set(fleet.damaged) <= set(found.files)
    with pytest.raises(ThalwegError, match="damaged"):
        found.collect(found.all_rows)
