"""The page of a study without a browser: what it says, and what it lets through."""

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from thalweg.errors import Exit, ThalwegError
from thalweg.report import study
from thalweg.report.figure import Figure
from thalweg.report.study import Claim, Judged, Made, Section, StudyPage

PAGE = StudyPage(
    name="made-up",
    title="A mixed workload",
    about="A large flow meets medium flows.",
    cite="Somebody et al., A Mixed Workload (2018)",
    url="https://doi.org/10.1000/1",
    story="# A mixed workload\n\n## What they did\n\nThey *measured*.\n",
    engines=["sim", "uml"],
    claims=[
        Claim("a", "Large yields.", "fig. 3", "by half", [Judged("sim", "holds", "0.52 (0.48 to 0.56)", 10)]),
        Claim(
            "b",
            "Medium wins.",
            "fig. 4",
            "2.0",
            [Judged("sim", "does not hold", "0.9 (0.8 to 1.0)", 10), Judged("uml", "cannot run here", note="too long")],
            reason="The simulator has no HyStart.",
        ),
        Claim("c", "Nothing else.", "fig. 5", "0", [Judged("uml", "not settled", "0.1 (-0.1 to 0.3)", 3)]),
    ],
    made=[Made("sim", "0.1.0", "thalweg reproduce made-up", seconds=12.34, experiments=80, scaled=["1 s, not 60 s."])],
    sections=[Section("A tree", "`a`")],
)


def test_each_engine_has_its_count_of_claims_that_hold_without_those_that_could_not_run() -> None:
    sim, uml = study.headlines(PAGE)
    assert (sim.holds, sim.judged, sim.counts) == (1, 2, [("holds", 1), ("does not hold", 1)])
    assert (uml.holds, uml.judged, uml.counts) == (0, 1, [("not settled", 1), ("cannot run here", 1)])


def test_a_claim_that_fails_is_shown_failing_with_its_reason_and_the_papers_value() -> None:
    html = study.html(PAGE)
    row = html[html.index('id="claim-b"') : html.index('id="claim-c"')]
    for text in ("does not hold", "0.9 (0.8 to 1.0)", "n = 10", "2.0", "fig. 4", "no HyStart", "too long"):
        assert text in row
    assert "\N{BALLOT X}" in row


def test_the_story_cannot_become_script_or_fetch_anything() -> None:
    evil = "<script>x()</script> [a](javascript:x()) [b](data:text/html,x) ![c](https://x/y.png) [d](claims.toml) [e](https://e/)"
    html = study.html(replace(PAGE, story=evil, url="javascript:x()", cite="<b>Somebody</b>"))
    story = html[html.index('id="story"') : html.index('id="made"')]
    assert "<script" not in story
    assert "<img" not in story
    assert story.count("href=") == 1
    assert 'href="https://e/"' in story
    assert "javascript:" not in html.partition("<script")[0]
    assert "&lt;b&gt;Somebody" in html


def test_a_quick_set_says_so_at_the_top_and_the_full_one_does_not() -> None:
    assert "quick set" in study.html(replace(PAGE, is_quick=True))
    assert "quick set" not in study.html(PAGE)


def test_a_page_that_cannot_be_written_says_what_to_type(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ThalwegError) as caught:
        study.write(PAGE, tmp_path / "file" / "page.html")
    assert caught.value.code == "cannot-write"
    assert caught.value.exit_code == Exit.CANNOT_WRITE


def test_a_figure_without_its_columns_is_refused_by_name() -> None:
    with pytest.raises(ThalwegError, match="no column low, high"):
        Figure("fig2", "Times", "lines", pl.DataFrame({"x": [1], "y": [1.0]}))
