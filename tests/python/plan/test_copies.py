"""The prediction of whether repetitions are copies of one another."""

from dataclasses import replace
from pathlib import Path

import pytest
from synthetic_engines import KERNEL, SIM
from thalweg import plan, scenario

STILL = """\
repetitions = 3
name = "x"
duration = "5s"
[path]
rate = "40Mbps"
rtt = "45ms"
[[flow]]
name = "a"
cc = "cubic"
"""

APPLICATIONS = {f"flow.app={name}" for name in ("video", "web", "rpc", "probe")}
ENGINE = replace(
    SIM,
    honours=SIM.honours
    | APPLICATIONS
    | {
        "host.*.cpu_share",
        "host.*.cpu_model",
        "host.*.cpu_credit",
        "host.*.cpu_slice_jitter",
        "host.*.kernel=6.1",
        "flow.app.name=web",
        "flow.app.sizes",
        "flow.app.depth",
        "background.rate",
    },
)


def copy_warning(tmp_path: Path, text: str) -> str | None:
    (tmp_path / "x.toml").write_text(text)
    known = {"sim": ENGINE, "kernel": KERNEL}
    return plan.copies_warning(plan.make(scenario.load(tmp_path / "x.toml"), ENGINE, known), ENGINE)


def test_deterministic_repetitions_will_be_copies(tmp_path: Path) -> None:
    warning = copy_warning(tmp_path, STILL)
    assert warning is not None
    assert warning.startswith("the repetitions will be copies of one another")
    assert 'start_jitter = "1rtt"' in warning


def test_a_random_start_does_not_affect_a_single_transfer(tmp_path: Path) -> None:
    warning = copy_warning(tmp_path, 'start_jitter = "1rtt"\n' + STILL + 'size = "1MB"\n')
    assert warning is not None
    assert warning.endswith("(start_jitter alone only shifts them; use random loss or path.jitter)")


def test_an_application_without_random_sizes_or_references_is_copied(tmp_path: Path) -> None:
    for app in ('"video"', '"probe"', '{name = "web", sizes = ["10kB"], depth = 2}'):
        assert copy_warning(tmp_path, STILL + f"app = {app}\n") is not None, app


def test_slices_that_follow_credit_do_not_begin_at_a_random_time(tmp_path: Path) -> None:
    host = '[host.sender]\ncpu_share = 0.5\ncpu_model = "credit"\ncpu_credit = "1s"\n'
    assert copy_warning(tmp_path, STILL + host) is not None
    assert copy_warning(tmp_path, STILL + host + "cpu_slice_jitter = 0.1\n") is None
    assert copy_warning(tmp_path, STILL + host.replace('"1s"', '"0s"')) is None


def test_writes_at_the_limit_of_the_send_buffer_take_a_random_time(tmp_path: Path) -> None:
    host = '[host.sender]\nsndbuf_max = "64kB"\n'
    assert copy_warning(tmp_path, STILL + host) is None
    assert copy_warning(tmp_path, STILL + host + 'kernel = "6.1"\n') is not None


def test_one_repetition_is_not_a_copy(tmp_path: Path) -> None:
    assert copy_warning(tmp_path, STILL.replace("repetitions = 3\n", "")) is None


@pytest.mark.parametrize(
    "text",
    [
        'start_jitter = "1rtt"\n' + STILL,
        STILL.replace("[path]\n", "[path]\nloss = 0.01\n"),
        STILL.replace("[path]\n", '[path]\nloss = {model = "gilbert-elliott", p = 0.01, r = 0.5}\n'),
        STILL.replace("[path]\n", '[path]\njitter = "1ms"\n'),
        STILL.replace("[path]\n", "[path]\nreorder = 0.01\n"),
        STILL.replace("[path]\n", "[path]\nduplicate = 0.01\n"),
        STILL.replace('rate = "40Mbps"', 'steps = [{at = "0s", rate = "40Mbps"}, {at = "2s", loss = 0.01}]'),
        'start_jitter = "1rtt"\n'
        + STILL.replace('rtt = "45ms"', 'rtt = "45ms"\nsteps = [{at = "0s", rtt = "45ms"}, {at = "2s", rtt = "90ms"}]')
        + 'size = "1MB"\n',
        STILL.replace("cubic", "bbr"),
        STILL + '[path.reverse]\nrate = "1Mbps"\nloss = 0.01\n',
        STILL + '[host.receiver]\ndelay_jitter = "1ms"\n',
        STILL + "[host.sender]\ncpu_share = 0.5\n",
        STILL + '[[background]]\nrate = "1Mbps"\n',
        STILL + 'app = "rpc"\n',
        STILL + 'app = {name = "web", sizes = ["10kB"], depth = 3}\n',
        STILL + 'app = {name = "web", sizes = ["10kB", "20kB"], depth = 2}\n',
        STILL + '[flow.repeat]\narrivals = "poisson"\nrate = "2/s"\nsizes = ["10kB"]\n',
    ],
)
def test_any_randomness_makes_repetitions_differ(tmp_path: Path, text: str) -> None:
    assert copy_warning(tmp_path, text) is None


def test_a_nondeterministic_engine_has_no_copies(tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text(STILL)
    noisy = replace(SIM, is_real_time=True)
    assert plan.copies_warning(plan.make(scenario.load(tmp_path / "x.toml"), SIM, {"sim": SIM}), noisy) is None


def test_random_points_of_a_sweep_are_not_reported_as_copies(tmp_path: Path) -> None:
    warning = copy_warning(tmp_path, STILL + '[sweep]\n"path.loss" = [0.0, 0.01, 0.02]\n')
    assert warning is not None
    assert "at 1 of 3 points" in warning
