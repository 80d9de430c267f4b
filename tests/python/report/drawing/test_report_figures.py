"""Figures as files for papers: their content, their names, and when they are rejected."""

import json
from pathlib import Path
from typing import Any

import pytest
from synthetic_runs import grid
from synthetic_studies import figures
from thalweg.errors import Exit, ThalwegError
from thalweg.report.content import Content
from thalweg.report.drawing import paper
from thalweg.report.drawing.figure import Figure
from thalweg.report.drawing.sweeps import heat_maps

SIGNATURES = {"svg": b"<svg", "png": b"\x89PNG\r\n", "pdf": b"%PDF-"}


@pytest.mark.parametrize("figure", figures(), ids=lambda figure: figure.kind)
def test_every_figure_kind_is_drawn_with_title_and_panels(figure: Figure) -> None:
    svg = paper.rendered(figure, "svg").decode()
    assert figure.title in svg
    if "panel" in figure.rows.columns:
        for panel in figure.rows["panel"].unique():
            assert f">{panel}" in svg
    if "series" in figure.rows.columns:
        for name in figure.rows["series"].unique():
            assert f">{name}</text>" in svg


@pytest.mark.parametrize("form", paper.FORMATS)
def test_each_format_is_written_and_files_are_named_after_figures(tmp_path: Path, form: str) -> None:
    files = paper.save(figures()[:2], tmp_path / "new" / "figures", form)
    assert [file.name for file in files] == [f"times.{form}", f"goodput.{form}"]
    assert all(file.read_bytes().startswith(SIGNATURES[form]) for file in files)
    assert sorted((tmp_path / "new" / "figures").iterdir()) == sorted(files)


def test_theory_is_dashed_and_labelled(tmp_path: Path) -> None:
    svg = paper.rendered(figures()[-1], "svg").decode()
    assert "equation 7</text>" in svg
    assert 'stroke-dasharray="5,3"' in svg


def test_figures_of_a_run_are_its_charts_heat_maps_and_points(tmp_path: Path, thalweg: Any) -> None:
    run = grid(tmp_path).write()
    done = thalweg("report", str(run), "--figures", "figures", "--format", "svg")
    names = {Path(line).name for line in done.stdout.splitlines()}
    assert done.returncode == 0
    assert names == {file.name for file in (tmp_path / "figures").iterdir()}
    assert {"bars-goodput-large.svg", "map-goodput-large.svg", "rate-rate-10Mbps-buffer-1bdp.svg"} <= names
    assert "cdf-rtt-rate-30Mbps-buffer-3bdp.svg" in names
    assert not (run / "report.html").exists()


def test_figures_and_report_are_one_json_document(tmp_path: Path, thalweg: Any) -> None:
    run = grid(tmp_path, 2, 1).write()
    done = thalweg("report", str(run), "--figures", "figures", "--out", "report.html", "--json")
    written = json.loads(done.stdout)
    assert written["report"] == "report.html"
    assert {Path(file).name for file in written["figures"]} == {file.name for file in (tmp_path / "figures").iterdir()}


def test_a_heat_map_needs_three_values_of_two_ordered_dimensions(tmp_path: Path) -> None:
    small, large = (Content([figure.write()]) for figure in (grid(tmp_path / "a", 3, 2), grid(tmp_path / "b", 4, 3)))
    assert heat_maps(small.sweep, small.measurements) == []
    maps = heat_maps(large.sweep, large.measurements)
    goodput = next(figure for figure in maps if figure.id == "map-goodput-large")
    assert goodput.x.title == "rate (Mbps)"
    assert goodput.rows.height == 12
    assert goodput.rows.filter(x="20", y="3")["value"].to_list() == [pytest.approx(8e6 / 3)]


@pytest.mark.parametrize("place", ["file", "file/below"])
def test_an_invalid_folder_is_refused_before_drawing(
    tmp_path: Path, thalweg: Any, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.setattr(paper, "rendered", lambda *_: pytest.fail("it was drawn in vain"))
    run = grid(tmp_path).write()
    (tmp_path / "file").write_text("mine")
    done = thalweg("report", str(run), "--figures", place)
    assert done.returncode == Exit.CANNOT_WRITE
    assert "--figures DIR" in done.stderr
    assert (tmp_path / "file").read_text() == "mine"


def test_a_full_disk_leaves_no_partial_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(ThalwegError, match="No space left"):
        paper.save(figures()[:1], tmp_path / "figures", "svg")
    assert list((tmp_path / "figures").iterdir()) == []


def test_an_unknown_or_unused_format_is_refused(tmp_path: Path, thalweg: Any) -> None:
    run = grid(tmp_path).write()
    unknown = thalweg("report", str(run), "--figures", "figures", "--format", "jpeg")
    assert unknown.returncode == Exit.USAGE
    assert "svg, png or pdf" in unknown.stderr
    alone = thalweg("report", str(run), "--format", "pdf")
    assert alone.returncode == Exit.USAGE
    assert "--figures DIR --format pdf" in alone.stderr


def test_figures_of_the_same_name_do_not_overwrite_one_another(tmp_path: Path) -> None:
    first = figures()[1]
    assert len({file.name.lower() for file in paper.save([first, first], tmp_path)}) == 2
