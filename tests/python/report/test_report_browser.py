"""The report in a real browser, with network requests recorded."""

import json
from pathlib import Path

import polars as pl
import pytest
from browsers import Watched
from playwright.sync_api import Browser, Page
from synthetic_runs import SyntheticRun, an_id, experiment, flow, grid, large_and_medium
from thalweg import analysis, report
from thalweg.report.text.numbers import scale_for
from thalweg.results import open_run

WIDTHS = [1280, 390]
CHARTS = 3 + 2 + 4 + 3
"""Number of charts: 3 measures of all flows; 2 of the path; 4 time series; 3 distributions."""


@pytest.fixture(scope="session")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("study")
    report.write([large_and_medium(directory / "run", repetitions=3).write()], directory / "report.html")
    return directory


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_chart_is_drawn_without_errors_or_requests(
    browser: Browser, study: Path, width: int, scheme: str
) -> None:
    watched = Watched(browser, study / "report.html", width, color_scheme=scheme).drawn()
    for chart in watched.page.locator("[data-figure]").all():
        chart.scroll_into_view_if_needed()
        chart.locator("svg.marks").wait_for()
    boxes = [svg.bounding_box() for svg in watched.page.locator(".chart-wrapper svg").all()]
    assert len(boxes) == CHARTS
    for box in boxes:
        assert box is not None
        assert box["height"] > 80
        assert 0 < box["x"] + box["width"] <= width
    marks = watched.page.locator(".mark-rect path, .mark-line path, .mark-area path").count()
    assert marks > 5 * CHARTS
    assert watched.complaints == []
    assert watched.requests == [watched.file]
    watched.page.close()


def test_the_queue_chart_shows_capacity_and_drops(browser: Browser, study: Path) -> None:
    page = Watched(browser, study / "report.html").drawn().page
    queue = page.locator('[data-kind="queue"]')
    assert queue.locator(".mark-rule.role-mark line").count() == 1
    assert queue.locator(".mark-rect.role-mark path").count() > 5
    page.close()


@pytest.mark.parametrize("width", WIDTHS)
def test_the_page_never_scrolls_sideways_and_the_table_scrolls_in_its_box(
    browser: Browser, study: Path, width: int
) -> None:
    page = Watched(browser, study / "report.html", width).drawn().page
    overflow = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert overflow == 0
    table, box = page.locator("table").bounding_box(), page.locator(".scroll").bounding_box()
    assert table is not None
    assert box is not None
    assert box["width"] <= width
    assert (table["width"] > box["width"]) == (width < 600)
    page.close()


def test_the_numbers_on_the_page_are_those_of_the_analysis(browser: Browser, study: Path) -> None:
    page = Watched(browser, study / "report.html").page
    cells = page.locator("td[data-mean]").evaluate_all(
        """cells => cells.map((cell) => ({
            ...cell.parentElement.dataset, measure: cell.dataset.measure, text: cell.innerText,
            isOfFlow: cell.classList.contains("of-flow"),
        }))"""
    )
    summary = analysis.summary(open_run(study / "run"))
    for cell in cells:
        rows = summary.filter(pl.col("measure") == cell["measure"])
        flow = pl.col("flow").eq_missing(pl.lit(cell["flow"] if cell["isOfFlow"] else None))
        row = rows.filter(pl.col("experiment") == int(cell["experiment"]), flow).row(0, named=True)
        scale = scale_for(row["unit"], rows["mean"], ((rows["high"] - rows["low"]) / 2).drop_nulls())
        mean, _, half = cell["text"].partition("±")
        half_width = (row["high"] - row["low"]) / 2 / scale.size
        assert float(mean) == round(row["mean"] / scale.size, scale.decimals)
        assert float(half) == pytest.approx(half_width, abs=0.51 * 10**-scale.decimals)
    assert len(cells) == 20 * (2 * 4 + 2)
    page.close()


