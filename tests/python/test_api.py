"""The Python API, as shown in the guide."""

import json
import re
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import thalweg
from thalweg.errors import ThalwegError

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
SCENARIO = """\
name = "api"
duration = "2s"
repetitions = 2
[path]
rate = "10Mbps"
rtt = "20ms"
[[flow]]
name = "ours"
cc = "bbr"
[[flow]]
name = "theirs"
cc = "cubic"
[sweep]
"path.buffer" = ["1bdp", "4bdp"]
"""


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> thalweg.Result:
    folder = tmp_path_factory.mktemp("api")
    (folder / "api.toml").write_text(SCENARIO)
    scenario = thalweg.load_scenario(folder / "api.toml", {"path.rtt": "10ms"})
    return scenario.run(out=folder / "run")


def test_a_summary_has_a_row_per_point_flow_and_measure(result: thalweg.Result) -> None:
    frame = result.summary(["goodput"])
    assert frame.select("path.buffer", "flow").rows() == [
        ("1bdp", "ours"), ("1bdp", "theirs"), ("4bdp", "ours"), ("4bdp", "theirs"),
    ]  # fmt: skip
    assert frame["mean"].is_between(frame["low"], frame["high"]).all()
    assert frame["unit"].unique().to_list() == ["bit/s"]


def test_tables_are_polars_frames_with_the_swept_keys(result: thalweg.Result) -> None:
    samples = result.table("samples")
    assert isinstance(samples, pl.DataFrame)
    assert {"path.buffer", "flow", "t_us", "cwnd_packets"} <= set(samples.columns)
    assert result.sweep_keys == ["path.buffer"]
    assert result.cautions == []


def test_the_run_directory_records_a_reproducing_command(result: thalweg.Result) -> None:
    command = json.loads((result.directory / "run.json").read_text())["command"]
    assert command[:2] == ["thalweg", "run"]
    assert command[-4:] == ["--set", "path.rtt=10ms", "--out", str(result.directory)]


def test_a_chart_has_a_line_per_flow_over_the_swept_key(result: thalweg.Result) -> None:
    chart: dict[str, Any] = result.plot("goodput").to_dict()
    (rows,) = chart["datasets"].values()
    assert {row["flow"] for row in rows} == {"ours", "theirs"}
    assert {row["x"] for row in rows} == {"1bdp", "4bdp"}
    assert chart["layer"][0]["encoding"]["y"]["title"] == "Goodput (bit/s)"


def test_an_opened_run_directory_has_the_same_numbers(result: thalweg.Result) -> None:
    assert thalweg.open_run(result.directory).summary(["goodput"]).equals(result.summary(["goodput"]))


def test_a_measure_that_does_not_exist_is_refused_by_its_name(result: thalweg.Result) -> None:
    with pytest.raises(ThalwegError, match="there is no measure `godput`"):
        result.summary(["godput"])


def test_a_single_measure_may_be_a_text(result: thalweg.Result) -> None:
    assert result.summary("goodput").equals(result.summary(["goodput"]))
    assert set(result.repetitions("goodput")["measure"]) == {"goodput"}


def test_what_a_run_does_not_have_is_refused_by_its_name(result: thalweg.Result) -> None:
    with pytest.raises(thalweg.ThalwegError, match="there is no table `plan`") as caught:
        result.table("plan")  # type: ignore[arg-type]
    assert caught.value.expected == "one of flows, samples, state, queue, packets"
    with pytest.raises(thalweg.ThalwegError, match="has no value of `video_bitrate`"):
        result.plot("video_bitrate")


def test_settings_may_be_values_of_numpy_and_tuples(tmp_path: Path) -> None:
    (tmp_path / "api.toml").write_text(SCENARIO)
    loaded = thalweg.load_scenario(
        tmp_path / "api.toml",
        {"path.loss": np.linspace(0, 0.02, 3), "repetitions": np.int64(3), "path.rtt": ("10ms", "20ms")},
    )
    plain = thalweg.load_scenario(
        tmp_path / "api.toml", {"path.loss": [0.0, 0.01, 0.02], "repetitions": 3, "path.rtt": ["10ms", "20ms"]}
    )
    assert (loaded.settings, loaded.document.raw) == (plain.settings, plain.document.raw)
    with pytest.raises(thalweg.ThalwegError, match="is a complex"):
        thalweg.load_scenario(tmp_path / "api.toml", {"path.rate": 1j})
    with pytest.raises(thalweg.ThalwegError, match="the settings are not a mapping"):
        thalweg.load_scenario(tmp_path / "api.toml", "path.rtt=80ms")  # type: ignore[arg-type]


def test_the_traceback_of_a_mistake_has_its_hint(tmp_path: Path) -> None:
    (tmp_path / "api.toml").write_text(SCENARIO)
    with pytest.raises(thalweg.ThalwegError) as caught:
        thalweg.load_scenario(tmp_path / "api.toml", {"path.rtt": 80})
    assert 'did you mean "80ms"?' in "".join(traceback.format_exception(caught.value))


def test_a_report_is_written(result: thalweg.Result, tmp_path: Path) -> None:
    assert "ours (bbr) takes" in result.write_report(tmp_path / "page.html").read_text().replace("\u202f", " ")


def test_importing_thalweg_imports_nothing_heavy() -> None:
    code = "import sys, thalweg; print(sorted({'polars', 'altair', 'pydantic'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def run_blocks(blocks: list[str], folder: Path) -> None:
    """Run Python source in one process, in a folder with the bundled scenarios."""
    (folder / "scenarios").symlink_to(ROOT / "scenarios")
    source = folder / "blocks.py"
    source.write_text("\n\n".join(blocks))
    done = subprocess.run([sys.executable, source], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_guide_works(tmp_path: Path) -> None:
    guide = (ROOT / "docs" / "guide" / "python.md").read_text()
    run_blocks(re.findall(r"^```python\n(.*?)^```", guide, flags=re.M | re.S), tmp_path)


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_works(notebook: Path, tmp_path: Path) -> None:
    cells = json.loads(notebook.read_text())["cells"]
    assert all(not cell.get("outputs") for cell in cells), "notebooks are committed without outputs"
    run_blocks(["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"], tmp_path)


def test_there_are_two_notebooks() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["bbr-or-cubic", "inside-a-flow"]
