"""Sweeps over the rows of CSV files: several keys that are set together."""

from pathlib import Path

import pytest
from thalweg import engine, plan, scenario
from thalweg.errors import ThalwegError, ThalwegErrors

SCENARIO = """\
name = "paths"
repetitions = 2
[path]
rate = "30Mbps"
rtt = "30ms"
[[flow]]
name = "a"
cc = "cubic"
size = "1MB"
[sweep]
rows = ["paths.csv"]
"flow.a.cc" = ["cubic", "bbr"]
"""

PATHS = "path.rate,path.rtt,path.loss\n40Mbps,20ms,0\n\n10Mbps,90ms,0.01\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def load(paths: str = PATHS, text: str = SCENARIO) -> scenario.Document:
    Path("x.toml").write_text(text)
    Path("paths.csv").write_text(paths)
    return scenario.load("x.toml")


def mistake(paths: str, text: str = SCENARIO) -> ThalwegError:
    with pytest.raises(ThalwegErrors) as raised:
        load(paths, text)
    assert len(raised.value.errors) == 1, [error.text() for error in raised.value.errors]
    return raised.value.errors[0]


def test_row_keys_are_set_together_and_combined_with_other_keys() -> None:
    capabilities = engine.capabilities(engine.DEFAULT)
    planned = plan.make(load(), capabilities.engines[engine.DEFAULT], capabilities.engines)
    assert [experiment.sweep for experiment in planned.experiments[::2]] == [
        {"path.rate": "40Mbps", "path.rtt": "20ms", "path.loss": 0, "flow.a.cc": "cubic"},
        {"path.rate": "40Mbps", "path.rtt": "20ms", "path.loss": 0, "flow.a.cc": "bbr"},
        {"path.rate": "10Mbps", "path.rtt": "90ms", "path.loss": 0.01, "flow.a.cc": "cubic"},
        {"path.rate": "10Mbps", "path.rtt": "90ms", "path.loss": 0.01, "flow.a.cc": "bbr"},
    ]
    assert {experiment.rtt_ns for experiment in planned.experiments} == {20_000_000, 90_000_000}


def test_an_experiment_has_the_same_seed_as_in_a_plain_sweep() -> None:
    capabilities = engine.capabilities(engine.DEFAULT)
    rows = plan.make(load(), capabilities.engines[engine.DEFAULT], capabilities.engines)
    lists = '"path.rate" = ["40Mbps"]\n"path.rtt" = ["20ms"]\n"path.loss" = [0]'
    document = load(text=SCENARIO.replace('rows = ["paths.csv"]', lists))
    ordinary = plan.make(document, capabilities.engines[engine.DEFAULT], capabilities.engines)
    assert [experiment.seed for experiment in ordinary.experiments] == [
        experiment.seed for experiment in rows.experiments[:4]
    ]


def test_files_with_the_same_header_are_concatenated() -> None:
    Path("more.csv").write_text("path.rate,path.rtt,path.loss\n5Mbps,5ms,0\n")
    document = load(text=SCENARIO.replace('["paths.csv"]', '["paths.csv", "more.csv"]'))
    assert document.swept["path.rate"] == ["40Mbps", "10Mbps", "5Mbps"]


def test_a_setting_selects_other_files() -> None:
    load()
    Path("few.csv").write_text("path.rate,path.rtt,path.loss\n5Mbps,5ms,0\n")
    assert scenario.load("x.toml", {"rows": ["few.csv"]}).swept["path.rtt"] == ["5ms"]


def test_a_wrong_value_is_reported_with_its_line_in_the_file() -> None:
    error = mistake(PATHS.replace("90ms", "90"))
    assert (error.source and (Path(error.source.file).name, error.source.line)) == ("paths.csv", 4)
    assert error.place == "path.rtt"


def position(error: ThalwegError) -> tuple[str, int | None]:
    assert error.source
    return Path(error.source.file).name, error.source.line


def test_a_malformed_cell_is_reported_with_its_line_in_the_file() -> None:
    error = mistake(PATHS.replace("90ms", "10sec"))
    assert (error.place, position(error)) == ("path.rtt", ("paths.csv", 4))


def test_a_misspelt_column_is_reported_at_the_header() -> None:
    assert position(mistake("path.rate,path.rttt\n1Mbps,2ms\n")) == ("paths.csv", 1)


