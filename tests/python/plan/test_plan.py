"""Plans: a scenario is resolved to experiments."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from synthetic_engines import KERNEL, SIM
from thalweg import plan, scenario
from thalweg.engine import Algorithm, Lack
from thalweg.errors import ThalwegErrors
from thalweg.plan import seeds
from thalweg.plan.models import Experiment, Flow, Host, LoadSizes, Plan, RepeatGap, RepeatPoisson
from thalweg.scenario.document import Value

HEAD = 'name = "x"\n[path]\nrate = "40Mbps"\nrtt = "45ms"\n'
FLOW = '[[flow]]\nname = "a"\ncc = "cubic"\nsize = "1MB"\n'


def make_plan(tmp_path: Path, text: str, settings: Mapping[str, Value] | None = None) -> Plan:
    (tmp_path / "x.toml").write_text(text)
    return plan.make(scenario.load(tmp_path / "x.toml", settings), SIM, {"sim": SIM, "kernel": KERNEL})


def only_experiment(tmp_path: Path, text: str) -> Experiment:
    (experiment,) = make_plan(tmp_path, text).experiments
    return experiment


def refused(tmp_path: Path, text: str) -> list[Any]:
    with pytest.raises(ThalwegErrors) as caught:
        make_plan(tmp_path, text)
    return list(caught.value.errors)


def test_defaults_are_explicit_in_the_plan(tmp_path: Path) -> None:
    experiment = only_experiment(tmp_path, HEAD + FLOW)
    assert experiment.model_dump(exclude={"seed"}) == {
        "experiment": 0,
        "repetition": 0,
        "sweep": {},
        "duration_ns": None,
        "sample_interval_ns": 10_000_000,
        "start_jitter_ns": 0,
        "rtt_ns": 45_000_000,
        "forward": {
            "capacity": {"kind": "steps", "steps": [{"at_ns": 0, "rate_bps": 40_000_000}]},
            "buffer": {"kind": "bytes", "bytes": 225_000},
            "queue": {"kind": "fifo"},
            "loss": {"kind": "bernoulli", "ratio": 0.0},
            "duplicate": 0.0,
            "delay_ns": 22_500_000,
            "jitter_ns": 0,
            "reorder": 0.0,
            "reorder_delay_ns": 5_625_000,
        },
        "reverse": {
            "capacity": {"kind": "unlimited"},
            "buffer": {"kind": "bytes", "bytes": 2**31 - 1},
            "queue": {"kind": "fifo"},
            "loss": {"kind": "bernoulli", "ratio": 0.0},
            "duplicate": 0.0,
            "delay_ns": 22_500_000,
            "jitter_ns": 0,
            "reorder": 0.0,
            "reorder_delay_ns": 5_625_000,
        },
        "hosts": {
            name: {"sndbuf_max_bytes": 2**31 - 1, "rcvbuf_max_bytes": 2**31 - 1, "delay_jitter_ns": 0}
            for name in ("receiver", "sender")
        },
        "flows": [
            {
                "name": "a",
                "cc": "cubic",
                "cc_params": {},
                "start_ns": 0,
                "stop_ns": None,
                "load": {"kind": "sizes", "sizes_bytes": [1_000_000]},
                "repeat": {"kind": "once"},
                "count": 1,
                "extra_rtt_ns": 0,
                "host": "sender",
            }
        ],
        "background": [],
        "engine": {"link": "auto", "traffic": "builtin", "offloads": False, "record": False},
    }


def test_kernel_options_are_in_the_plan(tmp_path: Path) -> None:
    flow = FLOW.replace("cubic", "vegas")
    (tmp_path / "x.toml").write_text(
        HEAD + flow + '[engine]\nlink = "relay"\n[sweep]\n"engine.record" = [true, false]\n'
    )
    engines = {"sim": SIM, "kernel": replace(KERNEL, honours=KERNEL.honours | {"engine.link=relay", "engine.record"})}
    experiments = plan.make(scenario.load(tmp_path / "x.toml"), engines["kernel"], engines).experiments
    assert [(experiment.engine.link, experiment.engine.record) for experiment in experiments] == [
        ("relay", True),
        ("relay", False),
    ]


@pytest.mark.parametrize(
    ("buffer", "resolved"),
    [
        ("0.5bdp", {"kind": "bytes", "bytes": 112_500}),
        ("0.3333bdp", {"kind": "bytes", "bytes": 74_992}),  # 74992.5 rounded down
        ("100kB", {"kind": "bytes", "bytes": 100_000}),
        ("240packets", {"kind": "packets", "packets": 240}),
    ],
)
def test_a_buffer_in_bdp_becomes_bytes(tmp_path: Path, buffer: str, resolved: dict[str, Any]) -> None:
    experiment = only_experiment(tmp_path, HEAD + f'buffer = "{buffer}"\n' + FLOW)
    assert experiment.forward.buffer.model_dump() == resolved


def test_a_bdp_uses_the_first_rate_of_steps(tmp_path: Path) -> None:
    steps = 'steps = [{at = "0s", rate = "8Mbps"}, {at = "1s", rate = "80Mbps"}]'
    experiment = only_experiment(tmp_path, HEAD.replace('rate = "40Mbps"', steps) + FLOW)
    assert experiment.forward.buffer.model_dump() == {"kind": "bytes", "bytes": 45_000}


def test_a_bdp_uses_the_mean_rate_of_a_trace(tmp_path: Path) -> None:
    (tmp_path / "t").write_text("1\n1\n2\n3\n")  # four packets in 3 ms: 16 Mbit/s
    made_plan = make_plan(tmp_path, HEAD.replace('rate = "40Mbps"', 'trace = "t"') + FLOW)
    forward = made_plan.experiments[0].forward
    assert forward.buffer.model_dump() == {"kind": "bytes", "bytes": 90_000}
    assert made_plan.traces == {forward.capacity.model_dump()["trace"]: [1, 1, 2, 3]}


def test_a_trace_is_in_the_plan_once_under_any_name(tmp_path: Path) -> None:
    for name in ("t", "u"):
        (tmp_path / name).write_text("1\n2\n")
    text = HEAD.replace('rate = "40Mbps"', 'trace = "t"') + FLOW + '[sweep]\n"path.trace" = ["t", "u"]\n'
    made_plan = make_plan(tmp_path, text)
    assert len(made_plan.traces) == 1
    assert len(made_plan.experiments) == 2


def test_an_odd_rtt_is_split_exactly(tmp_path: Path) -> None:
    experiment = only_experiment(tmp_path, HEAD.replace("45ms", "45000001ns") + FLOW)
    assert (experiment.forward.delay_ns, experiment.reverse.delay_ns) == (22_500_000, 22_500_001)


def test_times_in_rtts_use_the_rtt_of_the_path(tmp_path: Path) -> None:
    text = 'start_jitter = "1rtt"\n' + HEAD + 'reorder = {ratio = 0.1, delay = "0.5rtt"}\n' + FLOW
    experiment = only_experiment(tmp_path, text)
    assert experiment.start_jitter_ns == 45_000_000
    assert (experiment.forward.reorder, experiment.forward.reorder_delay_ns) == (0.1, 22_500_000)


def test_a_load_in_bits_becomes_a_mean_gap(tmp_path: Path) -> None:
    repeat = 'repeat = {arrivals = "poisson", rate = "10Mbps", sizes = ["10kB", "30kB"], count = 5}\n'
    flow = only_experiment(tmp_path, HEAD + FLOW.replace('size = "1MB"\n', repeat)).flows[0]
    assert flow.load == LoadSizes(sizes_bytes=[10_000, 30_000])
    assert flow.repeat == RepeatPoisson(mean_gap_ns=16_000_000, until=None, count=5)


def test_arrivals_per_second_become_a_mean_gap(tmp_path: Path) -> None:
    flow = only_experiment(tmp_path, HEAD + FLOW + 'repeat = {arrivals = "poisson", rate = "3/s", count = 5}\n').flows[
        0
    ]
    assert flow.repeat == RepeatPoisson(mean_gap_ns=333_333_333, until=None, count=5)


def test_back_to_back_flows_wait_for_another(tmp_path: Path) -> None:
    text = HEAD + FLOW + FLOW.replace('"a"', '"b"') + 'repeat = {gap = "0.1s", until = "a"}\n'
    assert only_experiment(tmp_path, text).flows[1].repeat == RepeatGap(gap_ns=100_000_000, until="a", count=None)


def test_the_last_sweep_key_varies_fastest_after_repetitions(tmp_path: Path) -> None:
    sweep = '[sweep]\n"path.buffer" = ["1bdp", "2bdp"]\n"flow.a.cc" = ["bbr", "cubic"]\n'
    made_plan = make_plan(tmp_path, "repetitions = 2\n" + HEAD + FLOW + sweep)
    points = [(e.experiment, e.repetition, e.sweep["path.buffer"], e.flows[0].cc) for e in made_plan.experiments]
    assert points[:5] == [
        (0, 0, "1bdp", "bbr"),
        (0, 1, "1bdp", "bbr"),
        (1, 0, "1bdp", "cubic"),
        (1, 1, "1bdp", "cubic"),
        (2, 0, "2bdp", "bbr"),
    ]


def test_adding_a_sweep_value_keeps_the_other_seeds(tmp_path: Path) -> None:
    def sweep(values: str) -> dict[tuple[Any, int], int]:
        text = "repetitions = 3\n" + HEAD + FLOW + f'[sweep]\n"path.loss" = [{values}]\n'
        return {(e.sweep["path.loss"], e.repetition): e.seed for e in make_plan(tmp_path, text).experiments}

    few, more = sweep("0.1, 0"), sweep("0.2, 0.1, 0.0, 0.3")
    assert few.items() <= more.items()


def test_another_seed_of_the_scenario_changes_every_seed(tmp_path: Path) -> None:
    text = "repetitions = 5\n" + HEAD + FLOW
    seeds_1 = {e.seed for e in make_plan(tmp_path, text).experiments}
    seeds_2 = {e.seed for e in make_plan(tmp_path, text, {"seed": 2}).experiments}
    assert len(seeds_1) == len(seeds_2) == 5
    assert not seeds_1 & seeds_2


@given(st.integers(0, 2**53 - 1), st.dictionaries(st.text(max_size=3), st.floats(0, 1) | st.text(max_size=3)))
def test_seeds_are_in_range_and_independent_of_the_key_order(seed: int, assignment: dict[str, Value]) -> None:
    derived = seeds.derive(seed, assignment, 0)
    assert 0 <= derived < 2**53
    assert derived == seeds.derive(seed, dict(reversed(assignment.items())), 0)
    assert derived != seeds.derive(seed, assignment, 1)


@given(
    rate_bps=st.integers(10_000_000, 10**12),
    rtt_ns=st.integers(10_000_000, 10**10),
    percent=st.integers(100, 10_000),
)
def test_a_bdp_is_exact_for_all_values(
    tmp_path_factory: pytest.TempPathFactory, rate_bps: int, rtt_ns: int, percent: int
) -> None:
    text = HEAD.replace("40Mbps", f"{rate_bps}bps").replace("45ms", f"{rtt_ns}ns")
    text += f'buffer = "{percent // 100}.{percent % 100:02}bdp"\n' + FLOW
    experiment = only_experiment(tmp_path_factory.mktemp("bdp"), text)
    assert experiment.forward.buffer.model_dump()["bytes"] == rate_bps * rtt_ns * percent // (8 * 10**9 * 100)
    assert experiment.forward.delay_ns + experiment.reverse.delay_ns == rtt_ns


def test_a_key_that_no_engine_supports_is_an_error(tmp_path: Path) -> None:
    (error,) = refused(tmp_path, HEAD + FLOW + "[host.sender]\ncpu_share = 0.5\n")
    assert error.message == "no engine supports `host.sender.cpu_share`"
    assert error.source.line == 10


def test_a_cpu_share_becomes_a_quota_and_a_period_of_that_host_only(tmp_path: Path) -> None:
    text = HEAD + FLOW + '[host.sender]\ncpu_share = 0.7\ncpu_per_ack = "3us"\n[host.other]\nco_tenants = 2\n'
    (tmp_path / "x.toml").write_text(text + FLOW.replace('"a"', '"b"') + 'host = "other"\n')
    keys = {f"host.*.{key}" for key in ("cpu_share", "cpu_per_ack", "co_tenants")} | {"flow.host"}
    able = replace(SIM, honours=SIM.honours | keys)
    (experiment,) = plan.make(scenario.load(tmp_path / "x.toml"), able, {"sim": able}).experiments
    hosts = experiment.hosts
    assert hosts["sender"].cpu is not None
    assert hosts["sender"].cpu.model_dump() == {
        "slice_ns": 10_000_000,
        "period_ns": 14_285_714,
        "per_packet_ns": 1_000,
        "per_ack_ns": 3_000,
    }
    assert hosts["other"].model_dump().keys() - hosts["receiver"].model_dump().keys() == {"co_tenants"}
    assert "cpu" not in hosts["receiver"].model_dump_json()


def test_cpu_credit_has_the_share_as_baseline_and_a_maximum_of_one_day(tmp_path: Path) -> None:
    text = '[host.sender]\ncpu_share = 0.1\ncpu_model = "credit"\ncpu_credit = "60s"\n'
    keys = {
        f"host.*.{key}"
        for key in ("cpu_share", "cpu_model", "cpu_credit", "cpu_credit_max", "cpu_baseline", "cpu_load")
    }
    able = replace(SIM, honours=SIM.honours | keys)

    def planned(more: str) -> Host:
        (tmp_path / "x.toml").write_text(HEAD + FLOW + text + more)
        (experiment,) = plan.make(scenario.load(tmp_path / "x.toml"), able, {"sim": able}).experiments
        return experiment.hosts["sender"]

    cpu = planned("").cpu
    assert cpu is not None
    assert cpu.credit is not None
    assert cpu.credit.model_dump() == {
        "initial_ns": 60 * 10**9,
        "max_ns": 8640 * 10**9,
        "baseline_ppm": 100_000,
        "load_ppm": 0,
    }
    cpu = planned("cpu_baseline = 0.0\ncpu_load = 0.75\n").cpu
    assert cpu is not None
    assert cpu.credit is not None
    assert (cpu.credit.max_ns, cpu.credit.baseline_ppm, cpu.credit.load_ppm) == (60 * 10**9, 0, 750_000)
    text = text.replace("60s", "0s")
    cpu = planned('cpu_credit_max = "0s"\n').cpu
    assert cpu is not None
    assert cpu.credit is not None
    assert cpu.credit.max_ns == 0


def test_only_more_than_one_cpu_is_in_the_plan(tmp_path: Path) -> None:
    able = replace(SIM, honours=SIM.honours | {"host.*.cpus"})
    for count in (1, 2):
        (tmp_path / "x.toml").write_text(HEAD + FLOW + f"[host.sender]\ncpus = {count}\n")
        (experiment,) = plan.make(scenario.load(tmp_path / "x.toml"), able, {"sim": able}).experiments
        assert ("second_cpu" in experiment.hosts["sender"].model_dump()) == (count == 2)


def test_a_host_queue_discipline_is_in_the_plan_of_that_host_only(tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text(HEAD + FLOW + '[host.sender]\nqdisc = "fq"\n')
    able = replace(SIM, honours=SIM.honours | {"host.*.qdisc"})
    (experiment,) = plan.make(scenario.load(tmp_path / "x.toml"), able, {"sim": able}).experiments
    assert experiment.hosts["sender"].qdisc == "fq"
    assert "qdisc" not in experiment.hosts["receiver"].model_dump_json()


def test_a_key_supported_by_another_engine_names_it(tmp_path: Path) -> None:
    (error,) = refused(tmp_path, HEAD + FLOW + '[engine]\nlink = "relay"\n')
    assert error.message == "the engine `sim` does not support `engine.link`"
    assert error.hint == "--engine kernel does"


def test_a_value_supported_by_another_engine_names_it(tmp_path: Path) -> None:
    (error,) = refused(tmp_path, HEAD + 'queue = "codel"\n' + FLOW)
    assert error.hint == "--engine kernel does"
    assert error.expected == "fifo"
    (error,) = refused(tmp_path, HEAD + 'queue = {name = "red"}\n' + FLOW)
    assert error.message == 'no engine supports `path.queue.name = "red"`'


def test_an_unknown_algorithm_suggests_a_similar_one(tmp_path: Path) -> None:
    (error,) = refused(tmp_path, HEAD + FLOW.replace("cubic", "cubc"))
    assert (error.place, error.hint) == ("flow.a.cc", "did you mean `cubic`?")
    (error,) = refused(tmp_path, HEAD + FLOW.replace("cubic", "vegas"))
    assert error.hint == "--engine kernel has it"


def test_an_unavailable_algorithm_is_reported_with_reason_and_command(tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text(HEAD + FLOW.replace("cubic", "bbr_cpu"))
    has = {"bbr_cpu": Algorithm("bbr_cpu", "", {})}
    able = replace(SIM, algorithms={**SIM.algorithms, **has})
    lacking = replace(KERNEL, lacks={"bbr_cpu": Lack("it is not loaded", "sudo thalweg-agent cc load bbr_cpu")})
    with pytest.raises(ThalwegErrors) as refusal:
        plan.make(scenario.load(tmp_path / "x.toml"), lacking, {"sim": able, "kernel": lacking})
    (error,) = refusal.value.errors
    assert error.message == "the engine `kernel` has no congestion control `bbr_cpu` here: it is not loaded"
    assert error.hint == "sudo thalweg-agent cc load bbr_cpu\n--engine sim has it"


def test_an_unknown_algorithm_in_the_sweep_points_to_the_sweep(tmp_path: Path) -> None:
    (error,) = refused(tmp_path, HEAD + FLOW + '[sweep]\n"flow.a.cc" = ["bbr", "bbr9"]\n')
    assert error.code == "unknown-cc"
    assert error.source.line == 10


def test_an_unknown_parameter_suggests_a_similar_one(tmp_path: Path) -> None:
    (error,) = refused(tmp_path, HEAD + FLOW + "cc_params = {betta = 0.5}\n")
    assert (error.place, error.hint) == ("flow.a.cc_params.betta", "did you mean `beta`?")


def test_a_parameter_of_another_engine_is_one_error_that_names_it(tmp_path: Path) -> None:
    (error,) = refused(tmp_path, HEAD + FLOW + "cc_params = {hystart = 0}\n")
    assert error.message == "`cubic` has no parameter `hystart` on the engine `sim`"
    assert error.hint == "--engine kernel has it"


def test_a_parameter_out_of_range_is_an_error_with_position_and_range(tmp_path: Path) -> None:
    (error,) = refused(tmp_path, HEAD + FLOW + "cc_params = {beta = 1.5}\n")
    assert (error.code, error.place, error.found) == ("out-of-range", "flow.a.cc_params.beta", "1.5")
    assert (error.expected, error.hint) == ("a number from 0.5 to 1", "beta: cut")
    assert error.source.line == (HEAD + FLOW).count("\n") + 1


def test_a_swept_parameter_out_of_range_points_to_the_sweep(tmp_path: Path) -> None:
    text = HEAD + FLOW + '[sweep]\n"flow.a.cc_params.beta" = [0.5, 0.1]\n'
    (error,) = refused(tmp_path, text)
    assert (error.found, error.source.line) == ("0.1", text.count("\n"))


def test_a_parameter_must_be_in_the_range_of_every_swept_algorithm(tmp_path: Path) -> None:
    text = HEAD + FLOW + 'cc_params = {beta = 0.7}\n[sweep]\n"flow.a.cc" = ["cubic", "bic"]\n'
    (error,) = refused(tmp_path, text)
    assert "`bic`" in error.message
    assert error.expected == "a whole number from 1 to 1024"


def test_parameters_in_rows_are_checked_with_the_algorithm_of_their_row(tmp_path: Path) -> None:
    text = HEAD + FLOW + '[sweep]\nrows = ["r.csv"]\n'
    (tmp_path / "r.csv").write_text("flow.a.cc,flow.a.cc_params.beta\ncubic,0.7\nbic,819\n")
    assert len(make_plan(tmp_path, text).experiments) == 2
    (tmp_path / "r.csv").write_text("flow.a.cc,flow.a.cc_params.beta\ncubic,819\nbic,819\n")
    (error,) = refused(tmp_path, text)
    assert (Path(error.source.file).name, error.source.line) == ("r.csv", 2)


def test_a_custom_module_needs_an_engine_that_loads_it(tmp_path: Path) -> None:
    (tmp_path / "mine.ko").write_text("code")
    text = HEAD + FLOW.replace('"cubic"', '{name = "mine", module = "mine.ko"}')
    assert {error.hint for error in refused(tmp_path, text)} == {"--engine kernel does"}


def test_a_changed_module_changes_the_experiment(tmp_path: Path) -> None:
    (tmp_path / "tcp_mine.ko").write_text("code")
    (tmp_path / "x.toml").write_text(HEAD + FLOW.replace('"cubic"', '{module = "tcp_mine.ko"}'))

    def flow() -> Flow:
        return plan.make(scenario.load(tmp_path / "x.toml"), KERNEL, {"kernel": KERNEL}).experiments[0].flows[0]

    before = flow()
    assert before.cc == "mine"
    assert before.cc_file
    assert (before.cc_file.kind, before.cc_file.path) == ("module", str(tmp_path / "tcp_mine.ko"))
    (tmp_path / "tcp_mine.ko").write_text("better code")
    assert flow() != before


def test_kernel_generation_and_reordering_are_in_the_plan_only_if_set(tmp_path: Path) -> None:
    text = HEAD + 'jitter = "1ms"\nallow_reordering = true\n' + FLOW + '[host.receiver]\nkernel = "6.1"\n'
    experiment = only_experiment(tmp_path, text)
    assert experiment.forward.allow_reordering
    assert (experiment.hosts["receiver"].kernel, experiment.hosts["sender"].kernel) == ("6.1", None)
    default = only_experiment(tmp_path, HEAD + FLOW).model_dump()
    assert "allow_reordering" not in default["forward"]
    assert "kernel" not in default["hosts"]["receiver"]


def test_an_unsupported_generation_is_refused_with_the_supported_ones(tmp_path: Path) -> None:
    error = refused(tmp_path, HEAD + FLOW + '[host.sender]\nkernel = "6.12"\n')[0]
    assert error.code == "not-honoured"
    assert "6.1, 6.18" in str(error.expected)
