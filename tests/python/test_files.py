"""Files named by users are read only if they are regular files of a bounded size."""

import os
from pathlib import Path

import pytest
from thalweg.errors import ThalwegError
from thalweg.files import read_regular
from thalweg.scenario import traces


def test_a_file_of_the_largest_size_is_read_and_a_larger_one_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"x" * 10)
    (tmp_path / "link").symlink_to(file)
    assert read_regular(tmp_path / "link", 10) == b"x" * 10
    with pytest.raises(ThalwegError, match="is larger than 9 bytes"):
        read_regular(file, 9)


def test_a_trace_that_is_a_pipe_or_a_device_is_refused_immediately(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for file in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(ThalwegError) as refused:
            traces.read(file)
        assert refused.value.code == "not-a-file"
        assert str(file) in refused.value.text()


def test_a_trace_that_is_a_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ThalwegError, match="cannot be read: is a directory"):
        traces.read(tmp_path)
