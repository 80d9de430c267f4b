"""The page of a study: its content, its escaping, and its figures in a browser."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import altair
import polars as pl
import pytest
from browsers import Watched
from playwright.sync_api import Browser
from synthetic_studies import figures, page
from thalweg.errors import Exit, ThalwegError
from thalweg.report.drawing.draw import draw
from thalweg.report.drawing.figure import Figure, Scaled
from thalweg.report.pages import study

PAGE = page()


def test_claims_are_counted_per_engine_without_those_that_could_not_run() -> None:
    sim, uml = study.headlines(PAGE)
    assert (sim.holds, sim.judged, sim.counts) == (1, 2, [("holds", 1), ("does not hold", 1)])
    assert (uml.holds, uml.judged, uml.counts) == (0, 1, [("not settled", 1), ("cannot run here", 1)])


def test_a_claim_that_fails_is_shown_failing_with_its_reason_and_the_papers_value() -> None:
    html = study.html(PAGE)
    row = html[html.index('id="claim-b"') : html.index('id="claim-c"')]
    for text in ("does not hold", "0.9 (0.8 to 1.0)", "n = 10", "2.0", "fig. 4", "no HyStart", "too long"):
        assert text in row
    assert "\N{BALLOT X}" in row


def test_the_story_is_escaped_and_fetches_nothing() -> None:
    evil = "<script>x()</script> [a](javascript:x()) [b](data:text/html,x) ![c](https://x/y.png) [d](claims.toml) [e](https://e/)"
    html = study.html(replace(PAGE, story=evil, url="javascript:x()", cite="<b>Author</b>"))
    story = html[html.index('id="story"') : html.index('id="made"')]
    assert "<script" not in story
    assert "<img" not in story
    assert story.count("href=") == 1
    assert 'href="https://e/"' in story
    assert "javascript:" not in html.partition("<script")[0]
    assert "&lt;b&gt;Author" in html


def test_only_a_quick_set_is_marked_at_the_top() -> None:
    assert "quick set" in study.html(replace(PAGE, is_quick=True))
    assert "quick set" not in study.html(PAGE)


def test_an_unwritable_page_is_reported_with_a_command(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ThalwegError) as caught:
        study.write(PAGE, tmp_path / "file" / "page.html")
    assert caught.value.code == "cannot-write"
    assert caught.value.exit_code == Exit.CANNOT_WRITE


def test_a_figure_without_its_columns_is_refused_with_its_name() -> None:
    with pytest.raises(ThalwegError, match="no column low, high"):
        Figure("fig2", "Times", "lines", pl.DataFrame({"x": [1], "y": [1.0]}))


def test_numbers_have_suitable_units_and_texts_keep_their_order() -> None:
    times, goodput, gain, *_ = (draw(figure) for figure in figures())
    assert times.rows[0]["y"] == 450
    assert times.rows[0]["text"] == "450 ms (414 to 486)"
    assert goodput.x_domain == ["0.5 BDP", "1 BDP", "2 BDP", "4 BDP", "8 BDP"]
    assert gain.x_domain == ["10", "20", "50", "100", "250", "500", "750", "1000"]
    assert gain.y_domain == ["200", "150", "100", "75", "50", "25", "10", "5"]


def test_an_outlier_cell_keeps_its_number_and_does_not_wash_out_colours() -> None:
    gain = draw(figures()[2])
    scale = gain.spec["spec"]["layer"][0]["encoding"]["color"]["scale"]
    assert 50 < scale["domain"][-1] < 200
    assert scale["domain"][2] == 0
    assert scale["domain"][0] == -scale["domain"][-1]
    assert {row["number"] for row in gain.rows} >= {"930"}
    assert "numbers do not" in gain.note


def test_nan_and_nonpositive_values_on_a_logarithmic_axis_are_omitted() -> None:
    rows = pl.DataFrame({"x": [0.0, 1.0, 2.0, 3.0], "y": [1.0, 2.0, float("nan"), float("inf")]})
    rows = rows.with_columns(low=pl.lit(None, pl.Float64), high=pl.lit(None, pl.Float64))
    drawing = draw(Figure("a", "A", "lines", rows, x=Scaled("x", is_log=True)))
    assert [row["x"] for row in drawing.rows] == [1.0]


def _whole(part: Any, names: dict[str, Any]) -> Any:
    if isinstance(part, str):
        return names.get(part[1:], part) if part.startswith("@") else part
    if isinstance(part, list):
        is_name = len(part) == 1 and isinstance(part[0], str) and part[0].startswith("@")
        return names[part[0][1:]] if is_name else [_whole(item, names) for item in part]
    return {key: _whole(value, names) for key, value in part.items()} if isinstance(part, dict) else part


@pytest.mark.parametrize("figure", figures(), ids=lambda figure: figure.kind)
def test_every_template_is_vega_lite(figure: Figure) -> None:
    names = {
        "names": ["a"], "colours": ["#000000"], "dashes": [[1, 0]], "shapes": ["circle"], "panels": ["a"],
        "x_domain": ["a"], "y_domain": ["a"], "t_domain": [0, 1], "gradient": 100, "ink": "#000000",
    }  # fmt: skip
    altair.Chart.from_dict(_whole(draw(figure).spec, names))  # raises an exception if the chart is invalid


def written(directory: Path, **changes: Any) -> Path:
    study.write(page(figures=figures(), **changes), directory / "page.html")
    return directory / "page.html"


@pytest.mark.parametrize("width", [1280, 390])
def test_every_figure_is_drawn_when_visible_without_errors_or_requests(
    browser: Browser, tmp_path: Path, width: int
) -> None:
    watched = Watched(browser, written(tmp_path), width).ready()
    for chart in watched.page.locator(".chart").all():
        chart.scroll_into_view_if_needed()
        chart.locator("svg .mark-group, svg .mark-rect").first.wait_for()
        box = chart.locator("svg").first.bounding_box()
        assert box is not None
        assert box["height"] > 80
        assert 0 < box["x"] + box["width"] <= width
    assert watched.overflow() == 0
    assert watched.complaints == []
    assert watched.requests == [watched.file]
    watched.page.close()


def test_the_papers_figure_is_cited_and_theory_is_dashed(browser: Browser, tmp_path: Path) -> None:
    shown = Watched(browser, written(tmp_path)).ready().page
    assert "Corresponds to the paper's Figure 7" in shown.locator("#figure-loss").inner_text()
    shown.locator("#figure-loss .chart").scroll_into_view_if_needed()
    shown.locator('#figure-loss path[stroke-dasharray="5,3"]').first.wait_for()
    shown.close()


def test_cells_show_their_numbers_if_they_fit(browser: Browser, tmp_path: Path) -> None:
    shown = Watched(browser, written(tmp_path)).ready().page
    shown.locator("#figure-gain .chart").scroll_into_view_if_needed()
    shown.locator("#figure-gain .mark-rect path").first.wait_for()
    assert shown.locator("#figure-gain .mark-rect.role-mark path").count() == 128
    assert shown.locator("#figure-gain svg text", has_text="930").count() == 1
    shown.close()


def test_lines_and_engines_can_be_hidden(browser: Browser, tmp_path: Path) -> None:
    watched = Watched(browser, written(tmp_path)).ready()
    page = watched.page
    chart = page.locator("#figure-times .chart")
    chart.scroll_into_view_if_needed()
    lines = chart.locator(".mark-line path")
    page.wait_for_function("() => document.querySelectorAll('#figure-times .mark-line path').length === 16")
    page.get_by_role("checkbox", name="cubic large, cubic medium").uncheck()
    page.wait_for_function("() => document.querySelectorAll('#figure-times .mark-line path').length === 12")
    page.get_by_role("combobox", name="engine").select_option("uml")
    page.wait_for_function("() => document.querySelectorAll('#figure-times .mark-line path').length === 6")
    assert lines.count() == 6
    assert watched.complaints == []
    page.close()


def test_a_time_series_figure_zooms_and_resets(browser: Browser, tmp_path: Path) -> None:
    watched = Watched(browser, written(tmp_path)).ready()
    page = watched.page
    figure = page.locator("#figure-rates")
    figure.scroll_into_view_if_needed()
    figure.locator(".mark-line path").first.wait_for()
    axis = "#figure-rates [aria-label^=X-axis] .role-axis-label text"
    last = f"[...document.querySelectorAll('{axis}')].at(-1)?.textContent"
    page.wait_for_function(f"() => Number({last}) > 10")
    figure.get_by_label("to (s)").fill("10")
    figure.get_by_label("to (s)").press("Enter")
    page.wait_for_function(f"() => Number({last}) <= 10")
    assert figure.get_by_role("button", name="Show the whole time").is_enabled()
    assert watched.complaints == []
    page.close()
