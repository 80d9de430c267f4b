"""Valid and invalid claims over a sample of points."""

from pathlib import Path

import pytest
from thalweg import studies
from thalweg.errors import ThalwegErrors

SCENARIO = """\
name = "alone"
duration = "2s"
[path]
rate = "10Mbps"
rtt = "20ms"
[[flow]]
name = "bulk"
cc = "cubic"
[sweep]
rows = ["paths.csv"]
"flow.bulk.cc" = ["bbr", "cubic"]
"""

CLAIMS = """\
title = "Alone"
about = "One flow on its own."
[paper]
cite = "Author, Journal (2031)"
[parts.alone]
scenario = "alone.toml"
quick = { rows = ["few.csv"] }
[[claims]]
id = "a"
text = "b"
part = "alone"
value = { measure = "goodput", flow = "bulk", where = { "flow.bulk.cc" = "bbr" } }
against = { where = { "flow.bulk.cc" = "cubic" } }
judge = { %s }
"""

RIGHT = 'as = "ratio", over = "total", sample = true, at_least = 1'


def load(folder: Path, judge: str) -> studies.Study:
    (folder / "alone.toml").write_text(SCENARIO)
    (folder / "paths.csv").write_text("path.rtt,path.buffer\n10ms,1bdp\n20ms,2bdp\n40ms,1bdp\n")
    (folder / "few.csv").write_text("path.rtt,path.buffer\n10ms,1bdp\n")
    (folder / "claims.toml").write_text(CLAIMS % judge)
    return studies.load(folder)


def test_a_claim_may_cover_the_rows_of_a_file(tmp_path: Path) -> None:
    study = load(tmp_path, RIGHT)
    assert study.claims.claims[0].judge.sample
    assert study.documents["alone"].swept["path.rtt"] == ["10ms", "20ms", "40ms"]


@pytest.mark.parametrize(
    ("judge", "words"),
    [
        ('as = "ratio", over = "every", sample = true, at_least = 1', "`sample` requires `over` to be median"),
        ('as = "ratio", over = "max", sample = true, at_least = 1', "`sample` requires `over` to be median"),
        ('as = "ratio", over = "total", at_least = 1', '`over = "total"` requires `sample = true`'),
        ('as = "difference", over = "total", sample = true, at_least = 0', '`over = "total"` requires'),
    ],
)
def test_an_invalid_sample_is_refused(tmp_path: Path, judge: str, words: str) -> None:
    with pytest.raises(ThalwegErrors) as raised:
        load(tmp_path, judge)
    assert [words in error.message for error in raised.value.errors] == [True]
