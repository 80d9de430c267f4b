"""[path] in the plan: queue disciplines, changing conditions, presets."""

import gzip
from pathlib import Path

import pytest
from synthetic_engines import KERNEL, SIM
from thalweg import plan, scenario
from thalweg.errors import ThalwegError, ThalwegErrors
from thalweg.plan.models import Experiment, Plan
from thalweg.scenario import traces

FLOW = '[[flow]]\nname = "a"\ncc = "cubic"\nsize = "1MB"\n'
EVERYTHING = SIM.honours | {
    *(f"path.queue={name}" for name in ("codel", "fq_codel", "pie", "fq_pie", "red", "fq", "dualpi2", "cake")),
    *(f"path.queue.name={name}" for name in ("codel", "fq_codel", "pie", "red")),
    *(f"path.queue.{key}" for key in ("limit", "target", "ecn", "min", "max")),
    *(f"path.steps.{key}" for key in ("rtt", "loss")),
    *("path.preset", "path.policer.rate", "path.policer.burst", "path.aggregation.interval", "flow.ecn"),
}


def planned(tmp_path: Path, path: str, flow: str = FLOW) -> Plan:
    (tmp_path / "x.toml").write_text(f'name = "x"\n[path]\n{path}\n{flow}')
    engine = type(SIM)(**{**vars(SIM), "honours": frozenset(EVERYTHING)})
    return plan.make(scenario.load(tmp_path / "x.toml"), engine, {"sim": engine, "kernel": KERNEL})


def only_experiment(tmp_path: Path, path: str, flow: str = FLOW) -> Experiment:
    (experiment,) = planned(tmp_path, path, flow).experiments
    return experiment


def queue(tmp_path: Path, text: str, buffer: str = "") -> tuple[dict[str, object], dict[str, object]]:
    link = only_experiment(tmp_path, f'rate = "40Mbps"\nrtt = "45ms"\nqueue = {text}\n{buffer}').forward
    return link.queue.model_dump(), link.buffer.model_dump()


def test_a_discipline_has_the_defaults_of_linux(tmp_path: Path) -> None:
    assert queue(tmp_path, '"codel"') == (
        {"kind": "codel", "target_ns": 5_000_000, "interval_ns": 100_000_000, "ecn": False, "ce_threshold_ns": None},
        {"kind": "packets", "packets": 1000},
    )
    discipline, limit = queue(tmp_path, '"fq_codel"')
    assert (discipline["flows"], discipline["quantum_bytes"], discipline["ecn"]) == (1024, 1514, True)
    assert limit == {"kind": "packets", "packets": 10240}
    discipline, _ = queue(tmp_path, '"pie"')
    assert (discipline["target_ns"], discipline["alpha"], discipline["beta"]) == (15_000_000, 2, 20)


def test_red_derives_its_thresholds_from_the_limit_as_tc_does(tmp_path: Path) -> None:
    discipline, limit = queue(tmp_path, '{name = "red", limit = 400000}')
    assert limit == {"kind": "bytes", "bytes": 400_000}
    assert (discipline["min_bytes"], discipline["max_bytes"], discipline["burst"]) == (33_333, 100_000, 55)
    discipline, _ = queue(tmp_path, '{name = "red", limit = 400000, min = "30kB"}')
    assert discipline["max_bytes"] == 90_000
    _, limit = queue(tmp_path, '"red"', 'buffer = "2bdp"')
    assert limit == {"kind": "bytes", "bytes": 450_000}


@pytest.mark.parametrize(
    ("text", "buffer", "packets"),
    [
        ('"codel"', 'buffer = "60kB"', 40),
        ('"codel"', 'buffer = "7packets"', 7),
        ('{name = "codel", limit = 500}', 'buffer = "60kB"', 500),
        ('{name = "codel", limit = 500}', "", 500),
    ],
)
def test_a_configured_buffer_limits_a_discipline_without_a_limit(
    tmp_path: Path, text: str, buffer: str, packets: int
) -> None:
    assert queue(tmp_path, text, buffer)[1] == {"kind": "packets", "packets": packets}


