"""Decision trees and policies of a study on the command line."""

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

SCENARIO = """\
name = "alone"
duration = "6s"
sample_interval = "0s"
[path]
rate = "20Mbps"
rtt = "100ms"
[[flow]]
name = "bulk"
cc = "cubic"
[sweep]
"path.buffer" = ["0.02bdp", "0.03bdp", "0.04bdp", "2bdp", "3bdp", "4bdp"]
"flow.bulk.cc" = ["cubic", "bbr"]
"""

CLAIMS = """\
title = "Alone"
about = "One flow on its own."
[paper]
cite = "Author, Journal (2031)"
[parts.alone]
scenario = "alone.toml"

[[claims]]
id = "shallow"
text = "BBR is ahead in a shallow buffer."
part = "alone"
value = { measure = "goodput", flow = "bulk", where = { "flow.bulk.cc" = "bbr", buffer_bdp = { at_most = 0.05 } } }
against = { where = { "flow.bulk.cc" = "cubic" } }
judge = { as = "gain", at_least = 0.1 }

[[claims]]
id = "everywhere"
text = "BBR gets ten times as much everywhere."
part = "alone"
value = { measure = "goodput", flow = "bulk", where = { "flow.bulk.cc" = "bbr" } }
against = { where = { "flow.bulk.cc" = "cubic" } }
judge = { as = "ratio", at_least = 10 }

[tree]
part = "alone"
value = { measure = "goodput", flow = "bulk", where = { "flow.bulk.cc" = "bbr" } }
against = { where = { "flow.bulk.cc" = "cubic" } }
as = "gain"
level = 0.1
above = "bbr"
below = "cubic"
folds = 2
source = "fig. 9"
paper = "shallow: bbr"
learn = [{ name = "One question", features = ["buffer_bdp"], depth = 1 }]

[policy]
about = "What follows."
default = "cubic"
[[policy.rules]]
name = "shallow"
algorithm = "bbr"
when = { buffer_bdp = { at_most = 0.05 } }
reason = "r"
source = "s"
claims = ["shallow"]
[[policy.rules]]
name = "all"
algorithm = "bbr"
when = { rtt_s = { at_least = 0 } }
reason = "r"
source = "s"
claims = ["everywhere"]
"""


@pytest.fixture
def mine(tmp_path: Path) -> Callable[[str], None]:
    """Return a function that writes the study `mine`."""

    def write(claims: str = CLAIMS) -> None:
        (tmp_path / "mine").mkdir(exist_ok=True)
        (tmp_path / "mine" / "alone.toml").write_text(SCENARIO)
        (tmp_path / "mine" / "claims.toml").write_text(claims)

    return write


def test_page_and_output_show_the_tree_and_the_page_shows_the_policy(
    thalweg: Callable[..., Any], mine: Callable[..., None], tmp_path: Path
) -> None:
    mine()
    done = thalweg("reproduce", "./mine", "--json")
    assert done.returncode == 0, done.stderr
    study = json.loads(done.stdout)["studies"][0]
    trees = study["engines"][0]["trees"]
    assert trees["labels"] == {"bbr": 3, "cubic": 3}
    assert trees["learned"][0]["rules"][1] == "    bbr   (3 of 3 points)"
    page = (tmp_path / study["page"]).read_text()
    assert "buffer_bdp &lt;= 1.02" in page
    assert "shallow: bbr" in page
    assert "# Left out: all (everywhere: does not hold)" in page


def test_a_policy_contains_the_rules_that_hold(
    thalweg: Callable[..., Any], mine: Callable[..., None], tmp_path: Path
) -> None:
    mine()
    done = thalweg("reproduce", "./mine", "--policy", "policy.toml")
    assert done.returncode == 0, done.stderr
    assert [rule["name"] for rule in tomllib.loads((tmp_path / "policy.toml").read_text())["rules"]] == ["shallow"]


def test_a_study_without_a_policy_is_refused_before_running(
    thalweg: Callable[..., Any], mine: Callable[..., None], tmp_path: Path
) -> None:
    mine(CLAIMS[: CLAIMS.index("[policy]")])
    done = thalweg("reproduce", "./mine", "--policy", "policy.toml")
    assert done.returncode == 2
    assert "no policy follows from the study `mine`" in done.stderr
    assert not (tmp_path / "runs").exists()


def test_a_policy_of_several_engines_is_refused(thalweg: Callable[..., Any], mine: Callable[..., None]) -> None:
    mine()
    done = thalweg("reproduce", "./mine", "--engine", "all", "--policy", "policy.toml")
    assert done.returncode == 2
    assert "--policy needs one study and one engine" in done.stderr


@pytest.mark.parametrize(
    ("wrong", "right", "message"),
    [
        ('claims = ["shalow"]', 'claims = ["shallow"]', "did you mean `shallow`?"),
        ('features = ["bufer_bdp"]', 'features = ["buffer_bdp"]', "did you mean `buffer_bdp`?"),
        ("when = { bufer_bdp", "when = { buffer_bdp", "buffer_bdp"),
    ],
)
def test_a_mistake_in_a_tree_or_policy_is_reported(
    thalweg: Callable[..., Any], mine: Callable[..., None], wrong: str, right: str, message: str
) -> None:
    mine(CLAIMS.replace(right, wrong))
    done = thalweg("reproduce", "./mine")
    assert done.returncode == 2
    assert message in done.stderr
