"""The page of advice: its content, and its layout in a browser without network requests."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import synthetic_records as synthetic
from browsers import Watched
from playwright.sync_api import Browser
from synthetic_traffic import HOUR_US, Traffic, whole, write
from thalweg.advise import Answer, Design, Question, advise
from thalweg.advise.counting.segments import LOSS_TITLES, RTT_TITLES
from thalweg.report.pages import advice as page

MAX_BYTES = 5_000_000

WIDE = 1280
"""Window width in pixels at which the table of verdicts needs no horizontal scrolling."""


def lossy_gain(columns: Mapping[str, np.ndarray]) -> np.ndarray:
    return np.where(columns["is_far"], 0.75, 1.2)


def lives() -> pl.DataFrame:
    """Return connections with known acknowledged bytes at several ages."""
    rows = [
        synthetic.closed(n, cc=("bbr", "cubic")[n % 2], start_us=synthetic.NOON_US + n % 24 * HOUR_US)
        | {"acked_1s_bytes": 1_000_000 + n % 7 * 10_000 + n % 2 * 200_000, "acked_3s_bytes": 3_000_000 + n % 5 * 10_000}
        for n in range(400)
    ]
    return whole(pl.DataFrame(rows))


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> tuple[Answer, Path]:
    folder = tmp_path_factory.mktemp("advice")
    small = Traffic(effect=lossy_gain).frame()
    large = Traffic(effect=lossy_gain, size_bytes=(3_000_000, 9_000_000), seed=2).frame()
    write(folder / "some.parquet", pl.concat([small, large, lives()]))
    (folder / "torn.parquet").write_text("PAR1")
    answer = advise([folder], Question(replicates=300))
    page.write(answer, [folder], folder / "page.html")
    return answer, folder / "page.html"


@pytest.mark.parametrize("width", [WIDE, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_figure_is_drawn_without_errors_or_requests(
    browser: Browser, found: tuple[Answer, Path], width: int, scheme: str
) -> None:
    watched = Watched(browser, found[1], width, color_scheme=scheme).ready()
    charts = watched.page.locator(".chart").all()
    for chart in charts:
        chart.scroll_into_view_if_needed()
        chart.locator("svg .mark-line path, svg .mark-rect path, svg .mark-symbol path").first.wait_for()
        box = chart.locator("svg").first.bounding_box()
        assert box is not None
        assert box["height"] > 80
        assert 0 < box["x"] + box["width"] <= width
    assert len(charts) == 10
    assert watched.overflow() == 0
    if width == WIDE:
        assert (
            watched.page.evaluate("(s => s.scrollWidth - s.clientWidth)(document.querySelector('#parts .scroll'))") == 0
        )
    assert watched.complaints == []
    assert watched.requests == [watched.file]
    watched.page.close()


def test_the_page_starts_with_the_verdict_and_lists_skipped_files(found: tuple[Answer, Path]) -> None:
    answer, file = found
    html = file.read_text()
    assert answer.headline in html
    assert html.index('id="map"') < html.index('id="parts"') < html.index("torn.parquet was left out")
    assert "What to change to bbr first" in html
    assert file.stat().st_size < MAX_BYTES


def test_the_page_counts_rows_with_an_externally_chosen_algorithm(tmp_path: Path) -> None:
    frame = Traffic().frame()
    free = frame.head(1234).with_columns(assignment=pl.lit("untouched"))
    write(tmp_path / "some.parquet", pl.concat([frame, free]))
    answer = advise([tmp_path], Question(replicates=100))
    assert "1,234 rows were left out: an application, a route" in page.html(answer, [tmp_path])
    assert "an application, a route" not in page.html(replace(answer, untouched=0), [tmp_path])
    others = replace(answer, other_algorithms={"reno": 1234})
    assert "Not compared: 1,234 rows of reno." in page.html(others, [tmp_path])


@pytest.mark.parametrize("width", [WIDE, 390])
def test_every_column_and_row_of_the_map_has_its_label(
    browser: Browser, found: tuple[Answer, Path], tmp_path: Path, width: int
) -> None:
    answer = found[0]
    whole_map = [
        replace(answer.map[0], names=(rtt, loss), values=(column, row))
        for column, rtt in enumerate(RTT_TITLES)
        for row, loss in enumerate(LOSS_TITLES)
    ]
    page.write(replace(answer, map=whole_map), [tmp_path], tmp_path / "page.html")
    watched = Watched(browser, tmp_path / "page.html", width).ready()
    figure = watched.page.locator("#figure-map-completion-time")
    figure.scroll_into_view_if_needed()
    figure.locator("svg .mark-rect path").first.wait_for()
    # Vega hides labels that do not fit.
    shown = figure.locator("svg .role-axis-label text:not([opacity='0'])").all_text_contents()
    assert {*RTT_TITLES, *LOSS_TITLES} <= set(shown)
    watched.page.close()


def test_rows_can_be_sorted_and_searched(browser: Browser, found: tuple[Answer, Path]) -> None:
    watched = Watched(browser, found[1]).ready()
    rows = watched.page.locator("#parts tbody tr")
    gains = watched.page.locator("#parts tbody tr td:nth-child(5)")
    heading = watched.page.locator("#parts thead").get_by_role("button", name="gain", exact=True)
    heading.click()
    down = [float(text.rstrip("%")) for text in gains.all_inner_texts()]
    heading.click()
    up = [float(text.rstrip("%")) for text in gains.all_inner_texts()]
    assert down == sorted(down, reverse=True)
    assert up == sorted(up)
    watched.page.get_by_role("searchbox").fill("throughput cubic")
    shown = [row for row in rows.all() if row.is_visible()]
    assert len(shown) == sum(
        comparison.verdict == "cubic" and metric == "throughput"
        for part in found[0].parts
        for metric, comparison in part.comparisons.items()
    )
    watched.page.close()


def test_an_activation_is_marked_in_the_time_series(tmp_path: Path, browser: Browser) -> None:
    frame = Traffic(hours=96, share=lambda columns: (columns["hour"] >= 48) * 1.0, effect=lambda _: 0.8).frame()
    write(tmp_path / "some.parquet", frame)
    design = Design("before-after", synthetic.NOON_US + 48 * HOUR_US)
    answer = advise([tmp_path], Question(segments=(), design=design, replicates=200))
    page.write(answer, [tmp_path], tmp_path / "page.html")
    watched = Watched(browser, tmp_path / "page.html").ready()
    figure = watched.page.locator("#figure-time-completion-time")
    figure.scroll_into_view_if_needed()
    figure.locator("svg .mark-line path").first.wait_for()
    assert "activation" in figure.locator(".legend").inner_text()
    watched.page.close()


def test_user_text_is_escaped(tmp_path: Path) -> None:
    frame = Traffic(changes={"machine": "<script>alert(1)</script>"}).frame()
    write(tmp_path / "some.parquet", frame)
    answer = advise([tmp_path], Question(segments=("machine",), replicates=200))
    assert "<script>alert" not in page.html(answer, [tmp_path])