def test_steps_of_rtt_and_loss_become_a_profile_of_each_direction(tmp_path: Path) -> None:
    steps = '{at = "0s", rtt = "20ms"}, {at = "5s", rtt = "81ns", loss = 0.1}, {at = "6s", loss = 0.0}'
    document = planned(tmp_path, f'rate = "40Mbps"\nrtt = "20ms"\nsteps = [{steps}]')
    (experiment,) = document.experiments
    assert experiment.forward.profile
    assert experiment.reverse.profile
    forward, reverse = document.profiles[experiment.forward.profile], document.profiles[experiment.reverse.profile]
    assert [(point.delay_ns, point.loss) for point in forward.points] == [(10**7, None), (40, 0.1), (None, 0.0)]
    assert [(point.at_ns, point.delay_ns) for point in reverse.points] == [(0, 10**7), (5 * 10**9, 41)]
    assert experiment.forward.capacity.model_dump()["steps"] == [{"at_ns": 0, "rate_bps": 40_000_000}]
    alone = planned(tmp_path, 'rtt = "20ms"\nsteps = [{at = "0s", rate = "4Mbps"}, {at = "1s", rate = "2Mbps"}]')
    assert not alone.profiles, "steps of the rate alone are as before"


def test_a_csv_file_is_a_profile(tmp_path: Path) -> None:
    rows = "# of a train\r\nt_s,rate_bps,delay_s,loss\r\n100.0,8e6,0.02,\r\n100.5,0,,0.5\r\n\r\n101,2000000,0.03,0\r\n"
    (tmp_path / "train.csv").write_bytes(b"\xef\xbb\xbf" + rows.encode())
    (tmp_path / "train.csv.gz").write_bytes(gzip.compress(rows.encode()))
    document = planned(tmp_path, 'trace = "train.csv"\nrtt = "40ms"')
    (experiment,) = document.experiments
    assert experiment.forward.capacity.kind == "profile"
    assert experiment.forward.profile
    profile = document.profiles[experiment.forward.profile]
    assert profile.period_ns == 1_500_000_000
    points = [(point.at_ns, point.rate_bps, point.delay_ns, point.loss) for point in profile.points]
    assert points == [
        (0, 8_000_000, 20_000_000, None),
        (500_000_000, 0, None, 0.5),
        (10**9, 2_000_000, 30_000_000, 0.0),
    ]
    # A BDP refers to the mean rate: (8 + 0 + 2) / 3 Mbit/s over 40 ms.
    assert experiment.forward.buffer.model_dump() == {"kind": "bytes", "bytes": 16_666}
    assert planned(tmp_path, 'trace = "train.csv.gz"\nrtt = "40ms"').profiles == document.profiles


def test_a_trace_of_delays_has_a_rate_beside_it(tmp_path: Path) -> None:
    (tmp_path / "delays.csv").write_text("t_s,delay_s\n0,0.02\n2,0.03\n")
    document = planned(tmp_path, 'rate = "20Mbps"\ntrace = "delays.csv"\nrtt = "40ms"')
    forward = document.experiments[0].forward
    assert forward.capacity.model_dump()["steps"] == [{"at_ns": 0, "rate_bps": 20_000_000}]
    assert forward.buffer.model_dump() == {"kind": "bytes", "bytes": 100_000}
    assert forward.profile
    assert [point.delay_ns for point in document.profiles[forward.profile].points] == [20_000_000, 30_000_000]
    assert traces.read(tmp_path / "delays.csv").mean_rate_bps == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("t_s,rate\n0,1\n", "a trace has no column `rate`"),
        ("t_s,rate_bps\n0,1\n0,2\n", "a row is not later than the one before"),
        ("t_s,rate_bps\n0,fast\n", "rate_bps is not a number"),
        ("t_s,rate_bps\n0,-1\n", "rate_bps is negative, not finite or too large"),
        ("t_s,rate_bps\n0,nan\n", "rate_bps is negative, not finite or too large"),
        ("t_s,rate_bps,loss\n0,1,2\n", "loss is not a ratio between 0 and 1"),
        ("t_s,rate_bps\n0,1,2\n", "a row has 3 cells, and the header has 2"),
        ("t_s,rate_bps\n0,\n1,5\n", "the first row has no rate_bps"),
        ("t_s,rate_bps\n0,0\n1,0\n", "every rate_bps is 0: no packet would ever pass"),
        ("t_s,rate_bps\n", "the file has a header but no rows"),
    ],
)
def test_a_csv_that_is_malformed_is_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "x.csv").write_text(text)
    with pytest.raises(ThalwegError) as caught:
        planned(tmp_path, 'trace = "x.csv"\nrtt = "40ms"')
    assert f"bad trace: {message}" in caught.value.text()


