"""The bundled scenarios and studies are valid, and the engine supports them."""

import json
import re
import runpy
import tomllib
from pathlib import Path

import jsonschema  # a dependency of altair
import pytest
from thalweg import engine, plan, scenario
from thalweg.errors import ThalwegErrors
from thalweg.scenario.departures import departures

ROOT = Path(__file__).parents[3]
FILES = sorted(
    file
    for file in [*ROOT.glob("scenarios/**/*.toml"), *ROOT.glob("studies/*/*.toml")]
    if file.name != "claims.toml"  # the claims of a study are not a scenario
)


OF_A_REAL_KERNEL = {"bpftune-arms", "quic-beside-tcp"}
"""Studies with algorithms that only a real kernel has, or with external programs."""

OF_REAL_KERNELS = {"2brobust/tenants": "co_tenants", "better-bbr/cells": "bbr_tuned"}
"""Scenarios with features that only real kernels have, by folder and name: a scheduler for processes, a loaded eBPF
program.
"""


def scenario_name(file: Path) -> str:
    return f"{file.parent.name}/{file.stem}"


def planned(file: Path, name: str) -> None:
    capabilities = engine.capabilities()
    document_plan = plan.make(scenario.load(file), capabilities.engines[name], capabilities.engines)
    assert document_plan.experiments
    assert document_plan.about, "says what it shows"


@pytest.mark.parametrize(
    "file",
    [file for file in FILES if file.parent.name not in OF_A_REAL_KERNEL and scenario_name(file) not in OF_REAL_KERNELS],
    ids=lambda file: file.stem,
)
def test_a_bundled_scenario_can_be_planned(file: Path) -> None:
    planned(file, engine.DEFAULT)


def test_the_departures_of_every_bundled_scenario_from_defaults_are_found() -> None:
    for file in FILES:
        raw = {key: value for key, value in scenario.load(file).raw.items() if key != "sweep"}
        assert "name" in departures(raw), file
    tables = 'cc = {bpf = "mine.bpf.o"}\napp = {name = "rpc", rate = "9/s"}\n'
    raw = tomllib.loads(f'name = "x"\n[[flow]]\nname = "a"\n{tables}')
    assert {"flow.a.cc.bpf": "mine.bpf.o", "flow.a.app.rate": "9/s"}.items() <= departures(raw).items()


@pytest.mark.parametrize("file", [file for file in FILES if scenario_name(file) in OF_REAL_KERNELS], ids=scenario_name)
def test_kernel_only_features_are_refused_by_the_simulator(file: Path) -> None:
    with pytest.raises(ThalwegErrors, match=OF_REAL_KERNELS[scenario_name(file)]):
        planned(file, engine.DEFAULT)


@pytest.mark.usefixtures("uml")
@pytest.mark.parametrize(
    "file", [file for file in FILES if file.parent.name in OF_A_REAL_KERNEL], ids=lambda file: file.stem
)
def test_a_scenario_with_kernel_only_algorithms_can_be_planned(file: Path) -> None:
    planned(file, "uml")


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_schema_accepts_a_bundled_scenario(file: Path) -> None:
    schema = json.loads((ROOT / "docs" / "schema" / "scenario.schema.json").read_text())
    jsonschema.validate(tomllib.loads(file.read_text()), schema)
    (named,) = re.findall(r"^#:schema (.*)$", file.read_text(), flags=re.M)
    assert (file.parent / named).resolve() == ROOT / "docs" / "schema" / "scenario.schema.json"


def test_the_schema_rejects_an_unknown_key() -> None:
    schema = json.loads((ROOT / "docs" / "schema" / "scenario.schema.json").read_text())
    with pytest.raises(jsonschema.ValidationError, match="bufer"):
        jsonschema.validate({"name": "x", "path": {"rtt": "1ms", "bufer": "1bdp"}}, schema)


def test_the_mixes_of_itc18_are_two_hundred_experiments() -> None:
    capabilities = engine.capabilities()
    document = scenario.load(ROOT / "studies/itc18-mixed-workload/mixes.toml")
    planned = plan.make(document, capabilities.engines[engine.DEFAULT], capabilities.engines)
    assert len(planned.experiments) == 200
    assert {(e.flows[0].cc, e.flows[1].cc) for e in planned.experiments} == {
        (large, medium) for large in ("cubic", "bbr") for medium in ("cubic", "bbr")
    }
    assert len({e.seed for e in planned.experiments}) == 200


def test_the_synthetic_trace_matches_its_formula() -> None:
    folder = ROOT / "scenarios" / "traces"
    trace = runpy.run_path(str(folder / "make_lte_like.py"))["trace"]()
    assert (folder / "lte-like.up").read_text().split() == [str(ms) for ms in trace]
