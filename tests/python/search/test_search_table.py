"""The table [search]: its keys, and the errors for mistakes."""

from pathlib import Path

import pytest
from small_search import SCENARIO, searched
from thalweg import engine, scenario
from thalweg.errors import ThalwegError, ThalwegErrors
from thalweg.search.planning import Planner, points
from thalweg.search.table import Search
from thalweg.search.terms import Constraint, TermError

MISTAKES = {
    "unknown key": ({"more": "bugdet = 3"}, "unknown key `bugdet` in [search]", "did you mean `budget`?"),
    "unknown place": ({"parameters": '{ "path.bufer" = [1, 2] }'}, "`path.bufer` does not exist", "path.buffer"),
    "unknown flow": ({"parameters": '{ "flow.our.cc" = { choices = ["bbr", "reno"] } }'}, "flow.our.cc", "ours.cc"),
    "swept, too": ({"parameters": '{ "path.rtt" = ["1ms", "2ms"] }'}, "`path.rtt` is also in [sweep]", "remove it"),
    "wrong way": ({"parameters": '{ "path.buffer" = ["4bdp", "1bdp"] }'}, "4bdp", "smaller one first"),
    "two kinds": ({"parameters": '{ "path.buffer" = ["4bdp", "1MB"] }'}, "from a bdp to a size", "one kind"),
    "log from 0": ({"parameters": '{ "path.loss" = { low = 0.0, high = 0.1, scale = "log" } }'}, "at 0.0", "above 0"),
    "impossible end": ({"parameters": '{ "path.loss" = [0.0, 7.0] }'}, "with path.loss = 7.0", "from 0 to 1"),
    "impossible choice": ({"parameters": '{ "path.queue" = { choices = ["fifo", "code"] } }'}, "code", "codel"),
    "unknown measure": (
        {"objectives": '[{ measure = "godput", of = "ours", goal = "maximise" }]'}, "no measure `godput`", "`goodput`"
    ),
    "no flow": ({"objectives": '[{ measure = "goodput", goal = "maximise" }]'}, "measure of a flow", "goodput(ours)"),
    "a flow of the path": (
        {"objectives": '[{ measure = "utilisation", of = "ours", goal = "maximise" }]'}, "of the path", "without a flow"
    ),
    "wrong goal": ({"objectives": '[{ measure = "goodput", of = "ours", goal = "maximize" }]'}, "maximize", "maximise"),
    "wrong over": (
        {"objectives": '[{ measure = "goodput", of = "ours", goal = "maximise", over = "wrost" }]'}, "wrost", "`worst`"
    ),
    "constraint": ({"more": 'constraints = ["harm(thiers) <= 0.1"]'}, "no flow `thiers`", "`theirs`"),
    "no constraint": ({"more": 'constraints = ["harm of theirs"]'}, "does not compare two", "goodput(ours)"),
    "equality": ({"more": 'constraints = ["harm(theirs) = 0.1"]'}, "`=` is not a bound", "harm(theirs) <= 0.1"),
    "two measures": ({"more": 'constraints = ["goodput(ours) >= goodput(theirs)"]'}, "not a constraint", "<= number"),
    "no unit": ({"more": 'constraints = ["goodput(theirs) >= 3"]'}, "`3` has no unit", "did you mean `3Mbps`"),
    "no per cent": ({"more": 'constraints = ["harm(theirs) <= 50"]'}, "`harm(theirs)` is at most 1", "`50%`"),
    "wrong unit": ({"more": 'constraints = ["goodput(theirs) >= 5ms"]'}, "`5ms` is in s", "5Mbps"),
    "held out, not swept": ({"more": 'held_out = { "path.rate" = ["1Mbps"] }'}, "not a key of [sweep]", "path.rtt"),
    "held out, no value": ({"more": 'held_out = { "path.rtt" = ["99ms"] }'}, '"99ms" is not a value', "10ms"),
    "held out, no file": ({"more": 'held_out = { rows = ["paths.csv"] }'}, "not a file of `rows`", "has none"),
    "unknown key of flows": (
        {"parameters": '{ "flow.*.cc_parms.probe_gain" = [1.1, 1.5] }'}, "does not exist", "cc_params"
    ),
    "never sampled": (
        {
            "objectives": '[{ measure = "queueing_delay", goal = "minimise", over = "worst" }]',
            "head": 'sample_interval = "0s"',
        },
        "`queueing_delay` has no value without samples", "set sample_interval above 0s",
    ),
    "a constraint that is never sampled": (
        {"more": 'constraints = ["utilisation >= 0.8"]', "head": 'sample_interval = "0ms"'},
        "`utilisation` has no value without samples", "set sample_interval above 0s",
    ),
    "all held out": ({"more": 'held_out = { "path.rtt" = ["10ms", "20ms", "30ms"] }'}, "has no points", "another"),
}  # fmt: skip


@pytest.mark.parametrize("name", [name for name in MISTAKES if name != "all held out"])
def test_a_mistake_is_explained(name: str, tmp_path: Path) -> None:
    changes, message, advice = MISTAKES[name]
    with pytest.raises(ThalwegError) as caught:
        searched(tmp_path, **changes)
    text = caught.value.text()
    assert message in text
    assert advice in text
    assert "x.toml:" in text, "it says in which line"


def test_a_search_without_points_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ThalwegError, match="no points"):
        searched(tmp_path, **MISTAKES["all held out"][0])


def test_all_mistakes_are_reported_together(tmp_path: Path) -> None:
    with pytest.raises(ThalwegError) as caught:
        searched(tmp_path, more='constraints = ["nonsense"]\nheld_out = { "path.rate" = ["1Mbps"] }')
    assert len(caught.value.errors) == 2


