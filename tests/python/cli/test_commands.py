"""Output and exit codes of the commands."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from synthetic_runs import SyntheticRun, experiment
from syrupy.assertion import SnapshotAssertion
from thalweg.errors import Exit
from thalweg.plan import Plan

Thalweg = Callable[..., Any]


@pytest.fixture(autouse=True)
def _fake(fake_engine: Path) -> None:
    pass


def test_check_prints_a_line_per_point(thalweg: Thalweg, snapshot: SnapshotAssertion) -> None:
    done = thalweg("check", "race.toml")
    assert done.returncode == 0
    assert done.stdout == snapshot
    assert done.stderr == "race.toml is valid: 4 experiments (4 points, 1 repetition each) for the engine sim\n"


def test_check_prints_the_plan_as_json(thalweg: Thalweg) -> None:
    plan = Plan.model_validate_json(thalweg("check", "race.toml", "--json").stdout)
    assert len(plan.experiments) == 4


def test_check_reports_every_mistake_as_text_and_json(thalweg: Thalweg, tmp_path: Path) -> None:
    scenario = tmp_path / "race.toml"
    scenario.write_text(scenario.read_text().replace("40Mbps", "40").replace('rtt = "45ms"', "rtt = 45"))
    text, as_json = thalweg("check", "race.toml"), thalweg("check", "race.toml", "--json")
    assert text.returncode == as_json.returncode == Exit.USAGE
    assert text.stdout == ""
    errors = json.loads(as_json.stdout)["errors"]
    assert [(error["code"], error["place"], error["line"]) for error in errors] == [
        ("bad-quantity", "path.rate", 3),
        ("wrong-type", "path.rtt", 4),
    ]
    assert text.stderr.count("error[") == 2
    assert "Traceback" not in text.stderr


@pytest.mark.parametrize("command", ["check", "run", "optimise", "fuzz"])
def test_a_misspelt_congestion_control_is_reported_with_the_other_mistakes(
    thalweg: Thalweg, tmp_path: Path, command: str
) -> None:
    text = (tmp_path / "race.toml").read_text().replace("40Mbps", "40").replace('cc = "cubic"', 'cc = "cubbic"')
    (tmp_path / "race.toml").write_text(text.replace('medium.cc" = ["bbr", "cubic"]', 'medium.cc" = ["bbbr"]'))
    errors = json.loads(thalweg(command, "race.toml", "--json").stdout)["errors"]
    assert [(error["code"], error["place"], error["line"], error["hint"]) for error in errors] == [
        ("bad-quantity", "path.rate", 3, errors[0]["hint"]),
        ("unknown-cc", "flow.large.cc", 7, "did you mean `cubic`?"),
        ("unknown-cc", "flow.medium.cc", 17, "did you mean `bbr`?"),
    ]


def test_malformed_flows_are_reported_without_their_congestion_controls(thalweg: Thalweg, tmp_path: Path) -> None:
    text = 'name = "x"\nflow = [3, {cc = 4}, {cc = {bpf = 1}}, {name = 5, cc = "cubbic", cc_params = 1}]\nsweep = 1\n'
    (tmp_path / "race.toml").write_text(text)
    errors = json.loads(thalweg("check", "race.toml", "--json").stdout)["errors"]
    assert [error["found"] for error in errors if error["code"] == "unknown-cc"] == ["cubbic"]


def test_a_missing_engine_does_not_hide_the_mistakes_of_a_scenario(thalweg: Thalweg, tmp_path: Path) -> None:
    assert thalweg("check", "race.toml", THALWEG_ENGINE="/nowhere").returncode == Exit.MISSING
    (tmp_path / "race.toml").write_text("x = 1")
    done = thalweg("check", "race.toml", THALWEG_ENGINE="/nowhere")
    assert done.returncode == Exit.USAGE
    assert "unknown key `x`" in done.stderr


@pytest.mark.parametrize(
    ("behaviour", "code", "message"),
    [
        ("finish", Exit.INCOMPLETE, "is untrustworthy: the host was busy"),
        ("fail", Exit.FAILED, "error[experiments-failed]: 1 of 2 experiments failed"),
        ("refuse", Exit.USAGE, "error[other-run]: the run directory is of another plan"),
        ("full", Exit.CANNOT_WRITE, "error[disk-full]: no space left on device"),
        ("die", Exit.FAILED, "error[engine-died]: the engine terminated unexpectedly (signal 9)"),
    ],
)
def test_run_exits_with_the_status_of_the_engine(thalweg: Thalweg, behaviour: str, code: Exit, message: str) -> None:
    done = thalweg("run", "race.toml", "--no-report", FAKE_ENGINE=behaviour)
    assert done.returncode == code
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_an_engine_without_memory_is_reported_in_a_few_lines(thalweg: Thalweg) -> None:
    done = thalweg("run", "race.toml", "--no-report", FAKE_ENGINE="abort")
    assert done.returncode == Exit.TEMPORARY
    assert "found memory allocation of 8 bytes failed\n" in done.stderr
    assert "hint: if memory was short, use fewer --threads" in done.stderr
    assert "rust_oom" not in done.stderr


def test_a_run_reports_the_number_and_reasons_of_untrustworthy_experiments(thalweg: Thalweg) -> None:
    stderr = thalweg("run", "race.toml", "--no-report").stderr
    assert stderr.endswith(
        "1 of 2 experiments is untrustworthy, and left out of the numbers: the numbers include only the other 1.\n"
        "untrustworthy: the host was busy\n"
        "to run untrustworthy experiments again: thalweg run race.toml --no-report --retry-untrustworthy\n"
    )


def test_a_multi_line_failure_is_reported_once_at_the_end(thalweg: Thalweg) -> None:
    done = thalweg("run", "race.toml", "--no-report", FAKE_ENGINE="fail-alike")
    assert done.returncode == Exit.FAILED
    assert "experiment 1 (repetition 0) failed: no congestion control `bbr`\n  hint: modprobe tcp_bbr\n" in done.stderr
    end = done.stderr.partition("error[experiments-failed]: 2 of 2 experiments failed\n")[2]
    assert end.count("modprobe") == 1
    assert "found experiment 0, repetition 0: no congestion control `bbr`\n    hint: modprobe tcp_bbr\n" in end


def test_run_prints_the_run_directory_and_the_command_to_repeat_it(thalweg: Thalweg, tmp_path: Path) -> None:
    done = thalweg("run", "race.toml", "--no-report", "--set", "path.buffer=1bdp")
    *table, run, again = done.stdout.splitlines()
    assert table[0].split()[:3] == ["flow.medium.cc", "flow", "cc"]
    directory = tmp_path / run.split()[1]
    assert directory.parent.name == "runs"
    assert directory.name.startswith("race-sim-")
    assert again == "again   thalweg run race.toml --no-report --set path.buffer=1bdp"
    written = json.loads((directory / "run.json").read_text())
    assert written["command"] == again.split()[1:]
    assert {experiment["sweep"].get("path.buffer") for experiment in written["plan"]["experiments"]} == {None}


def test_run_prints_json(thalweg: Thalweg) -> None:
    done = thalweg("run", "race.toml", "--no-report", "--json", "--out", "here", FAKE_ENGINE="fail")
    assert done.returncode == Exit.FAILED
    document = json.loads(done.stdout)
    assert (document["run"], document["finished"], document["report"]) == ("here", 1, None)
    assert document["failed"][0]["code"] == "bug"
    refused = thalweg("run", "race.toml", "--json", FAKE_ENGINE="refuse")
    assert json.loads(refused.stdout)["errors"][0]["code"] == "other-run"


def test_options_change_the_plan(thalweg: Thalweg, tmp_path: Path) -> None:
    thalweg("run", "race.toml", "--no-report", "--seed", "5", "--repetitions", "3", "--out", "here")
    plan = json.loads((tmp_path / "here" / "run.json").read_text())["plan"]
    assert len(plan["experiments"]) == 12
    thalweg("run", "race.toml", "--no-report", "--seed", "6", "--repetitions", "3", "--out", "there")
    other = json.loads((tmp_path / "there" / "run.json").read_text())["plan"]
    assert not {e["seed"] for e in plan["experiments"]} & {e["seed"] for e in other["experiments"]}


def test_schema_prints_what_is_generated(thalweg: Thalweg) -> None:
    assert json.loads(thalweg("schema").stdout)["properties"]["path"]
    assert json.loads(thalweg("schema", "--plan").stdout)["properties"]["experiments"]
    columns = json.loads(thalweg("schema", "--columns").stdout)
    assert [table["name"] for table in columns["tables"]] == ["flows", "samples", "state", "queue", "packets"]
    (records,) = columns["records"]
    keys = [column["name"] for column in records["columns"] if column["is_key"]]
    assert keys == ["end_us", "connection", "kind", "transfer"]


def test_doctor_lists_available_features(thalweg: Thalweg) -> None:
    done = thalweg("doctor")
    assert done.returncode == 0
    assert "warning  engine kernel   user namespaces are switched off\n" in done.stdout
    assert "         do: sudo sysctl kernel.unprivileged_userns_clone=1\n         do: or be root\n" in done.stdout
    states = {
        finding["what"]: finding["state"] for finding in json.loads(thalweg("doctor", "--json").stdout)["findings"]
    }
    assert states["thalweg-engine"] == states["engine sim"] == "ok"


def test_doctor_lists_missing_features_with_a_remedy(thalweg: Thalweg) -> None:
    done = thalweg("doctor", THALWEG_ENGINE="/nowhere")
    assert done.returncode == Exit.MISSING
    assert "missing  thalweg-engine" in done.stdout
    assert "do: unset THALWEG_ENGINE, or correct it" in done.stdout


def test_an_engine_of_another_version_is_reported(thalweg: Thalweg, fake_engine: Path) -> None:
    answer = '{"format": 1, "version": "9.9.9", "engines": []}'
    fake_engine.write_text(f"#!/bin/sh\necho '{answer}'\n")
    done = thalweg("doctor")
    assert done.returncode == Exit.MISSING
    assert "9.9.9" in done.stdout


def test_a_closed_pipe_is_not_an_error(thalweg: Thalweg) -> None:
    command = f'"{sys.executable}" -m thalweg schema | head -n 1; exit ${{PIPESTATUS[0]}}'
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(["bash", "-c", command], env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "{\n", "")


def test_an_error_to_a_closed_pipe_is_not_a_traceback(thalweg: Thalweg) -> None:
    command = f'"{sys.executable}" -m thalweg check missing.toml --json | true; exit ${{PIPESTATUS[0]}}'
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(["bash", "-c", command], env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (Exit.USAGE, "")


def test_a_closed_standard_output_is_not_an_error(thalweg: Thalweg) -> None:
    command = f'"{sys.executable}" -m thalweg check race.toml >&-'
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(["bash", "-c", command], env=environment, capture_output=True, text=True)
    assert done.returncode == 0
    assert "race.toml is valid" in done.stderr


def test_unprintable_characters_are_escaped(thalweg: Thalweg, tmp_path: Path) -> None:
    scenario = tmp_path / "race.toml"
    scenario.write_text('about = "\N{TURTLE}"\n' + scenario.read_text(), encoding="utf-8")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-m", "thalweg", "check", "race.toml", "--json"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["experiments"]


def test_a_directory_whose_name_is_not_utf_8_can_be_written_and_is_shown(thalweg: Thalweg, tmp_path: Path) -> None:
    name = os.fsdecode(b"caf\xe9")
    done = thalweg("run", "race.toml", "--no-report", "--out", name)
    assert done.returncode == Exit.INCOMPLETE, done.stderr
    assert done.stdout.startswith("run     caf\\udce9\n")
    command = json.loads((tmp_path / name / "run.json").read_bytes().decode("utf-8"))["command"]
    assert command[-1] == "caf\\udce9"


@pytest.mark.parametrize("while_importing", ["typer", "thalweg.plan.models", "thalweg.errors"])
def test_ctrl_c_while_the_program_loads_leaves_no_traceback(while_importing: str) -> None:
    # The import of a module sends an interrupt, as an impatient user does.
    program = f"""
