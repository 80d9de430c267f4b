"""Paths on which no packet can arrive are rejected, with the cause."""

from pathlib import Path

import pytest
from thalweg import scenario
from thalweg.errors import ThalwegError, ThalwegErrors

HEAD = 'name = "x"\nduration = "10s"\n'
PATH = '[path]\nrate = "10Mbps"\nrtt = "40ms"\n'
FLOW = '[[flow]]\nname = "a"\ncc = "cubic"\n'
GOOD = HEAD + PATH + FLOW


def refused(folder: Path, text: str) -> list[ThalwegError]:
    (folder / "slow.trace").write_text("500000\n")
    (folder / "late.trace").write_text("9990\n10000\n")
    (folder / "fast.trace").write_text("1\n2\n3\n")
    (folder / "x.toml").write_text(text)
    try:
        scenario.load(folder / "x.toml")
    except ThalwegErrors as errors:
        return list(errors.errors)
    return []


CASES = {
    "loss of everything": ("path.loss", GOOD.replace("[path]\n", "[path]\nloss = 1.0\n"), "every packet"),
    "loss of every ACK": ("path.reverse.loss", GOOD + "[path.reverse]\nloss = 1.0\n", "no ACK arrives"),
    "always in the bad state": (
        "path.loss",
        GOOD.replace("[path]\n", '[path]\nloss = {model = "gilbert-elliott", p = 1.0, r = 0.0}\n'),
        "every packet",
    ),
    "never in the good state's favour": (
        "path.loss",
        GOOD.replace("[path]\n", '[path]\nloss = {model = "gilbert-elliott", p = 0.0, r = 1.0, loss_good = 1.0}\n'),
        "every packet",
    ),
    "duration below a round trip": ("duration", GOOD.replace("10s", "30ms"), "two round trips of 40ms"),
    "duration below two round trips": ("duration", GOOD.replace("10s", "80ms"), "two round trips of 40ms"),
    "start just before the end": ("flow.a.start", GOOD + 'start = "9.95s"\n', "it starts at 9.95s"),
    "a flow of a longer way": ("duration", GOOD + 'extra_rtt = "6s"\n', "two round trips of 6.04s"),
    "stop before the connection": ("flow.a.stop", GOOD + 'stop = "30ms"\n', "stops before it can connect"),
    "trace with a packet every 500 s": (
        "path.trace",
        GOOD.replace('rate = "10Mbps"', 'trace = "slow.trace"\nbuffer = "1packet"'),
        "the trace's mean rate is 24bps, and it repeats every 500s",
    ),
    "trace that begins late": (
        "path.trace",
        GOOD.replace('rate = "10Mbps"', 'trace = "late.trace"\nbuffer = "1packet"'),
        "it repeats every 10s",
    ),
    "reverse trace that carries no ACK": (
        "path.reverse.trace",
        GOOD + '[path.reverse]\ntrace = "slow.trace"\nbuffer = "1packet"\n',
        "no ACK can arrive",
    ),
    "rate at which a packet takes longer": (
        "path.rate",
        GOOD.replace("10Mbps", "1kbps").replace("[path]\n", '[path]\nbuffer = "1packet"\n'),
        "within the 10s of the experiment (the rate is 1kbps)",
    ),
    "reverse rate at which an ACK takes longer": (
        "path.reverse.rate",
        GOOD + '[path.reverse]\nrate = "30bps"\nbuffer = "1packet"\n',
        "no ACK can arrive within the 10s of the experiment (the rate is 30bps)",
    ),
    "outage until the end": (
        "path.steps",
        GOOD.replace(
            'rate = "10Mbps"',
            'steps = [{at = "0s", rate = "0bps"}, {at = "10s", rate = "1Mbps"}]\nbuffer = "10packets"',
        ),
        "the rate is 0bps from 0s, 1Mbps from 10s",
    ),
    "buffer of no packet behind a slow trace": (
        "path.buffer",
        'name = "x"\n' + PATH.replace('rate = "10Mbps"', 'trace = "slow.trace"') + FLOW + 'size = "1kB"\n',
        "is too small for a packet: the trace's mean rate is 24bps, and it repeats every 500s",
    ),
    "at one point of a sweep": (
        "path.reverse.loss",
        GOOD + '[sweep]\n"path.reverse.loss" = [0.0, 1.0]\n',
        "where the sweep sets path.reverse.loss = 1.0",
    ),
    "at one duration of a sweep": (
        "path.rtt",
        GOOD + '[sweep]\n"path.rtt" = ["40ms", "20s"]\n',
        'where the sweep sets path.rtt = "20s"',
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_reason_is_reported_if_no_packet_can_arrive(tmp_path: Path, case: str) -> None:
    place, text, cause = CASES[case]
    errors = refused(tmp_path, text)
    assert len(errors) == 1, [error.text() for error in errors]
    assert cause in errors[0].text()
    if not case.startswith("at one"):
        assert errors[0].place == place


def test_a_trace_line_mistaken_for_a_rate_is_explained(tmp_path: Path) -> None:
    errors = refused(tmp_path, GOOD.replace('rate = "10Mbps"', 'trace = "slow.trace"'))
    assert {error.place for error in errors} == {"path.buffer", "path.trace"}
    assert all("each line of a trace is the time in ms of one 1500-byte packet" in error.text() for error in errors)


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        GOOD.replace("[path]\n", "[path]\nloss = 0.999\n"),
        GOOD.replace("[path]\n", '[path]\nloss = {model = "gilbert-elliott", p = 0.0, r = 0.0}\n'),
        GOOD.replace(
            "[path]\n",
            '[path]\nloss = {model = "gilbert-elliott", p = 0.5, r = 0.5, loss_good = 1.0, loss_bad = 0.5}\n',
        ),
        GOOD.replace("10s", "100ms"),
        GOOD.replace('rtt = "40ms"', 'rtt = "6s"\nsteps = [{at = "0s", rtt = "6s"}, {at = "1s", rtt = "20ms"}]'),
        GOOD + 'start = "9.9s"\n',
        GOOD + 'stop = "45ms"\n',
        GOOD + '[path.reverse]\ntrace = "fast.trace"\nbuffer = "10packets"\n',
        GOOD.replace('rate = "10Mbps"', 'trace = "fast.trace"\nbuffer = "10packets"'),
        GOOD.replace('rate = "10Mbps"', 'trace = "slow.trace"\nbuffer = "1packet"').replace("10s", "1001s"),
        GOOD.replace(
            'rate = "10Mbps"',
            'steps = [{at = "0s", rate = "0bps"}, {at = "9s", rate = "1Mbps"}]\nbuffer = "10packets"',
        ),
    ],
)
def test_a_path_that_can_carry_packets_is_valid(tmp_path: Path, text: str) -> None:
    assert [error.text() for error in refused(tmp_path, text)] == []


def test_a_small_transfer_needs_less_than_a_full_packet(tmp_path: Path) -> None:
    slow = GOOD.replace("10Mbps", "1kbps").replace("[path]\n", '[path]\nbuffer = "1packet"\n')
    assert refused(tmp_path, slow)
    assert refused(tmp_path, slow + 'size = "100B"\n') == []
