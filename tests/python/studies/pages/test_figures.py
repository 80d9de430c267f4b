"""Figures show the measured numbers, in the order and with the labels of the study."""

from pathlib import Path
from typing import Any

import pytest
from test_judging import BUFFER, CC, SIM, synthetic
from thalweg.report.drawing.figure import Figure
from thalweg.studies import Reproduced, Study
from thalweg.studies.claims.models import Claims
from thalweg.studies.pages.figures import draw

VALUE = {"measure": "completion_time", "flow": "large"}


def drawn(tmp_path: Path, buffers: tuple[str, str] = ("1bdp", "16bdp"), **figure: Any) -> Figure:
    """Return a figure of a race in which BBR takes 2 s with every buffer, and CUBIC 1 and 4 s."""
    small, large = buffers
    times = {("cubic", small): 1.0, ("cubic", large): 4.0, ("bbr", small): 2.0, ("bbr", large): 2.0}
    parts = synthetic(tmp_path / "run", {point: [mean - 0.1, mean, mean + 0.1] for point, mean in times.items()})
    head = {"title": "a", "about": "b", "paper": {"cite": "c"}, "parts": {"synthetic": {"scenario": "d"}}}
    wanted = {"id": "e", "title": "f", "part": "synthetic"} | figure
    study = Study("mine", tmp_path, Claims.model_validate(head | {"figures": [wanted]}))
    figures = draw(study, [Reproduced(study, SIM, {}, parts=parts)])
    assert not figures.left_out
    [only] = figures.figures
    return only


def test_lines_have_a_point_with_interval_per_buffer(tmp_path: Path) -> None:
    figure = drawn(tmp_path, kind="lines", value=VALUE, x=BUFFER, series=[CC])
    rows = figure.rows.filter(series="large cubic")
    assert rows["x"].to_list() == [1.0, 16.0]
    assert rows["y"].to_list() == pytest.approx([1.0, 4.0])
    assert (rows["low"] < rows["y"]).all()
    assert figure.y.unit == "s"


def test_an_axis_has_the_unit_of_its_key(tmp_path: Path) -> None:
    sizes = drawn(tmp_path / "a", ("300kB", "1.2MB"), kind="lines", value=VALUE, x=BUFFER, series=[CC])
    assert (sizes.x.title, sizes.x.unit) == ("Buffer", "B")
    assert sizes.rows["x"].unique().sort().to_list() == [300e3, 1.2e6]
    assert drawn(tmp_path / "b", kind="lines", value=VALUE, x=BUFFER, series=[CC]).x.unit == ""


def test_a_figure_may_show_a_gain(tmp_path: Path) -> None:
    bbr, cubic = {"where": {CC: "bbr"}}, {"where": {CC: "cubic"}}
    figure = drawn(tmp_path, kind="bars", value=VALUE | bbr, against=cubic, x=BUFFER, **{"as": "gain"})
    assert figure.rows["x"].to_list() == ["1bdp", "16bdp"]
    assert figure.rows["y"].to_list() == pytest.approx([1.0, -0.5])


def test_theory_is_computed_from_the_path_of_each_point(tmp_path: Path) -> None:
    curves = [{"name": "twice the path", "y": "2 * rtt_s"}]
    figure = drawn(tmp_path, kind="lines", value=VALUE, x=BUFFER, series=[CC], curves=curves)
    assert figure.curves is not None
    assert figure.curves.select("name", "x", "y").rows() == [
        ("twice the path", 1.0, 0.09),
        ("twice the path", 16, 0.09),
    ]


def test_heat_map_cells_are_ordered_by_their_keys(tmp_path: Path) -> None:
    rows = drawn(tmp_path, kind="heatmap", value=VALUE, x=BUFFER, y=CC).rows
    assert list(dict.fromkeys(rows["x"])) == ["1bdp", "16bdp"]
    assert rows.filter(x="16bdp", y="cubic")["value"].item() == pytest.approx(4.0)


def test_a_distribution_pools_the_transfers_of_a_line(tmp_path: Path) -> None:
    rows = drawn(tmp_path, kind="cdf", value=VALUE, series=[CC]).rows.filter(series="large bbr")
    assert rows["value"].to_list() == pytest.approx([1.9, 1.9, 2.0, 2.0, 2.1, 2.1])
    assert rows["share"].to_list()[-1] == 1.0