def test_a_single_point_with_one_repetition_is_drawn_without_errors(browser: Browser, tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run", [experiment(flows=[flow("a"), flow("b", "bbr")])])
    for name, cc in (("a", "cubic"), ("b", "bbr")):
        run.transfer(0, 0, name, cc=cc)
        for t_us in range(0, 1_000_001, 10_000):
            run.sample(0, 0, t_us, name, acked_bytes=t_us)
    report.write([run.write()], tmp_path / "report.html")
    watched = Watched(browser, tmp_path / "report.html").drawn()
    assert watched.page.locator("#charts .chart-wrapper svg").count() == 3
    assert watched.page.locator("select").count() == 0
    assert watched.complaints == []
    watched.page.close()


def test_selecting_another_point_draws_it(browser: Browser, study: Path) -> None:
    watched = Watched(browser, study / "report.html").drawn()
    page = watched.page
    cwnd, cdf = page.locator('[data-kind="cwnd"]'), page.locator('[data-kind="cdf"]').first
    before = cwnd.inner_html(), cdf.inner_html(), page.locator(".replay").inner_text()
    page.get_by_role("combobox", name="cc of large").select_option("cubic")
    page.wait_for_function("before => document.querySelector('[data-kind=cdf]').innerHTML !== before", arg=before[1])
    after = cwnd.inner_html(), cdf.inner_html(), page.locator(".replay").inner_text()
    assert all(a != b for a, b in zip(before, after, strict=True))
    assert ".experiment == 10 and" in after[2]
    assert watched.complaints == []
    page.close()


def changed(page: Page, selector: str, before: str) -> None:
    """Wait until the content of an element changes."""
    page.wait_for_function(
        "([selector, before]) => document.querySelector(selector).innerHTML !== before", arg=[selector, before]
    )


def times(page: Page, kind: str) -> tuple[float, float]:
    """Return the first and the last time on the axis of a chart."""
    labels = page.locator(f'[data-kind="{kind}"] .role-axis-label').first.locator("text").all_text_contents()
    return float(labels[0]), float(labels[-1])


@pytest.mark.parametrize("width", WIDTHS)
def test_dragging_zooms_all_charts_until_reset(browser: Browser, study: Path, width: int) -> None:
    watched = Watched(browser, study / "report.html", width).drawn()
    page = watched.page
    cwnd, rtt = '[data-kind="cwnd"]', '[data-kind="rtt"]'
    reset = page.get_by_role("button", name="Show the whole time")
    assert reset.is_disabled()
    page.locator(cwnd).scroll_into_view_if_needed()
    unzoomed, before = page.locator(cwnd).inner_html(), page.locator(rtt).inner_html()
    path = "svg .mark-line path"
    points = page.locator(f"{cwnd} {path}").first.get_attribute("d") or ""
    box = page.locator(f"{cwnd} path.background").first.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 4, box["y"] + 40)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 60, steps=4)
    assert page.locator(".brush").is_visible()
    page.mouse.up()
    changed(page, cwnd, unzoomed)
    changed(page, rtt, before)
    end = json.loads(page.locator("#data").text_content() or "")["series"]["entries"][0]["end"]
    shown = [float(page.get_by_label(name).input_value()) for name in ("from (s)", "to (s)")]
    assert shown == pytest.approx([end / 4, end / 2], rel=0.03)
    assert times(page, "cwnd")[0] >= shown[0]
    assert times(page, "cwnd")[1] <= shown[1]
    assert page.locator(".brush").count() == 0
    assert (page.locator(f"{cwnd} {path}").first.get_attribute("d") or "") != points
    zoomed = page.locator(cwnd).inner_html()
    reset.click()
    changed(page, cwnd, zoomed)
    assert (page.locator(f"{cwnd} {path}").first.get_attribute("d") or "") == points
    assert watched.overflow() == 0
    assert watched.complaints == []
    page.close()