def test_ranges_become_settings_of_the_scenario(tmp_path: Path) -> None:
    parameters = """{ "path.buffer" = { low = "100kB", high = "1MB", scale = "log" }, \
"path.rate" = ["5Mbps", "20Mbps"], "flow.ours.count" = { int = [1, 8] }, "path.loss" = [0.0, 0.1], \
"host.sender.delay_jitter" = ["10us", "2ms"] }"""
    by_address = {parameter.address: parameter for parameter in searched(tmp_path, parameters=parameters).parameters}
    assert by_address["path.buffer"].setting(123_456.7) == "123.5kB"
    assert by_address["path.rate"].setting(12_345_678.0) == "12.35Mbps"
    assert by_address["flow.ours.count"].setting(3) == 3
    assert by_address["path.loss"].setting(0.0123456) == 0.01235
    assert by_address["host.sender.delay_jitter"].setting(0.00123456) == "1.235ms"


@pytest.mark.parametrize(
    ("text", "bound", "excess"),
    [("harm(theirs) <= 0.1", 0.1, 1.0), ("rtt_p95(ours) ≤ 60ms", 0.06, None), ("goodput(ours) >= 5Mbps", 5e6, None)],
)
def test_a_constraint_is_read(text: str, bound: float, excess: float | None) -> None:
    constraint = Constraint.parse(text, ["ours", "theirs"])
    assert constraint.bound == pytest.approx(bound)
    assert constraint.excess(bound) == 0
    if excess is not None:
        assert constraint.excess(0.2) == pytest.approx(excess)


UNSUPPORTED = {
    "a misspelt parameter": (
        '{ "flow.ours.cc_params.pacing_gian" = [1.05, 1.9] }', "no parameter `pacing_gian`", "`pacing_gain`?"
    ),
    "a misspelt parameter of every flow": (
        '{ "flow.*.cc_params.beta_enc" = [0.5, 0.8] }', "`cubic` has no parameter `beta_enc`", "`beta_ecn`?"
    ),
    "a high end out of range": (
        '{ "flow.ours.cc_params.probe_gain" = [1.05, 2.5] }', "is 2.5", "from 1 to 1.9"
    ),
    "a low end out of range": (
        '{ "flow.ours.cc_params.probe_gain" = { low = 0.5, high = 1.5, scale = "log" } }', "is 0.5", "from 1 to 1.9"
    ),
    "fractions of a whole number": (
        '{ "flow.ours.cc_params.cruise_phases" = [0, 20] }', "is 0.382", "a whole number from 0 to 62"
    ),
    "an unknown algorithm": (
        '{ "flow.theirs.cc" = { choices = ["reno", "cubik"] } }', "no congestion control `cubik`", "`cubic`?"
    ),
    "a parameter that one of the algorithms lacks": (
        '{ "flow.ours.cc" = { choices = ["bbr", "reno"] }, "flow.ours.cc_params.probe_gain" = [1.1, 1.9] }',
        "`reno` has no parameter `probe_gain`", "beta_ecn",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_a_parameter_that_the_engine_rejects_is_a_mistake_of_the_table(name: str, tmp_path: Path) -> None:
    parameters, message, advice = UNSUPPORTED[name]
    capabilities = engine.capabilities("sim")
    planner = Planner(searched(tmp_path, parameters=parameters), capabilities.engines["sim"], capabilities)
    with pytest.raises(ThalwegErrors) as caught:
        planner.check()
    assert any(message in error.text() and advice in error.text() for error in caught.value.errors)
    for error in caught.value.errors:
        assert error.source == planner.search.document.source(("search", "parameters"))
        assert str(error.place).startswith('search.parameters."flow.')


def test_a_range_of_whole_numbers_is_supported(tmp_path: Path) -> None:
    capabilities = engine.capabilities("sim")
    search = searched(tmp_path, parameters='{ "flow.ours.cc_params.cruise_phases" = { int = [0, 20] } }')
    Planner(search, capabilities.engines["sim"], capabilities).check()


def test_only_constraints_are_evaluated() -> None:
    with pytest.raises(TermError):
        Constraint.parse("__import__('os').system('true') <= 1", ["ours"])


def test_rows_of_a_file_can_be_held_out_and_flows_can_share_a_parameter(tmp_path: Path) -> None:
    (tmp_path / "seen.csv").write_text("path.rate,path.rtt\n10Mbps,10ms\n10Mbps,20ms\n")
    (tmp_path / "held-out.csv").write_text("path.rate,path.rtt\n20Mbps,10ms\n")
    text = SCENARIO.replace("{HEAD}", "")
    text = text.replace('"path.rtt" = ["10ms", "20ms", "30ms"]', 'rows = ["seen.csv", "held-out.csv"]')
    text = text.replace('cc = "cubic"', 'cc = "bbr"')
    text = text.replace("{PARAMETERS}", '{ "flow.*.cc_params.probe_gain" = [1.1, 1.9] }')
    text = text.replace("{OBJECTIVES}", '[{ measure = "jain", goal = "maximise" }]')
    (tmp_path / "x.toml").write_text(text.replace("{MORE}", 'held_out = { rows = ["held-out.csv"] }'))
    capabilities = engine.capabilities()
    planner = Planner(Search.of(scenario.load(tmp_path / "x.toml")), capabilities.engines["sim"], capabilities)
    training, held_out = (planner.plan({"flow.*.cc_params.probe_gain": 1.5}, side) for side in ("seen", "held out"))
    assert [experiment.sweep["path.rtt"] for experiment in training.experiments] == ["10ms", "20ms"]
    assert [experiment.sweep["path.rate"] for experiment in held_out.experiments] == ["20Mbps"]
    assert points(held_out) == [2]
    assert [flow.cc_params["probe_gain"] for flow in training.experiments[0].flows] == [1.5, 1.5]