import builtins, os, signal, sys
load = builtins.__import__
def interrupting(name, *rest):
    if name == {while_importing!r}:
        os.kill(os.getpid(), signal.SIGINT)
    return load(name, *rest)
builtins.__import__ = interrupting
sys.argv = ["thalweg", "check", "--help"]
from thalweg.cli.main import app
sys.exit(app())
"""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert done.returncode in (-signal.SIGINT, Exit.INTERRUPTED)
    assert "Traceback" not in done.stderr


def test_an_engine_with_another_protocol_version_is_refused(thalweg: Thalweg, fake_engine: Path) -> None:
    fake_engine.write_text("""#!/bin/sh\necho '{"format": 2, "version": "0.1.0", "engines": []}'\n""")
    done = thalweg("check", "race.toml")
    assert done.returncode == Exit.MISSING
    assert "it uses format 2" in done.stderr


def test_an_engine_of_another_version_is_reported_before_a_run(thalweg: Thalweg, fake_engine: Path) -> None:
    script = fake_engine.read_text().removeprefix("#!/bin/sh\nexec ")
    fake_engine.write_text(f"#!/bin/sh\n{script.strip()} | sed s/0.2.0/9.9.9/\n")
    done = thalweg("run", "race.toml", "--no-report")
    assert "thalweg-engine is version 9.9.9, thalweg is 0.2.0" in done.stderr


