"""Parts of records, on connections with a planted truth instead of the simulator's."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from thalweg import synth
from thalweg.synth.planted import PLANTED, planted_pool
from thalweg.synth.pool import Pool

HEAD = """\
title = "A PoP"
about = "Records of a PoP."
[paper]
cite = "Author, Journal (2031)"
[parts.pop]
records = { by = ["class"], rows = 240_000, days = 2, repetitions = 3 }
quick = { rows = 60_000, repetitions = 2 }
"""

FASTER = """\
[[claims]]
id = "pop-faster"
text = "Within a PoP the treatment saves a fifth of the time."
part = "pop"
value = { measure = "completion_time_gain", where = { class = "intra-pop" } }
judge = { at_least = 0.1, at_most = 0.3 }
"""

APART = """\
[[claims]]
id = "apart"
text = "Wireless clients lose, and connections within a PoP gain."
part = "pop"
value = { measure = "completion_time_gain", where = { class = "intra-pop" } }
against = { where = { class = "wireless" } }
judge = { as = "difference", at_least = 0.1 }
"""

WRONG = """\
[[claims]]
id = "wireless-advised"
text = "The treatment is advised for wireless clients."
part = "pop"
value = { measure = "says_treatment", where = { class = "wireless" } }
judge = { at_least = 0.9 }
"""

FIGURE = """\
[[figures]]
id = "gains"
title = "Gains by class"
part = "pop"
kind = "bars"
value = { measure = "completion_time_gain" }
x = "class"
"""


@pytest.fixture
def planted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use connections of the truth `reversed`: wireless ones take 10 % more time, those of PoPs 20 % less."""
    ratios = PLANTED["reversed"].ratios
    pools = {kind.name: planted_pool(kind, ratios.get(kind.name, 1.0)) for kind in synth.CLASSES}

    def simulate(runs: Path, *, quick: bool, runner: object) -> Mapping[str, Pool]:
        return pools

    monkeypatch.setattr(synth, "simulate", simulate)


def study(folder: Path, *texts: str) -> None:
    (folder / "mine").mkdir(exist_ok=True)
    (folder / "mine" / "claims.toml").write_text("\n".join(texts))


@pytest.mark.usefixtures("planted")
def test_claims_are_judged_on_the_advice(thalweg: Callable[..., Any], tmp_path: Path) -> None:
    study(tmp_path, HEAD, FASTER, APART, WRONG, FIGURE)
    done = thalweg("reproduce", "mine", "--json")
    assert done.returncode == 0, done.stderr
    (document,) = json.loads(done.stdout)["studies"]
    claims = {claim["id"]: claim for claim in document["engines"][0]["claims"]}
    assert {name: claim["verdict"] for name, claim in claims.items()} == {
        "pop-faster": "holds",
        "apart": "holds",
        "wireless-advised": "does not hold",
    }
    faster = claims["pop-faster"]
    assert faster["n"] == 3
    assert faster["low"] < faster["value"] < faster["high"]
    assert claims["wireless-advised"]["value"] == 0
    assert "Gains by class" in Path(document["page"]).read_text()
    answers = json.loads((Path(document["engines"][0]["runs"]["pop"]) / "answers.json").read_text())
    wireless = next(part for part in answers[2]["parts"] if part["part"] == ["wireless"])
    assert wireless["verdict"] == "cubic"
    assert "less throughput" in wireless["reason"]


@pytest.mark.usefixtures("planted")
def test_quick_generates_fewer_records_and_reports_the_ratio(thalweg: Callable[..., Any], tmp_path: Path) -> None:
    study(tmp_path, HEAD, WRONG)
    done = thalweg("reproduce", "mine", "--quick", "--json")
    (document,) = json.loads(done.stdout)["studies"]
    assert document["engines"][0]["claims"][0]["n"] == 2
    assert "records 2 of 2" in done.stderr


@pytest.mark.usefixtures("planted")
def test_an_unknown_class_is_reported_with_the_known_ones(thalweg: Callable[..., Any], tmp_path: Path) -> None:
    study(tmp_path, HEAD, WRONG.replace('"wireless"', '"satellite"'))
    done = thalweg("reproduce", "mine", "--quick", "--json")
    (claim,) = json.loads(done.stdout)["studies"][0]["engines"][0]["claims"]
    assert claim["verdict"] == "cannot run here"
    assert "only at far-clean, far-lossy" in claim["note"]


def test_ctrl_c_during_the_simulation_exits_cleanly(
    thalweg: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(runs: Path, *, quick: bool, runner: object) -> Mapping[str, Pool]:
        raise KeyboardInterrupt

    monkeypatch.setattr(synth, "simulate", interrupted)
    study(tmp_path, HEAD, WRONG)
    done = thalweg("reproduce", "mine")
    assert done.returncode == 130
    assert "to resume" in done.stderr


@pytest.mark.usefixtures("planted")
def test_other_engines_have_no_records(thalweg: Callable[..., Any], tmp_path: Path) -> None:
    study(tmp_path, HEAD, WRONG)
    done = thalweg("reproduce", "mine", "--engine", "kernel", "--json")
    (claim,) = json.loads(done.stdout)["studies"][0]["engines"][0]["claims"]
    assert claim["verdict"] == "cannot run here"


@pytest.mark.parametrize(
    ("text", "other", "message"),
    [
        (
            'records = { by = ["class"], rows = 240_000, days = 2, repetitions = 3 }',
            "",
            "neither a scenario nor records",
        ),
        ("rows = 60_000", "row = 60_000", "did you mean `rows`"),
        ("rows = 60_000", 'rows = "many"', "in parts.pop"),
        ('measure = "says_treatment"', 'measure = "says_treatmnt"', "did you mean `says_treatment`"),
        ('measure = "says_treatment"', 'measure = "goodput"', "measure of records"),
        ('measure = "says_treatment"', 'measure = "says_treatment", flow = "bulk"', "remove `flow`"),
        ("class = ", "klass = ", "did you mean `class`"),
        ("class = ", "rtt_s = ", "names an unknown key"),
        ("[[claims]]", '[parts.pop.engines.kernel]\nwhy_not = "no"\n[[claims]]', "remove `engines`"),
        ('kind = "bars"', 'kind = "series"', "needs a part with a scenario"),
    ],
)
def test_a_mistake_is_reported_before_anything_runs(
    thalweg: Callable[..., Any], tmp_path: Path, text: str, other: str, message: str
) -> None:
    content = "\n".join([HEAD, WRONG, FIGURE])
    assert text in content
    study(tmp_path, content.replace(text, other))
    done = thalweg("reproduce", "mine")
    assert done.returncode == 2, done.stdout
    assert message in done.stderr