def test_a_truncated_gzip_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.gz").write_bytes(gzip.compress(b"1\n2\n" * 1000)[:-20])
    with pytest.raises(ThalwegError) as caught:
        planned(tmp_path, 'trace = "x.gz"\nrtt = "40ms"')
    assert "gzip cannot decompress it" in caught.value.text()


def test_an_engine_may_support_only_one_trace_format(tmp_path: Path) -> None:
    (tmp_path / "x.up").write_text("1\n2\n")
    (tmp_path / "x.csv").write_text("t_s,rate_bps\n0,10000000\n1,2000000\n")
    (tmp_path / "x.toml").write_text(f'name = "x"\n[path]\ntrace = "x.csv"\nrtt = "40ms"\n{FLOW}')
    document = scenario.load(tmp_path / "x.toml")
    rates = type(SIM)(**{**vars(SIM), "honours": SIM.honours | {"path.trace=csv"}})
    (experiment,) = plan.make(document, rates, {"sim": rates}).experiments
    assert experiment.forward.capacity.kind == "profile"
    (tmp_path / "x.toml").write_text(document.text.replace("x.csv", "x.up"))
    with pytest.raises(ThalwegErrors) as caught:
        plan.make(scenario.load(tmp_path / "x.toml"), rates, {"sim": rates})
    assert "`path.trace` in the format mahimahi" in caught.value.text()


def test_a_preset_sets_only_unset_keys(tmp_path: Path) -> None:
    experiment = only_experiment(tmp_path, 'preset = "geo"')
    assert experiment.rtt_ns == 650_000_000
    assert experiment.reverse.capacity.model_dump()["steps"][0]["rate_bps"] == 10_000_000
    own = only_experiment(tmp_path, 'preset = "geo"\nrtt = "600ms"\nsteps = [{at = "0s", rate = "5Mbps"}]')
    assert own.rtt_ns == 600_000_000
    assert own.forward.capacity.model_dump()["steps"][0]["rate_bps"] == 5_000_000


@pytest.mark.parametrize("name", ["starlink", "geo", "lte", "5g", "wifi", "dsl", "cable", "fibre", "datacenter"])
def test_every_preset_is_a_scenario(tmp_path: Path, name: str) -> None:
    assert only_experiment(tmp_path, f'preset = "{name}"').rtt_ns > 0


def test_steps_without_a_rate_keep_that_of_the_preset(tmp_path: Path) -> None:
    forward = only_experiment(
        tmp_path, 'preset = "lte"\nsteps = [{at = "0s", loss = 0}, {at = "2s", loss = 0.01}]'
    ).forward
    assert forward.capacity.model_dump()["steps"] == [{"at_ns": 0, "rate_bps": 12_700_000}]
    assert forward.profile


def test_a_sweep_over_presets_expands_each(tmp_path: Path) -> None:
    document = planned(tmp_path, 'preset = "geo"', FLOW + '[sweep]\n"path.preset" = ["geo", "fibre"]\n')
    assert [experiment.rtt_ns for experiment in document.experiments] == [650_000_000, 10_000_000]
    own = planned(tmp_path, 'preset = "geo"', FLOW + '[sweep]\n"path.rate" = ["1Mbps", "2Mbps"]\n')
    rates = [
        planned_experiment.forward.capacity.model_dump()["steps"][0]["rate_bps"]
        for planned_experiment in own.experiments
    ]
    assert rates == [10**6, 2 * 10**6]
