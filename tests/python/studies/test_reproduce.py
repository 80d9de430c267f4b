"""`thalweg reproduce` as a user calls it, on small studies of the user's own."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

SCENARIO = """\
name = "alone"
duration = "2s"
repetitions = 3
start_jitter = "1rtt"
[path]
rate = "10Mbps"
rtt = "20ms"
[[flow]]
name = "bulk"
cc = "cubic"
size = "unlimited"
[sweep]
"path.buffer" = ["1bdp", "4bdp"]
"flow.bulk.cc" = ["cubic", "bbr"]
"""

HEAD = """\
title = "Alone"
about = "One flow on its own."
[paper]
cite = "Nobody, Nowhere (2031)"
[parts.alone]
scenario = "alone.toml"
quick = { repetitions = 2, "path.buffer" = ["4bdp"] }
"""

QUEUE = """\
[[claims]]
id = "cubic-fills-the-queue"
text = "CUBIC keeps more in the queue than BBR."
paper = "far more"
part = "alone"
value = { measure = "queueing_delay", where = { "flow.bulk.cc" = "cubic", "path.buffer" = "4bdp" } }
against = { where = { "flow.bulk.cc" = "bbr" } }
judge = { as = "ratio", at_least = 1.5 }
"""

WRONG = """\
[[claims]]
id = "cubic-is-idle"
text = "CUBIC leaves the link idle."
part = "alone"
value = { measure = "utilisation", where = { "flow.bulk.cc" = "cubic" } }
judge = { at_most = 0.1 }
"""

Study = Callable[..., Path]


@pytest.fixture
def study(tmp_path: Path) -> Study:
    """Writes the study `mine` with some claims."""

    def write(*claims: str, head: str = HEAD, scenario: str = SCENARIO) -> Path:
        folder = tmp_path / "mine"
        folder.mkdir(exist_ok=True)
        (folder / "alone.toml").write_text(scenario)
        (folder / "claims.toml").write_text(head + "".join(claims))
        return folder

    return write


def test_each_claim_is_told_with_its_number_and_its_verdict(thalweg: Callable[..., Any], study: Study) -> None:
    study(QUEUE, WRONG)
    done = thalweg("reproduce", "./mine")
    assert done.returncode == 0, done.stderr
    assert "cubic-fills-the-queue" in done.stdout
    assert "far more" in done.stdout
    assert "sim: 1 holds, 1 does not hold" in done.stdout


def test_an_unknown_study_is_answered_with_those_there_are(thalweg: Callable[..., Any]) -> None:
    done = thalweg("reproduce", "itc18-mixed-workloads")
    assert done.returncode == 2
    assert "did you mean `itc18-mixed-workload`?" in done.stderr


def test_a_mistake_names_the_key_the_line_and_what_was_meant(thalweg: Callable[..., Any], study: Study) -> None:
    study(QUEUE.replace("queueing_delay", "queuing_delay"))
    done = thalweg("reproduce", "./mine")
    assert done.returncode == 2
    assert "`claims.0.value.measure` names no measure: `queuing_delay`" in done.stderr
    assert "mine/claims.toml:13" in done.stderr
    assert "did you mean `queueing_delay`?" in done.stderr
