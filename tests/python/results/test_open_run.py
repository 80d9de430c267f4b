"""Opening run directories, complete and damaged."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.parquet as pq
import pytest
from thalweg.errors import ThalwegError
from thalweg.results import Measured, Untrustworthy, open_run
from thalweg.results.columns import TABLES
from thalweg.results.tables import DTYPES

POINTS = [("0.5bdp", "cubic"), ("0.5bdp", "bbr"), ("8bdp", "cubic"), ("8bdp", "bbr")]
REPETITIONS = 2


def an_id(experiment: int, repetition: int) -> str:
    return f"{experiment:08x}{repetition:08x}"


def rows(table: str, **values: Any) -> dict[str, Any]:
    """Return a row of `table` with the given values and valid values otherwise."""
    fill = {"u64": 7, "f64": 1.5, "string": "x", "bool": True}
    usual = {column.name: None if column.is_optional else fill[column.kind] for column in TABLES[table].columns}
    return usual | {name: value for name, value in values.items() if name in usual}


def write(
    run: Path, table: str, experiment: int, repetition: int, *, extra: dict[str, Any] | None = None, **values: Any
) -> None:
    schema = {column.name: DTYPES[column.kind] for column in TABLES[table].columns}
    keys = {"experiment": experiment, "repetition": repetition} | values
    frame = pl.DataFrame([rows(table, flow="b", **keys), rows(table, flow="a", **keys)], schema=schema)
    if extra:
        frame = frame.with_columns(**{key: pl.lit(value) for key, value in extra.items()})
    (run / table).mkdir(exist_ok=True)
    frame.write_parquet(run / table / f"{an_id(experiment, repetition)}.parquet")


def meta() -> dict[str, Any]:
    experiments = [
        {"experiment": number, "repetition": repetition, "sweep": {"flow.a.cc": cc, "path.buffer": buffer}}
        for number, (buffer, cc) in enumerate(POINTS)
        for repetition in range(REPETITIONS)
    ]
    return {
        "format": 1,
        "engine": "sim",
        "plan": {"name": "test", "experiments": experiments},
        "experiments": [
            {
                "id": an_id(e["experiment"], e["repetition"]),
                "experiment": e["experiment"],
                "repetition": e["repetition"],
            }
            for e in experiments
        ],
        "command": ["thalweg", "run", "my test.toml"],
    }


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    run = tmp_path / "run"
    run.mkdir()
    (run / "run.json").write_text(json.dumps(meta()))
    for number in range(len(POINTS)):
        for repetition in range(REPETITIONS):
            for table in TABLES:
                write(run, table, number, repetition)
    return run


def test_tables_are_sorted_by_key_for_any_file_order(directory: Path) -> None:
    flows = open_run(directory).flows()
    assert flows.height == 2 * len(POINTS) * REPETITIONS
    assert flows.equals(flows.sort("experiment", "repetition", "flow"))


def test_sweep_columns_are_attached_to_flows_in_the_order_of_the_scenario(directory: Path) -> None:
    run = open_run(directory)
    assert run.sweep_keys == ["path.buffer", "flow.a.cc"]  # the last one changes fastest; run.json had them sorted
    first = run.flows().filter(experiment=2)
    assert first["path.buffer"].to_list() == ["8bdp"] * 4
    assert first["flow.a.cc"].to_list() == ["cubic"] * 4


def test_sweep_columns_that_the_engine_wrote_are_kept(directory: Path) -> None:
    for number, (buffer, cc) in enumerate(POINTS):
        for repetition in range(REPETITIONS):
            write(directory, "flows", number, repetition, extra={"path.buffer": buffer, "flow.a.cc": cc})
    flows = open_run(directory).flows()
    assert flows.columns.count("path.buffer") == 1
    assert not any(name.endswith("_right") for name in flows.columns)


def test_sweep_columns_can_be_attached_to_samples(directory: Path) -> None:
    run = open_run(directory)
    samples = run.samples()
    attached = run.with_sweep(samples)
    assert attached.drop("path.buffer", "flow.a.cc").equals(samples)
    assert attached.filter(experiment=1)["flow.a.cc"].unique().to_list() == ["bbr"]


def test_an_experiment_without_a_flows_file_is_skipped(directory: Path) -> None:
    (directory / "flows" / f"{an_id(3, 1)}.parquet").unlink()
    run = open_run(directory)
    assert not run.is_finished
    assert len(run.finished_ids) == 7
    assert run.queue().filter(experiment=3)["repetition"].unique().to_list() == [0]


def test_files_of_experiments_outside_the_plan_are_skipped(directory: Path) -> None:
    write(directory, "flows", 9, 9)
    assert open_run(directory).flows()["experiment"].max() == 3


def test_a_run_without_time_series_has_empty_tables_with_their_columns(directory: Path) -> None:
    for file in (directory / "samples").iterdir():
        file.unlink()
    samples = open_run(directory).samples()
    assert samples.is_empty()
    assert samples.columns == [column.name for column in TABLES["samples"].columns]


def test_only_runs_with_packet_recording_have_packet_rows(directory: Path) -> None:
    assert open_run(directory).packets().height == 2 * len(POINTS) * REPETITIONS
    shutil.rmtree(directory / "packets")
    packets = open_run(directory).packets()
    assert packets.is_empty()
    assert packets.columns == [column.name for column in TABLES["packets"].columns]


def test_tables_of_an_older_version_are_read_with_empty_optional_columns(directory: Path) -> None:
    for file in (directory / "flows").iterdir():
        pl.read_parquet(file).drop("untrustworthy").write_parquet(file)
    run = open_run(directory)
    assert run.flows()["untrustworthy"].null_count() == 2 * len(POINTS) * REPETITIONS
    assert run.untrustworthy == []


def test_a_truncated_journal_line_is_ignored(directory: Path) -> None:
    mark = {"event": "untrustworthy", "id": an_id(1, 0), "reason": "the sender was CPU-limited"}
    lines = [json.dumps(mark), '{"event":"finis', json.dumps(mark)]
    (directory / "events.jsonl").write_text("\n".join(lines) + "\n")
    assert [event["event"] for event in open_run(directory).events] == ["untrustworthy", "untrustworthy"]


def test_a_successful_rerun_clears_the_mark(directory: Path) -> None:
    mark = {"event": "untrustworthy", "id": an_id(1, 0), "reason": "the host was busy"}
    (directory / "events.jsonl").write_text(json.dumps(mark) + "\n")
    write(directory, "flows", 1, 0, untrustworthy="the host was busy")
    assert open_run(directory).untrustworthy == [Untrustworthy(an_id(1, 0), 1, 0, "the host was busy")]
    write(directory, "flows", 1, 0)
    assert open_run(directory).untrustworthy == []


def test_engine_self_measurements_are_of_the_last_run(directory: Path) -> None:
    events = [
        {"event": "finished", "id": an_id(1, 0), "measured": {"relay_lateness_p99_us": 900.0}},
        {"event": "finished", "id": an_id(1, 1)},
        {"event": "finished", "id": an_id(9, 9), "measured": {"of": 1}},
        {"event": "finished", "id": an_id(1, 0), "measured": {"relay_lateness_p99_us": 80, "odd": "text", "is": True}},
    ]
    (directory / "events.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
    assert open_run(directory).measured == [Measured(1, 0, {"relay_lateness_p99_us": 80.0})]


def test_a_directory_that_is_not_a_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ThalwegError, match=r"it has no run\.json") as caught:
        open_run(tmp_path)
    assert caught.value.code == "no-run"
    with pytest.raises(ThalwegError, match="does not exist"):
        open_run(tmp_path / "nowhere")


def test_the_parent_of_a_run_points_to_the_run(directory: Path) -> None:
    with pytest.raises(ThalwegError) as caught:
        open_run(directory.parent)
    assert caught.value.hint == f"did you mean `{directory}`?"


def test_a_newer_format_says_to_upgrade(directory: Path) -> None:
    (directory / "run.json").write_text(json.dumps(meta() | {"format": 2}))
    with pytest.raises(ThalwegError, match="format 2") as caught:
        open_run(directory)
    assert caught.value.hint == "pip install --upgrade thalweg"


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 1}', "\x00"])
def test_a_damaged_run_json_is_an_error_without_a_traceback(directory: Path, text: str) -> None:
    (directory / "run.json").write_text(text)
    with pytest.raises(ThalwegError) as caught:
        open_run(directory)
    assert caught.value.code == "damaged-run"


@pytest.mark.parametrize(
    "change",
    [
        {"plan": {}},
        {"plan": []},
        {"experiments": [{}]},
        {"experiments": {}},
        {"plan": {"name": "test", "experiments": [{"experiment": 0, "repetition": 0}]}},
        {"plan": {"name": "test", "experiments": []}},
        {"format": "1"},
        {"format": True},
    ],
)
def test_a_run_json_with_a_missing_key_is_damaged(directory: Path, change: dict[str, Any]) -> None:
    (directory / "run.json").write_text(json.dumps(meta() | change))
    with pytest.raises(ThalwegError) as caught:
        open_run(directory)
    assert caught.value.code == "damaged-run"


def test_an_unreadable_run_json_is_a_separate_error(directory: Path) -> None:
    (directory / "run.json").unlink()
    (directory / "run.json").mkdir()
    with pytest.raises(ThalwegError, match="is a directory") as caught:
        open_run(directory)
    assert caught.value.code == "cannot-read"


def test_a_table_without_read_permission_is_not_called_damaged(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(file: Path) -> None:
        raise PermissionError(13, "Permission denied", str(file))

    monkeypatch.setattr(pq, "read_schema", refused)
    with pytest.raises(ThalwegError, match="cannot be read: permission denied") as caught:
        open_run(directory).scan("flows")
    assert caught.value.hint == f"ls -ld {directory / 'flows'}"


def test_a_non_utf_8_directory_name_is_an_error_that_suggests_renaming(directory: Path) -> None:
    odd = directory.rename(directory.parent / os.fsdecode(b"caf\xe9"))
    with pytest.raises(ThalwegError, match="its name is not UTF-8") as caught:
        open_run(odd)
    assert caught.value.hint == "rename it with mv to a UTF-8 name"


def truncate(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-100])


def empty(file: Path) -> None:
    file.write_bytes(b"")


def a_directory(file: Path) -> None:
    file.unlink()
    file.mkdir()


def replace_table(file: Path) -> None:
    other = "queue" if file.parent.name != "queue" else "flows"
    file.write_bytes((file.parent.parent / other / file.name).read_bytes())


@pytest.mark.parametrize("table", [*TABLES])
@pytest.mark.parametrize("damage", [truncate, empty, a_directory, replace_table])
def test_a_damaged_table_is_reported_with_file_and_remedy(
    directory: Path, table: str, damage: Callable[[Path], None]
) -> None:
    file = directory / table / f"{an_id(1, 1)}.parquet"
    damage(file)
    with pytest.raises(ThalwegError, match="is not a table") as caught:
        open_run(directory).scan(table)
    assert caught.value.code == "damaged-run"
    assert caught.value.place == str(file)
    flows = directory / "flows" / f"{an_id(1, 1)}.parquet"
    assert caught.value.hint == f"to run that experiment again: rm -r {flows} && thalweg run 'my test.toml'"


def test_a_run_whose_experiments_all_failed_reports_the_first_failure(tmp_path: Path) -> None:
    content = meta()
    (tmp_path / "run.json").write_text(json.dumps(content))
    events = [
        {"event": "failed", "id": entry["id"], "message": f"no window of {number} packets"}
        for number, entry in enumerate(content["experiments"])
    ]
    journal = tmp_path / "events.jsonl"
    journal.write_text("".join(json.dumps(event) + "\n" for event in events))
    with pytest.raises(ThalwegError, match="is complete: all 8 failed") as caught:
        open_run(tmp_path)
    assert "experiment 0, repetition 0: no window of 0 packets" in caught.value.text()
    assert "thalweg run" not in caught.value.text()
    journal.write_text("".join(json.dumps(event) + "\n" for event in events[1:]))
    with pytest.raises(ThalwegError, match="is complete yet: 0 of 8"):
        open_run(tmp_path)


def test_a_run_without_complete_experiments_suggests_the_resume_command(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(json.dumps(meta()))
    with pytest.raises(ThalwegError, match="is complete yet: 0 of 8") as caught:
        open_run(tmp_path)
    assert caught.value.hint is not None
    assert caught.value.hint.endswith("thalweg run 'my test.toml'")