def test_a_column_that_occurs_twice_is_reported_at_the_header() -> None:
    text = SCENARIO.replace('"flow.a.cc" = ["cubic", "bbr"]\n', "")
    error = mistake("path.rate,path.rate\n20Mbps,10Mbps\n", text)
    assert error.message == "in [sweep], `path.rate` is set twice: by two columns of the file"
    assert position(error) == ("paths.csv", 1)


def test_a_row_that_breaks_a_rule_is_reported_with_its_line() -> None:
    text = SCENARIO.replace("repetitions = 2", 'duration = "1s"')
    error = mistake("path.rtt,flow.a.start\n2ms,0s\n2ms,5s\n", text)
    assert "starts after the end" in error.message
    assert position(error) == ("paths.csv", 3)


def test_a_row_with_an_unknown_algorithm_is_reported_with_its_line() -> None:
    text = SCENARIO.replace('"flow.a.cc" = ["cubic", "bbr"]\n', "")
    document = load("path.rtt,flow.a.cc\n2ms,bbr\n2ms,cubik\n", text)
    capabilities = engine.capabilities(engine.DEFAULT)
    (error,) = plan.unsupported(document, capabilities.engines[engine.DEFAULT], capabilities.engines)
    assert (error.code, position(error)) == ("unknown-cc", ("paths.csv", 3))


@pytest.mark.parametrize(
    ("paths", "words"),
    [
        ("path.rate,path.rttt\n1Mbps,2ms\n", "there is no key `rttt` in path"),
        ("path.rate,path.rtt\n1Mbps\n", "the row has 1 cells"),
        ("path.rate,path.rtt\n", "has no rows"),
        ("path.rate\n1Mbps\n2Mbps\n1Mbps\n", "the row is the same as line 2 of `paths.csv`"),
        ("flow.a.cc\nreno\n", "`flow.a.cc` is set twice"),
        ("path.loss\n0.1\n1%\n", "`path.loss` has values of several kinds"),
    ],
)
def test_a_mistake_in_the_file_is_explained(paths: str, words: str) -> None:
    error = mistake(paths)
    assert words in error.message
    assert error.source
    assert Path(error.source.file).name == "paths.csv"


def test_a_missing_file_is_named() -> None:
    error = mistake(PATHS, SCENARIO.replace("paths.csv", "path.csv"))
    assert "`path.csv` cannot be read: no such file or directory" in error.message
    assert error.source
    assert error.source.line == 11


def test_files_with_different_headers_are_refused() -> None:
    Path("more.csv").write_text("path.rate,path.loss\n5Mbps,0\n")
    error = mistake(PATHS, SCENARIO.replace('["paths.csv"]', '["paths.csv", "more.csv"]'))
    assert error.message == "in [sweep], `more.csv` and `paths.csv` set different keys"


def test_rows_that_are_not_file_names_are_refused() -> None:
    assert "does not name files" in mistake(PATHS, SCENARIO.replace('["paths.csv"]', "[3]")).message


def test_a_table_as_a_value_of_the_sweep_is_refused_with_what_works() -> None:
    text = SCENARIO.replace('rows = ["paths.csv"]', '"flow.a.app" = ["rpc", { name = "probe", interval = "50ms" }]')
    error = mistake(PATHS, text)
    assert error.hint == (
        'set the table outside [sweep], and sweep "flow.a.app.interval" = [...]; or use two scenarios'
    )
    table = 'size = "1MB"\n'
    text = SCENARIO.replace(table, 'app = { name = "probe" }\n').replace(
        'name = "paths"', 'name = "paths"\nduration = "1s"'
    )
    followed = text.replace('rows = ["paths.csv"]', '"flow.a.app.interval" = ["50ms", "90ms"]')
    assert load(PATHS, followed).swept["flow.a.app.interval"] == ["50ms", "90ms"]


def test_a_name_in_a_table_as_a_value_of_the_sweep_is_written_alone() -> None:
    error = mistake(PATHS, SCENARIO.replace('rows = ["paths.csv"]', '"path.queue" = ["fifo", { name = "codel" }]'))
    assert error.hint == 'write the name alone: "codel"'


def test_a_setting_of_a_key_of_the_rows_is_a_mistake() -> None:
    load()
    with pytest.raises(ThalwegErrors) as raised:
        scenario.load("x.toml", {"path.rate": "5Mbps"})
    (error,) = raised.value.errors
    assert error.message == "`path.rate` is set twice: by a column of a file of rows, and by a setting"
    assert position(error) == ("paths.csv", 1)
    assert scenario.load("x.toml", {"path.jitter": "1ms"}).swept
