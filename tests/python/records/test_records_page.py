"""The page about records: its content, and its layout in a browser without network requests."""

from pathlib import Path

import polars as pl
import pytest
import synthetic_records as synthetic
from browsers import Watched
from playwright.sync_api import Browser
from thalweg.errors import Exit, ThalwegError
from thalweg.records import read, summarise
from thalweg.report.drawing.records_figures import figures
from thalweg.report.pages import records as page

MAX_BYTES = 5_000_000
"""Maximum size of a page, for any number of rows."""


@pytest.fixture(scope="module")
def day(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("day")
    synthetic.flushed(folder, 1, 1, synthetic.a_day())
    (folder / "torn.parquet").write_text("PAR1")
    page.write(summarise(read([folder])), [folder], folder / "page.html")
    return folder


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_figure_is_drawn_without_errors_or_requests(browser: Browser, day: Path, width: int, scheme: str) -> None:
    watched = Watched(browser, day / "page.html", width, color_scheme=scheme).ready()
    charts = watched.page.locator(".chart").all()
    for chart in charts:
        chart.scroll_into_view_if_needed()
        chart.locator("svg .mark-line path").first.wait_for()
        box = chart.locator("svg").first.bounding_box()
        assert box is not None
        assert box["height"] > 80
        assert 0 < box["x"] + box["width"] <= width
    assert len(charts) == 8
    assert watched.overflow() == 0
    assert watched.complaints == []
    assert watched.requests == [watched.file]
    watched.page.close()


def test_an_algorithm_can_be_hidden(browser: Browser, day: Path) -> None:
    watched = Watched(browser, day / "page.html").ready()
    figure = watched.page.locator("#figure-busy-goodput")
    figure.scroll_into_view_if_needed()
    paths = "document.querySelectorAll('#figure-busy-goodput .mark-line path').length"
    watched.page.wait_for_function(f"() => {paths} === 2")
    figure.get_by_role("checkbox", name="cubic").uncheck()
    watched.page.wait_for_function(f"() => {paths} === 1")
    watched.page.close()


def test_the_page_lists_present_missing_and_doubtful_values(day: Path) -> None:
    html = (day / "page.html").read_text()
    assert "400 connections and 400 transfers" in html
    for text in ("torn.parquet was left out", "not verdicts", "web2", "timed out", "by the peer", "<code>netns</code>"):
        assert text in html
    assert "One in 1 connections was recorded" not in html


def test_the_numbers_on_the_page_are_those_of_the_summary(browser: Browser, day: Path) -> None:
    watched = Watched(browser, day / "page.html")
    table = watched.page.locator("#algorithms table")
    names = table.locator("thead th").all_inner_texts()[1:]
    row = table.locator("tbody tr", has_text="Smallest RTT (ms)").locator("td").all_inner_texts()
    algorithms = summarise(read([day])).algorithms
    assert sorted(names) == ["bbr", "cubic"]
    for name, text in zip(names, row, strict=True):
        assert float(text.split()[0]) == pytest.approx(
            algorithms[name].spreads["rtt_min"].quantile(0.5) * 1e3, rel=1e-3
        )
    assert watched.page.locator("#algorithms .scroll").evaluate("box => box.scrollWidth <= box.clientWidth")
    watched.page.close()


def test_names_from_records_cannot_become_markup(tmp_path: Path) -> None:
    synthetic.flushed(tmp_path, 1, 1, [synthetic.closed(n, cc="<img src=x>", machine="</script>") for n in range(9)])
    html = page.html(summarise(read([tmp_path])), [tmp_path / "<b>"])
    assert "<img" not in html.partition("<script")[0]
    assert "<b>" not in html
    assert "&lt;/script&gt;" in html


def test_records_with_few_columns_have_a_page(browser: Browser, tmp_path: Path) -> None:
    columns = {"source", "kind", "end_us", "connection", "duration_us", "sent_bytes", "rtt_smoothed_us"}
    rows = [
        {name: value for name, value in synthetic.transfer(n).items() if name in columns}
        | {"rtt_smoothed_us": 1000 + n}
        for n in range(20)
    ]
    long = "a-machine-with-a-very-long-name.in-a-domain-with-a-long-name.example.org"
    synthetic.write(tmp_path / "nginx-1.parquet", [row | {"machine": long} for row in rows])
    summary = summarise(read([tmp_path]))
    assert [figure.id for figure in figures(summary)] == ["serving-time", "rtt"]
    page.write(summary, [tmp_path], tmp_path / "page.html")
    watched = Watched(browser, tmp_path / "page.html", 390).ready()
    watched.page.locator(".chart svg").first.wait_for()
    assert watched.overflow() == 0
    assert watched.complaints == []
    watched.page.close()


def test_a_page_of_many_rows_is_small(tmp_path: Path) -> None:
    synthetic.write(tmp_path / "a.parquet", synthetic.a_day(connections=2000))
    rows = pl.read_parquet(tmp_path / "a.parquet")
    long = pl.concat([rows] * 100).with_row_index("n").with_columns(
        *((pl.col(name) * (1 + pl.col("n") / 1e6)).cast(rows[name].dtype) for name in ("rtt_min_us", "goodput_bps")),
        cc=pl.lit("cc") + (pl.col("n") % 12).cast(pl.String),
    )  # fmt: skip
    long.drop("n").write_parquet(tmp_path / "a.parquet")
    html = page.html(summarise(read([tmp_path])), [tmp_path])
    assert long.height == 400_000
    assert len(html.encode()) < MAX_BYTES
    assert "Figures show the 8 algorithms" in html


def test_an_unwritable_page_is_reported_with_a_command(day: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ThalwegError) as caught:
        page.write(summarise(read([day])), [day], tmp_path / "file" / "page.html")
    assert caught.value.exit_code == Exit.CANNOT_WRITE
    assert "--out" in (caught.value.hint or "")
