"""Running an engine, including a faulty one."""

import io
import json
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from thalweg import engine, plan, scenario
from thalweg.errors import Exit, ThalwegError
from thalweg.run import Outcome, Progress, default_directory, execute, real_time_s, signals

SCENARIO = 'name = "x"\n[path]\nrate = "40Mbps"\nrtt = "45ms"\n[[flow]]\nname = "a"\ncc = "cubic"\nsize = "1MB"\n'


@pytest.fixture
def a_plan(tmp_path: Path, fake_engine: Path) -> plan.Plan:
    (tmp_path / "x.toml").write_text(SCENARIO)
    capabilities = engine.capabilities()
    return plan.make(scenario.load(tmp_path / "x.toml"), capabilities.engines["sim"], capabilities.engines)


@pytest.fixture
def behave(monkeypatch: pytest.MonkeyPatch, a_plan: plan.Plan, fake_engine: Path, tmp_path: Path) -> Any:
    def run(behaviour: str, **options: Any) -> Outcome:
        monkeypatch.setenv("FAKE_ENGINE", behaviour)
        return execute(a_plan, tmp_path / "out", binary=fake_engine, **options)

    return run


def test_events_are_forwarded_immediately(behave: Any) -> None:
    events: list[dict[str, Any]] = []
    outcome = behave("finish", listener=events.append)
    assert [event["event"] for event in events] == [
        "plan", "started", "finished", "started", "finished", "untrustworthy", "done",
    ]  # fmt: skip
    assert (outcome.exit_code, outcome.experiments, outcome.finished) == (Exit.FINE, 2, 2)
    assert outcome.untrustworthy[0]["reason"] == "the host was busy"


def test_the_run_directory_records_the_command_line(behave: Any, tmp_path: Path, a_plan: plan.Plan) -> None:
    behave("finish", command=["thalweg", "run", "my test.toml"])
    written = json.loads((tmp_path / "out" / "run.json").read_text())
    assert written["command"] == ["thalweg", "run", "my test.toml"]
    assert written["plan"] == a_plan.model_dump()


def test_failed_experiments_do_not_stop_the_others(behave: Any) -> None:
    outcome = behave("fail")
    assert outcome.exit_code is Exit.FAILED
    assert outcome.finished == 1
    assert outcome.failed[0]["message"] == "inflight became negative"


def test_a_refusal_is_an_error_with_its_hint(behave: Any) -> None:
    with pytest.raises(ThalwegError, match="of another plan") as caught:
        behave("refuse")
    assert (caught.value.code, caught.value.hint) == ("other-run", "name another --out")
    assert caught.value.exit_code is Exit.USAGE


def test_a_full_disk_is_distinguished(behave: Any) -> None:
    with pytest.raises(ThalwegError, match="no space left") as caught:
        behave("full")
    assert caught.value.exit_code is Exit.CANNOT_WRITE


def test_an_engine_crash_is_an_error_with_its_last_output(behave: Any) -> None:
    with pytest.raises(ThalwegError, match=r"the engine terminated unexpectedly \(signal 9\)") as caught:
        behave("die")
    assert caught.value.found == "it all went wrong"
    assert "the same command resumes" in str(caught.value.hint)