def test_a_deleted_working_directory_is_reported(
    thalweg: Thalweg, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    done = thalweg("doctor")
    assert done.returncode == 0
    assert "the current directory was removed" in done.stdout
    monkeypatch.chdir(tmp_path)


def test_standard_output_to_a_full_disk_is_an_error() -> None:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "thalweg", "schema"], env=environment, stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert done.returncode == Exit.CANNOT_WRITE
    assert "no space left on device" in done.stderr
    assert "Traceback" not in done.stderr


def test_results_list_untrustworthy_experiments_with_reasons(thalweg: Thalweg, tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run", [experiment(0, repetition) for repetition in range(4)])
    late = ["late", None, "late", "busy"]
    for repetition, why in enumerate(late):
        run.transfer(0, repetition, untrustworthy=why)
    run.write()
    done = thalweg("results", "run")
    assert done.returncode == Exit.INCOMPLETE
    sentence = (
        "3 of 4 experiments are untrustworthy, and left out of the numbers: the numbers include only the other 1."
    )
    assert f"{sentence}\n  2 x late\n  1 x busy\n" in done.stderr
    document = json.loads(thalweg("results", "run", "--json").stdout)
    assert [(mark["repetition"], mark["reason"]) for mark in document["untrustworthy"]] == [
        (0, "late"),
        (2, "late"),
        (3, "busy"),
    ]


def test_results_of_several_runs_are_printed_one_after_another(thalweg: Thalweg, tmp_path: Path) -> None:
    for name in ("before", "after"):
        run = SyntheticRun(tmp_path / name, [experiment()])
        run.transfer(0, 0)
        run.write()
    run_file = tmp_path / "after" / "run.json"
    command = ["thalweg", "run", "a.toml", "--set", "path.rtt=120ms"]
    run_file.write_text(json.dumps(json.loads(run_file.read_text()) | {"command": command}))
    first, second = (thalweg("results", name).stdout for name in ("before", "after"))
    done = thalweg("results", "before", "after")
    after = "after (thalweg run a.toml --set path.rtt=120ms)"
    assert (done.returncode, done.stdout) == (Exit.FINE, f"before\n{first}\n{after}\n{second}")
    documents = json.loads(thalweg("results", "before", "after", "--json").stdout)
    assert documents == [json.loads(thalweg("results", name, "--json").stdout) for name in ("before", "after")]
    heading, *lines = thalweg("results", "before", "after", "--csv").stdout.splitlines()
    assert heading.startswith("run,")
    assert [line.partition(",")[0] for line in lines] == sorted(
        (line.partition(",")[0] for line in lines), reverse=True
    )
    assert {line.partition(",")[0] for line in lines} == {"before", "after"}


def test_results_with_only_untrustworthy_experiments_fail(thalweg: Thalweg, tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run", [experiment()])
    run.transfer(0, 0, untrustworthy="late")
    run.write()
    done = thalweg("results", "run")
    assert (done.returncode, done.stdout) == (Exit.NO_EVIDENCE, "")
    assert "No experiment can be used: 1 of 1 experiment is untrustworthy" in done.stderr
    as_json = thalweg("results", "run", "--json")
    assert as_json.returncode == Exit.NO_EVIDENCE
    assert json.loads(as_json.stdout)["evidence"] == "none"