def test_the_keyboard_zooms_pans_and_resets(browser: Browser, study: Path) -> None:
    watched = Watched(browser, study / "report.html").drawn()
    page = watched.page
    unzoomed = page.locator('[data-kind="rate"]').inner_html()
    page.get_by_label("from (s)").focus()
    page.keyboard.type("2")
    page.keyboard.press("Enter")
    changed(page, '[data-kind="rate"]', unzoomed)
    assert page.get_by_label("from (s)").input_value() == "2"
    page.get_by_role("button", name="Zoom in").press("Enter")
    zoomed = page.locator('[data-kind="rate"]').inner_html()
    page.get_by_role("button", name="Earlier").press("Enter")
    changed(page, '[data-kind="rate"]', zoomed)
    page.get_by_role("button", name="Show the whole time").press("Enter")
    page.wait_for_function("() => document.querySelector('#zoom input').value === '0'")
    assert watched.complaints == []
    page.close()


def test_a_flow_can_be_hidden_and_shown(browser: Browser, study: Path) -> None:
    watched = Watched(browser, study / "report.html").drawn()
    page = watched.page
    lines, legend = page.locator('[data-kind="rate"] .mark-line path'), page.locator("#point-legend")
    assert lines.count() == 2
    legend.get_by_role("checkbox", name="medium").uncheck()
    page.wait_for_function("() => document.querySelectorAll('[data-kind=rate] .mark-line path').length === 1")
    legend.get_by_role("checkbox", name="large").uncheck()
    page.get_by_text("No flow shown here has this quantity.").first.wait_for()
    legend.get_by_role("checkbox", name="medium").check()
    page.wait_for_function("() => document.querySelectorAll('[data-kind=rate] .mark-line path').length === 1")
    assert watched.complaints == []
    page.close()


