"""The pages of the studies match claims.toml and found.json."""

import json
from pathlib import Path

import pytest
from generating import study_pages
from thalweg import studies
from thalweg.studies import Study
from website.hooks import with_story

CLAIMS = """\
title = "Alone"
about = "One flow on its own."
[paper]
cite = "Author, Journal (2031)"
url = "https://example.org/paper"
[parts.alone]
scenario = "alone.toml"
[parts.alone.engines.uml]
scaled = "half the rate"
[[claims]]
id = "fills"
text = "It fills the | link."
source = "fig. 1"
paper = 0.9
reason = "The buffer is too small."
part = "alone"
value = { measure = "utilisation" }
judge = { at_least = 0.9 }
[[claims]]
id = "alone"
text = "It has all."
paper = "everything"
part = "alone"
value = { measure = "share", flow = "bulk" }
judge = { at_least = 0.9 }
"""

SCENARIO = """\
name = "alone"
duration = "1s"
[path]
rate = "10Mbps"
rtt = "20ms"
[[flow]]
name = "bulk"
cc = "cubic"
"""


def entry(verdict: str, value: float) -> dict[str, object]:
    return {"verdict": verdict, "value": value, "low": value - 0.1, "high": value + 0.1, "n": 5, "points": 1}


def recorded(*claims: dict[str, object]) -> dict[str, object]:
    named = dict(zip(("fills", "alone"), claims, strict=False))
    return {"result_version": "3", "seconds": 12.0, "experiments": 40, "claims": named}


@pytest.fixture
def study(tmp_path: Path) -> Study:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "claims.toml").write_text(CLAIMS)
    (folder / "alone.toml").write_text(SCENARIO)
    engines = {
        "uml": {"quick": recorded(entry("not settled", 0.85))},
        "sim": {
            "quick": recorded(entry("does not hold", 0.1), entry("holds", 0.95)),
            "full": recorded(entry("does not hold", 0.5), entry("holds", 1.0)),
        },
    }
    (folder / "found.json").write_text(json.dumps({"format": 1, "engines": engines}))
    return studies.load(folder)


def test_a_page_has_the_larger_set_of_each_engine(study: Study) -> None:
    page = study_pages.page(study)
    assert "- ✗ **sim** 50 % [40, 60], n=5" in page
    assert "**sim** 100 % [90, 110], n=5" in page
    assert "- ~ **uml (quick)** 85 % [75, 95], n=5" in page
    assert "sim** 10 %" not in page, "the quick set of an engine that has a full one is left out"


def test_a_page_contains_the_story_with_valid_links(study: Study) -> None:
    (study.folder / "README.md").write_text(
        "# Alone\n\nA story: [tables](../../docs/studies/mine.md), [bbr3](../../docs/concepts/bbr3.md), "
        "[other](../../docs/studies/other.md), [its story](../other/README.md), [paths](paths.csv).\n"
    )
    folder = study.folder.parent / "studies"
    folder.mkdir()
    study.folder.rename(folder / "mine")
    page = with_story(study_pages.page(studies.load(folder / "mine")), folder.parent)
    assert "A story: [tables](#claims), [bbr3](../concepts/bbr3.md), [other](other.md), [its story](other.md)," in page
    assert "[paths](../../studies/mine/paths.csv)." in page
    assert page.count("# Alone\n") == 1


def test_a_claim_confirmed_by_every_engine_is_listed_with_its_value(study: Study) -> None:
    results = json.loads((study.folder / "found.json").read_text())
    results["engines"]["uml"]["quick"]["claims"]["alone"] = entry("cannot run here", 0.0)
    (study.folder / "found.json").write_text(json.dumps(results))
    page = study_pages.page(study)
    assert "- `alone`: It has all. **sim** 100 % [90, 110], n=5\n" in page
    assert page.index("- `fills`") < page.index("### Confirmed") < page.index("- `alone`")


def test_the_front_page_counts_verdicts_by_engine(study: Study) -> None:
    rows = study_pages.front([study]).splitlines()
    assert "| [mine](mine.md) | sim | 2 | 1 | 1 | 0 | 0 |" in rows
    assert "| [mine](mine.md) | uml (quick) | 1 | 0 | 0 | 1 | 0 |" in rows


def test_the_page_of_a_study_explains_failed_claims_and_scaling(study: Study) -> None:
    page = study_pages.page(study)
    assert "- Why: The buffer is too small." in page
    assert "- **uml** alone: half the rate" in page
    assert "thalweg reproduce mine --engine uml" in page


def test_the_page_of_a_study_that_the_simulator_cannot_run_names_its_engine(study: Study) -> None:
    found = json.loads((study.folder / "found.json").read_text())
    del found["engines"]["sim"]
    (study.folder / "found.json").write_text(json.dumps(found))
    page = study_pages.page(study)
    assert "thalweg reproduce mine --engine uml   # --quick" in page
    assert "thalweg reproduce mine   # --quick" not in page


def test_an_interval_in_a_different_unit_than_its_value_has_its_unit(study: Study) -> None:
    results = json.loads((study.folder / "found.json").read_text())
    goodput = 'measure = "goodput", flow = "bulk"'
    text = (study.folder / "claims.toml").read_text().replace('measure = "utilisation"', goodput)
    (study.folder / "claims.toml").write_text(text)
    results["engines"]["uml"]["quick"]["claims"]["fills"] |= {"value": 1.2e6, "low": 9e5, "high": 1.5e6}
    (study.folder / "found.json").write_text(json.dumps(results))
    assert "1.2 Mbit/s [900 kbit/s, 1.5 Mbit/s], n=5" in study_pages.page(studies.load(study.folder))


def test_the_page_of_a_study_without_results_says_so(study: Study) -> None:
    (study.folder / "found.json").unlink()
    assert "No results are recorded yet." in study_pages.page(study)
    assert "[Alone](mine.md)" in study_pages.front([study])


def test_the_front_page_has_the_total_duration_if_every_one_is_known(study: Study) -> None:
    together = "On the simulator, all studies together took 24 s with `--quick`, and 24 s without"
    assert together in study_pages.front([study, study])
    results = json.loads((study.folder / "found.json").read_text())
    results["engines"]["sim"]["quick"]["seconds"] = None
    (study.folder / "found.json").write_text(json.dumps(results))
    assert "all studies together" not in study_pages.front([study])