def test_non_event_output_is_shown_and_skipped(behave: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert behave("babble").finished == 2
    assert "this is not JSON" in capsys.readouterr().err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_reaches_the_engine_once_and_it_exits_cleanly(
    behave: Any, number: signal.Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    events: list[str] = []

    def listener(event: dict[str, Any]) -> None:
        events.append(event["event"])
        if event["event"] == "listening":
            os.kill(os.getpid(), number)

    outcome = behave("wait", listener=listener)
    assert outcome.exit_code is Exit.INTERRUPTED
    assert events[-2:] == ["stopping", "interrupted"]
    assert (tmp_path / "asked").read_text() == f"{int(signal.SIGINT)}\n"


def test_a_run_under_nohup_survives_the_end_of_the_terminal(behave: Any) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)

    def listener(event: dict[str, Any]) -> None:
        if event["event"] == "finished":
            os.kill(os.getpid(), signal.SIGHUP)

    try:
        outcome = behave("finish", listener=listener)
    finally:
        signal.signal(signal.SIGHUP, before)
    assert (outcome.exit_code, outcome.finished) == (Exit.FINE, 2)


def test_a_signal_after_the_last_experiment_still_interrupts(behave: Any) -> None:
    def listener(event: dict[str, Any]) -> None:
        if event["event"] == "done":
            os.kill(os.getpid(), signal.SIGINT)

    outcome = behave("finish-deaf", listener=listener)
    assert (outcome.exit_code, outcome.finished) == (Exit.INTERRUPTED, 2)


def test_a_second_signal_kills_an_unresponsive_engine(
    behave: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    def listener(event: dict[str, Any]) -> None:
        if event["event"] in ("listening", "stopping"):
            os.kill(os.getpid(), signal.SIGINT)

    assert behave("ignore", listener=listener).exit_code is Exit.INTERRUPTED


def test_an_engine_that_does_not_end_in_time_is_killed(
    behave: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(signals, "END_WITHIN_S", 0.2)

    def listener(event: dict[str, Any]) -> None:
        if event["event"] == "listening":
            os.kill(os.getpid(), signal.SIGINT)

    assert behave("ignore", listener=listener).exit_code is Exit.INTERRUPTED


def test_signal_handlers_are_restored(behave: Any) -> None:
    before = signal.getsignal(signal.SIGINT)
    behave("finish")
    assert signal.getsignal(signal.SIGINT) is before


def test_a_plan_on_a_version_of_an_engine_has_one_directory(a_plan: plan.Plan) -> None:
    sim = engine.capabilities().engines["sim"]
    directory = default_directory(a_plan, sim)
    assert directory == default_directory(a_plan.model_copy(), sim)
    assert directory.parent == Path("runs")
    assert directory.name.startswith("x-sim-")
    assert directory != default_directory(a_plan.model_copy(update={"about": "edited"}), sim)
    assert directory != default_directory(a_plan, replace(sim, version="99")), "results of other versions are kept"


def shown(events: list[dict[str, Any]], *, terminal: bool, clock: Any = lambda: 0.0, **options: Any) -> str:
    console = Console(file=io.StringIO(), force_terminal=terminal, width=100)
    with Progress(console, clock, **options) as progress:
        for event in events:
            progress.event(event)
    file = console.file
    assert isinstance(file, io.StringIO)
    return file.getvalue()


PLAN = {"event": "plan", "experiments": 40, "present": 3, "pending": 37, "threads": 2}
FINISHED = {"event": "finished", "experiment": 0, "repetition": 0}


def test_without_a_terminal_progress_is_periodic_lines() -> None:
    ticks = iter(range(0, 1000, 4))
    text = shown([PLAN, *[FINISHED] * 9], terminal=False, clock=lambda: float(next(ticks)))
    assert text.splitlines() == [
        "40 experiments, 2 at a time; 3 are already finished",
        "6 of 40 experiments",
        "9 of 40 experiments",
        "12 of 40 experiments",
    ]


def test_on_a_terminal_progress_is_a_bar() -> None:
    assert "4/40" in shown([PLAN, FINISHED], terminal=True)


def test_failures_are_reported_immediately() -> None:
    failed = {"event": "failed", "experiment": 3, "repetition": 1, "code": "bug", "message": "negative [inflight]"}
    assert "experiment 3 (repetition 1) failed: negative [inflight]" in shown([PLAN, failed], terminal=False)


def test_the_first_of_many_failures_are_reported_immediately() -> None:
    failed = {"event": "failed", "experiment": 3, "repetition": 1, "code": "bug", "message": "no room\nhint: make room"}
    text = shown([PLAN, *[failed] * 9], terminal=False)
    assert text.count("failed: no room\n  hint: make room\n") == 5
    assert text.count("further ones are counted at the end") == 1


def test_in_real_time_the_remaining_time_is_known_before_the_first_result() -> None:
    text = shown([PLAN], terminal=False, title="loss on kernel", real_time_s=40 * 12.0)
    # 37 of 40 experiments of 12 s, two at a time: 222 s
    assert text == "loss on kernel: 40 experiments, 2 at a time; 3 are already finished; in real time: about 4 min\n"


def test_only_a_real_time_engine_with_durations_predicts_its_runtime(a_plan: plan.Plan) -> None:
    sim = engine.capabilities().engines["sim"]
    kernel = replace(sim, is_real_time=True)
    experiments = [experiment.model_copy(update={"duration_ns": 12 * 10**9}) for experiment in a_plan.experiments]
    timed = a_plan.model_copy(update={"experiments": experiments * 3})
    assert (real_time_s(timed, kernel), real_time_s(timed, sim), real_time_s(a_plan, kernel)) == (36.0, None, None)


def test_the_engine_is_found_next_to_python_and_on_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fake_engine: Path
) -> None:
    monkeypatch.delenv("THALWEG_ENGINE")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bin" / "python"))
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    with pytest.raises(ThalwegError, match="is not installed") as caught:
        engine.find()
    assert caught.value.exit_code is Exit.MISSING
    monkeypatch.setenv("PATH", str(tmp_path))
    fake_engine.rename(tmp_path / "thalweg-engine")
    assert engine.find() == tmp_path / "thalweg-engine"
    (tmp_path / "bin").mkdir()
    (tmp_path / "thalweg-engine").rename(tmp_path / "bin" / "thalweg-engine")
    assert engine.find() == tmp_path / "bin" / "thalweg-engine"


def test_a_wrong_name_of_the_engine_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THALWEG_ENGINE", "/nowhere/thalweg-engine")
    with pytest.raises(ThalwegError, match="THALWEG_ENGINE is not the path of a program"):
        engine.find()


@pytest.mark.parametrize("text", ["exit 3", "echo nonsense", 'echo "[]"', "echo oops >&2; exit 1"])
def test_a_program_that_is_not_an_engine_is_an_error(fake_engine: Path, text: str) -> None:
    fake_engine.write_text(f"#!/bin/sh\n{text}\n")
    with pytest.raises(ThalwegError, match="cannot be used") as caught:
        engine.capabilities()
    assert caught.value.exit_code is Exit.MISSING


def test_engine_hints_may_contain_semicolons(fake_engine: Path) -> None:
    sim = engine.capabilities().engines["sim"]
    reason = "namespaces are off: user.max_net_namespaces is 0; sudo sysctl -w user.max_net_namespaces=9; or be root"
    kernel = replace(sim, available=False, why_not=reason)
    assert kernel.reason == "namespaces are off: user.max_net_namespaces is 0"
    assert kernel.remedy == "sudo sysctl -w user.max_net_namespaces=9\nor be root"
    assert (sim.reason, sim.remedy) == ("", "")


def test_an_engine_that_cannot_run_here_reports_why(fake_engine: Path) -> None:
    capabilities = engine.capabilities()
    with pytest.raises(ThalwegError, match=r"cannot run here: user namespaces are switched off$") as caught:
        engine.choose("kernel", capabilities)
    assert caught.value.hint == "sudo sysctl kernel.unprivileged_userns_clone=1\nor be root"
    with pytest.raises(ThalwegError, match="there is no engine `sin`"):
        engine.choose("sin", capabilities)
