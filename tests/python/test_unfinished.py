"""Folders of unfinished work are kept while their process runs, and removed afterwards."""

import os
import subprocess
import sys
from pathlib import Path

from thalweg.report.files import replace
from thalweg.scratch import Scratch


def left(parent: Path, name: str) -> Path:
    """Create an empty, unlocked folder."""
    folder = parent / name
    folder.mkdir()
    return folder


def test_an_unlocked_empty_folder_is_removed(tmp_path: Path) -> None:
    empty = left(tmp_path, "some-ab12cd3_.part")
    (left(tmp_path, "some-ab12cd34.part") / "half").write_text("of it")
    with Scratch("some-", tmp_path) as folder:
        assert not empty.exists()
        assert list(tmp_path.iterdir()) == [folder]
    assert not list(tmp_path.iterdir())


def test_only_folders_with_the_expected_name_are_removed(tmp_path: Path) -> None:
    names = {
        "some-ab12cd34",
        "some-my-pictures.part",
        "other-ab12cd34.part",
        "some-.ab12cd34.part",
        "some-ab12cd34.part2",
    }
    for name in names:
        left(tmp_path, name)
    (tmp_path / "some-ab12cd35.part").write_text("a file")
    elsewhere = left(tmp_path, "elsewhere")
    (tmp_path / "some-ab12cd36.part").symlink_to(elsewhere)
    Scratch("some-", tmp_path).remove()
    remaining = {file.name for file in tmp_path.iterdir()}
    assert remaining == names | {"elsewhere", "some-ab12cd35.part", "some-ab12cd36.part"}


def test_a_folder_in_use_stays(tmp_path: Path) -> None:
    with Scratch("some-", tmp_path) as mine, Scratch("some-", tmp_path) as other:
        assert mine.is_dir()
        assert other.is_dir()


MANY = """\
import sys
from pathlib import Path
from thalweg.scratch import Scratch
for _ in range(100):
    with Scratch("some-", Path(sys.argv[1])) as folder:
        (folder / "mine").touch()
        assert (folder / "mine").exists()
"""


def test_concurrently_created_folders_are_kept(tmp_path: Path) -> None:
    processes = [subprocess.Popen([sys.executable, "-c", MANY, str(tmp_path)]) for _ in range(4)]
    assert [process.wait() for process in processes] == [0] * 4
    assert not list(tmp_path.iterdir())


def test_leftovers_of_a_page_are_removed_on_the_next_write(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    (left(tmp_path, ".page.html.ab12cd34.part") / "page.html").write_text("half of it")
    replace(page, b"whole")
    assert list(tmp_path.iterdir()) == [page]
    assert page.read_bytes() == b"whole"
    umask = os.umask(0)
    os.umask(umask)
    assert page.stat().st_mode & 0o777 == 0o666 & ~umask
