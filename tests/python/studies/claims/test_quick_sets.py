"""The overrides of a scenario with --quick: an engine's quick set is never larger than its full set."""

import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from thalweg import engine, studies
from thalweg.engine import Engine
from thalweg.studies import Study
from thalweg.studies.claims.planned_part import prepare

STUDIES = studies.ready_made()

SCENARIO = """\
name = "alone"
duration = "2s"
repetitions = 40
[path]
rate = "10Mbps"
rtt = "20ms"
[[flow]]
name = "bulk"
cc = "cubic"
[sweep]
"path.buffer" = ["1bdp", "2bdp", "4bdp", "8bdp"]
"""

CLAIMS = """\
title = "Alone"
about = "One flow on its own."
[paper]
cite = "Author, Journal (2031)"
[parts.alone]
scenario = "alone.toml"
quick = { repetitions = 5, "path.buffer" = ["1bdp", "4bdp"] }
[parts.alone.engines.uml]
set = { repetitions = 3 }
[parts.alone.engines.kernel]
set = { repetitions = 3, "path.buffer" = ["8bdp"] }
quick = { repetitions = 2 }
"""


@cache
def engines() -> dict[str, Engine]:
    """Return the engines; they are queried once, because each query probes this machine."""
    return engine.capabilities().engines


def planned(study: Study, name: str, part: str, *, quick: bool) -> list[tuple[str, int]]:
    """Return the buffer and the repetition of each experiment that an engine runs of a part; empty if the engine
    cannot run it.
    """
    all_engines = engines()
    plan = prepare(study, part, replace(all_engines[name], available=True), all_engines, quick=quick).plan
    return (
        [(str(experiment.sweep.get("path.buffer")), experiment.repetition) for experiment in plan.experiments]
        if plan
        else []
    )


@pytest.mark.parametrize("name", STUDIES)
def test_no_quick_set_is_larger_than_the_full_one(name: str) -> None:
    study = studies.load(STUDIES[name])
    for engine_name in engines():
        for part in study.claims.parts:
            full, quick = (planned(study, engine_name, part, quick=which) for which in (False, True))
            assert len(quick) <= len(full), (engine_name, part)


def test_overrides_of_a_part_apply_in_order_quick_engine_engine_quick(tmp_path: Path) -> None:
    (tmp_path / "alone.toml").write_text(SCENARIO)
    (tmp_path / "claims.toml").write_text(CLAIMS)
    study = studies.load(tmp_path)
    assert planned(study, "sim", "alone", quick=True) == [(buffer, n) for buffer in ("1bdp", "4bdp") for n in range(5)]
    assert planned(study, "uml", "alone", quick=True) == [(buffer, n) for buffer in ("1bdp", "4bdp") for n in range(3)]
    assert planned(study, "kernel", "alone", quick=True) == [("8bdp", 0), ("8bdp", 1)]
    assert len(planned(study, "uml", "alone", quick=False)) == 4 * 3


def test_reductions_only_in_the_quick_set_are_reported(tmp_path: Path) -> None:
    (tmp_path / "alone.toml").write_text(SCENARIO)
    shorter = CLAIMS.replace("quick = { repetitions = 5,", 'quick = { duration = "1s", repetitions = 5,')
    (tmp_path / "claims.toml").write_text(shorter.replace("set = { repetitions = 3 }", 'set = { duration = "1.5s" }'))
    study, all_engines = studies.load(tmp_path), engines()

    def scaled(name: str, *, quick: bool) -> str:
        return prepare(study, "alone", replace(all_engines[name], available=True), all_engines, quick=quick).scaled

    assert (scaled("sim", quick=False), scaled("sim", quick=True)) == ("", "in the quick set duration = 1s")
    assert scaled("uml", quick=True) == "", "what is narrow on an engine stays so"


@pytest.mark.parametrize("name", STUDIES)
def test_a_study_reports_engine_specific_durations_and_rates(name: str) -> None:
    study = studies.load(STUDIES[name])
    for part, table in study.claims.parts.items():
        if table.records is not None:
            continue
        scenario = study.documents[part].raw
        for engine_name, setup in table.engines.items():
            own = {key: scenario.get("sweep", {}).get(key, []) for key in ("duration", "path.rate")}
            own["duration"] = [*own["duration"], scenario.get("duration")]
            own["path.rate"] = [*own["path.rate"], scenario["path"].get("rate")]
            for key, base_values in own.items():
                laid = setup.set.get(key, [])
                for value in laid if isinstance(laid, list) else [laid]:
                    if value not in base_values:
                        number = re.match(r"[0-9.]+", str(value))
                        assert number, (part, engine_name, key)
                        assert re.search(rf"\b{number[0]}\b", setup.scaled or ""), (part, engine_name, key, value)