def test_a_selected_quantity_is_drawn_and_an_unrecorded_one_is_not_offered(browser: Browser, tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run", [experiment(flows=[flow("a", "bbr")])])
    run.transfer(0, 0, "a", cc="bbr")
    for t_us in range(0, 1_000_001, 10_000):
        run.sample(0, 0, t_us, "a", acked_bytes=t_us)
        run.state(0, 0, t_us, "pacing_gain", 1.25 if t_us % 80_000 else 0.75, "a")
    report.write([run.write()], tmp_path / "report.html")
    watched = Watched(browser, tmp_path / "report.html").drawn()
    page = watched.page
    assert page.locator('[data-kind="gain"] svg').count() == 0
    page.get_by_role("checkbox", name="Pacing gain").check()
    page.locator('[data-kind="gain"] .mark-line path').wait_for()
    assert page.get_by_role("checkbox", name="Pacing rate").count() == 0
    assert page.get_by_role("checkbox", name="Bandwidth estimate").count() == 0
    assert watched.complaints == []
    page.close()


def test_a_point_can_be_selected_with_the_keyboard(browser: Browser, study: Path) -> None:
    page = Watched(browser, study / "report.html").drawn().page
    page.get_by_role("combobox", name="buffer").focus()
    page.keyboard.press("ArrowDown")
    page.wait_for_function("() => document.querySelector('.replay').textContent.includes('.experiment == 1 and')")
    page.close()


def test_without_javascript_text_and_table_are_visible(browser: Browser, study: Path) -> None:
    page = Watched(browser, study / "report.html", java_script_enabled=False).page
    assert page.locator("tbody tr").count() == 40
    assert page.locator(".findings li").count() >= 4
    assert page.get_by_text("need JavaScript").is_visible()
    assert not page.locator("#charts").is_visible()
    page.close()


def test_text_from_files_cannot_run_script(browser: Browser, tmp_path: Path) -> None:
    evil = '</script><img src=x onerror="document.title=\'taken\'"><b id="evil">'
    run = large_and_medium(tmp_path / "run", repetitions=2)
    run.plan |= {"name": evil, "about": evil, "scenario_toml": evil}
    for entry in run.plan["experiments"]:
        entry["sweep"] = {
            f"flow.{evil}.cc": entry["sweep"]["flow.large.cc"],
            f"path.{evil}": entry["sweep"]["path.buffer"] + evil,
        }
        entry["flows"][1]["name"] = evil
    for rows in run._rows.values():
        for row in rows:
            if row.get("flow") == "medium":
                row["flow"] = evil
    report.write([run.write()], tmp_path / "report.html")
    watched = Watched(browser, tmp_path / "report.html").drawn()
    assert watched.page.locator("#evil").count() == 0
    assert watched.page.title().startswith(evil)
    assert watched.page.locator("h1").inner_text() == evil
    assert watched.requests == [watched.file]
    assert watched.complaints == []
    watched.page.close()


def test_two_engines_are_panels_and_a_selector(browser: Browser, tmp_path: Path) -> None:
    sim = large_and_medium(tmp_path / "sim", repetitions=2)
    kernel = large_and_medium(tmp_path / "kernel", repetitions=2, engine="kernel", slower=1.2)
    own = {"relay_lateness_p99_us": 80, "relay_dropped_packets": 0, "sampling_cpu_percent": 1.5}
    kernel.events = [{"event": "finished", "id": an_id(0, 0), "measured": own}]
    report.write([sim.write(), kernel.write()], tmp_path / "report.html")
    watched = Watched(browser, tmp_path / "report.html").drawn()
    page = watched.page
    chart = page.locator("#charts .chart").first
    chart.scroll_into_view_if_needed()
    chart.locator("svg.marks").wait_for()
    labels = chart.locator("svg text").all_text_contents()
    assert len([text for text in labels if text.startswith("sim")]) == 4
    assert len([text for text in labels if text.startswith("kernel")]) == 4
    assert page.locator("#upkeep tbody tr").all_inner_texts()[0].startswith("kernel\tLateness")
    assert page.locator("#upkeep tbody tr").count() == 3
    before = page.locator('[data-kind="cdf"]').first.inner_html()
    page.get_by_role("combobox", name="engine").select_option("kernel")
    page.wait_for_function("before => document.querySelector('[data-kind=cdf]').innerHTML !== before", arg=before)
    assert watched.complaints == []
    page.close()


@pytest.mark.parametrize("width", WIDTHS)
def test_two_ordered_dimensions_are_a_heat_map_with_the_number_in_each_cell(
    browser: Browser, tmp_path: Path, width: int
) -> None:
    report.write([grid(tmp_path).write()], tmp_path / "report.html")
    watched = Watched(browser, tmp_path / "report.html", width).drawn()
    page = watched.page
    page.locator("#maps .chart").first.scroll_into_view_if_needed()
    cells = page.locator("#maps .chart").first.locator(".mark-rect.role-mark path")
    cells.first.wait_for()
    assert cells.count() == 9
    texts = page.locator("#maps .chart").first.locator(".mark-text.role-mark text").all_text_contents()
    assert sorted(texts) == sorted(["1.3", "2.7", "4"] * 3)
    assert watched.overflow() == 0
    assert watched.complaints == []
    page.close()


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("bars", [3, 12, 40])
def test_every_bar_keeps_its_label(browser: Browser, tmp_path: Path, width: int, bars: int) -> None:
    labels = [f"trace-{number}.up" for number in range(bars)]
    run = SyntheticRun(
        tmp_path / "run",
        [experiment(number, flows=[flow("a")], sweep={"path.trace": label}) for number, label in enumerate(labels)],
    )
    for number in range(bars):
        run.transfer(number, 0, "a", cc="cubic")
    report.write([run.write()], tmp_path / "report.html")
    watched = Watched(browser, tmp_path / "report.html", width).drawn()
    chart = watched.page.locator('#charts .chart[data-measure="goodput"]')
    shown = chart.locator(".role-axis-label text").all_text_contents()
    assert [text for text in shown if text.startswith("trace-")] == labels
    visible = chart.locator(".role-axis-label text").evaluate_all(
        "texts => texts.filter((each) => getComputedStyle(each).opacity !== '0').length"
    )
    assert visible == len(shown)
    assert watched.overflow() == 0
    assert watched.complaints == []
    watched.page.close()
