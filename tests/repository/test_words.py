"""The word check rejects text that is not plain English, and its limits can only decrease."""

import tomllib
from pathlib import Path

import check_words
import pytest

LIST = """\
[[pattern]]
name = "nobody"
regex = '\\b[Nn]obody\\b'
instead = "the subject"
limit = 1

[[pattern]]
name = "Give"
regex = '\"\"\"Give '
instead = "`Return`"
suffixes = [".py"]
limit = 0

[[allowed]]
pattern = "nobody"
file = "accounts.md"
reason = "the name of a user of Unix"
"""


@pytest.fixture
def listed(tmp_path: Path) -> Path:
    file = tmp_path / "words.toml"
    file.write_text(LIST)
    return file


def messages(listed: Path, **files: str) -> list[str]:
    texts = {name.replace("_", "."): text.splitlines() for name, text in files.items()}
    return list(check_words.violations(check_words.patterns(listed), texts))


def test_a_use_above_the_limit_is_reported_with_a_replacement(listed: Path) -> None:
    first, *places = messages(listed, a_rs="// Nobody knows.\n// ok\n// nobody else", b_md='"""Give it')
    assert first == "`nobody`: 1 uses above the limit of 1; write the subject"
    assert places == ["    a.rs:1: // Nobody knows.", "    a.rs:3: // nobody else"]


def test_a_limit_that_is_too_high_is_refused_and_can_be_lowered(listed: Path) -> None:
    assert messages(listed) == ["`nobody`: 0 uses, below the limit 1; run: check_words.py --lower"]
    check_words.lower(check_words.patterns(listed), {}, listed)
    assert [pattern.limit for pattern in check_words.patterns(listed)] == [0, 0]
    assert messages(listed) == []


def test_a_pattern_of_one_kind_of_file_and_an_allowed_file_are_respected(listed: Path) -> None:
    lines = messages(listed, a_py='def f():\n    """Give it."""\n# nobody', accounts_md="nobody nobody")
    assert lines[0].startswith("`Give`: 1 uses above the limit of 0")
    assert len(lines) == 2


def test_the_line_length_is_not_checked_in_code_blocks_and_markup(listed: Path) -> None:
    listed.write_text(
        LIST.replace('name = "nobody"', 'name = "long line"').replace('pattern = "nobody"', 'pattern = "long line"')
    )
    text = "Nobody.\n\n```sh\nsu nobody\n```\n\n    su nobody\n\nAnd nobody."
    _, *places = messages(listed, a_md=text, b_j2="nobody", c_css="nobody")
    assert places == ["    a.md:1: Nobody.", "    a.md:9: And nobody."]


def test_every_exception_has_a_reason_and_a_pattern() -> None:
    listed = tomllib.loads(check_words.FILE.read_text())
    names = {entry["name"] for entry in listed["pattern"]}
    for entry in listed.get("allowed", ()):
        assert entry["pattern"] in names
        assert len(entry["reason"]) > 10
        assert (check_words.ROOT / entry["file"]).is_file()
