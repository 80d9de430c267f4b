"""The table [fuzz]: its keys, the errors for mistakes, and the conditions."""

import tomllib
from pathlib import Path

import pytest
from thalweg import engine, scenario
from thalweg.errors import ThalwegError
from thalweg.scenario.document import Document, read
from thalweg.scenario.toml_text import toml
from thalweg.search.conditions import Conditions, Element, applied, elements
from thalweg.search.failures import windows
from thalweg.search.fuzz_table import Fuzz
from thalweg.search.shrinking import shrink

ROOT = Path(__file__).parents[3]

SCENARIO = """\
name = "x"
duration = "10s"
sample_interval = "50ms"
[path]
rate = "10Mbps"
rtt = "20ms"
[[flow]]
name = "ours"
cc = "bbr"
[fuzz]
fails = { FAILS }
[fuzz.conditions]
CONDITIONS
"""
FAILS = 'stall = "utilisation <= 20% for 5s"'
CONDITIONS = 'outage = { for = ["50ms", "3s"], count = 2 }'


def fuzzed(
    folder: Path, fails: str = FAILS, conditions: str = CONDITIONS, path: str = "", interval: str = "50ms"
) -> Fuzz:
    file = folder / "x.toml"
    text = SCENARIO.replace("CONDITIONS", conditions).replace("FAILS", fails).replace("50ms", interval, 1)
    file.write_text(text.replace('rtt = "20ms"\n', f'rtt = "20ms"\n{path}'))
    return Fuzz.of(scenario.load(file))


MISTAKES = {
    "unknown condition": ({"conditions": 'outtage = { for = ["1s", "2s"] }'}, "no condition `outtage`", "`outage`"),
    "unknown value": ({"conditions": 'outage = { form = ["1s", "2s"] }'}, "no value `form`", "`for`"),
    "missing value": ({"conditions": 'policer = { rate = ["1Mbps", "2Mbps"] }'}, "`burst` is missing", "rate, burst"),
    "wrong kind": ({"conditions": 'outage = { for = ["1MB", "2MB"] }'}, "is a range of size", "a range of time"),
    "many policers": (
        {"conditions": 'policer = { rate = ["1Mbps", "2Mbps"], burst = ["1kB", "2kB"], count = 2}'}, "`count` is 2", "1"
    ),
    "no range": ({"conditions": 'outage = { for = ["1s"] }'}, "has 1 ends", "the smaller one first"),
    "unknown flow": ({"fails": 'x = "share(our) <= 5%"'}, "no flow `our`", "`ours`"),
    "no window": ({"fails": 'x = "timeouts(ours) >= 5 for 2s"'}, "measured within a time window", "without `for`"),
    "no time": ({"fails": 'x = "utilisation <= 0.1 for ever"'}, "`ever` is not a time", "5s"),
    "never sampled": (
        {"fails": 'x = "utilisation <= 0.1"', "interval": "0s"}, "no value without samples", "sample_interval above 0s"
    ),
    "changing path": ({"path": 'loss = { model = "gilbert-elliott", p = 0.1, r = 0.1 }\n'}, "already changes", "rate"),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_explained(name: str, tmp_path: Path) -> None:
    changes, message, advice = MISTAKES[name]
    with pytest.raises(ThalwegError) as caught:
        fuzzed(tmp_path, **changes)
    text = caught.value.text()
    assert message in text
    assert advice in text
    assert "x.toml:" in text, "it says in which line"


def test_only_present_settings_become_elements(tmp_path: Path) -> None:
    parameters = {parameter.address: parameter for parameter in fuzzed(tmp_path).parameters}
    assert parameters["outage.0.at"].high == 10.0, "within the scenario's duration"
    settings = {"outage.0.present": False, "outage.0.at": "1s", "outage.0.for": "1s",
                "outage.1.present": True, "outage.1.at": "2s", "outage.1.for": "60ms"}  # fmt: skip
    assert elements(settings) == [Element("outage", {"at": "2s", "for": "60ms"})]


def test_conditions_become_steps_of_the_path_and_flows(tmp_path: Path) -> None:
    document = fuzzed(tmp_path).document
    conditions = [
        Element("rate", {"at": "4s", "to": "2Mbps"}),
        Element("outage", {"at": "3s", "for": "2s"}),
        Element("loss", {"at": "1s", "for": "500ms", "ratio": 0.3}),
        Element("cross", {"at": "2s", "cc": "cubic", "size": "1MB"}),
    ]
    raw = applied(document, conditions).raw
    assert isinstance(raw["path"], dict)
    assert "rate" not in raw["path"]
    assert raw["path"]["steps"] == [
        {"at": "0s", "rate": "10Mbps", "loss": 0.0},
        {"at": "1s", "rate": "10Mbps", "loss": 0.3},
        {"at": "1.5s", "rate": "10Mbps", "loss": 0.0},
        {"at": "3s", "rate": "1kbps", "loss": 0.0},
        {"at": "5s", "rate": "2Mbps", "loss": 0.0},
    ]
    assert raw["flow"] == [*document.flows, {"name": "cross-1", "cc": "cubic", "size": "1MB", "start": "2s"}]
    scenario.checked(applied(document, conditions))


def test_an_outage_ends_exactly_when_it_should(tmp_path: Path) -> None:
    raw = applied(fuzzed(tmp_path).document, [Element("outage", {"at": "12.34s", "for": "4ms"})]).raw
    assert isinstance(raw["path"], dict)
    assert raw["path"]["steps"] == [
        {"at": "0s", "rate": "10Mbps"},
        {"at": "12.34s", "rate": "1kbps"},
        {"at": "12344ms", "rate": "10Mbps"},
    ]


def test_shrinking_removes_unneeded_elements_and_rounds_the_rest() -> None:
    """The failure requires only an outage of at least one second together with loss."""
    tried = []

    def fails(conditions: Conditions) -> bool:
        tried.append(conditions)
        lasts = [condition.end_ns() - condition.start_ns() for condition in conditions if condition.kind == "outage"]
        return any(condition >= 10**9 for condition in lasts) and any(
            condition.kind == "loss" for condition in conditions
        )

    conditions = [
        Element("jitter", {"up_to": "12.34ms"}),
        Element("outage", {"at": "3.217s", "for": "2.513s"}),
        Element("cross", {"at": "1s", "cc": "bbr", "size": "1MB"}),
        Element("loss", {"at": "4.56s", "for": "345ms", "ratio": 0.4567}),
    ]
    minimal = shrink(conditions, fails)
    assert [condition.kind for condition in minimal] == ["outage", "loss"]
    assert minimal[0].values == {"at": "3s", "for": "1s"}
    assert minimal[1].values["at"] == "5s"
    assert len(tried) < 60


@pytest.mark.parametrize("file", sorted((ROOT / "scenarios").rglob("*.toml")), ids=lambda file: file.stem)
def test_a_scenario_is_written_as_it_was_read(file: Path) -> None:
    raw = read(file).raw
    assert tomllib.loads(toml(raw)) == raw


def test_windows_cover_the_experiment() -> None:
    assert windows(10.0, 4.0) == [(0.0, 4.0), (2.0, 6.0), (4.0, 8.0), (6.0, 10.0)]
    assert windows(3.0, 4.0) == [(0.0, 4.0)]
    assert windows(10.0, 4.0, 3.0) == [(3.0, 7.0), (5.0, 9.0), (6.0, 10.0)]


def test_a_document_without_the_table_is_refused() -> None:
    document = Document(ROOT / "x.toml", "", {"name": "x"})
    with pytest.raises(ThalwegError, match="no table"):
        Fuzz.of(document)


def test_an_algorithm_that_the_engine_lacks_is_refused_before_the_search(tmp_path: Path) -> None:
    sim = engine.capabilities("sim").engines["sim"]
    cross = 'cross = { at = ["0s", "9s"], cc = ["CC", "bbr"], size = ["100kB", "5MB"] }'
    fuzzed(tmp_path, conditions=cross.replace("CC", "cubic")).check(sim)
    with pytest.raises(ThalwegError, match="the engine `sim` has no congestion control `cubik`") as caught:
        fuzzed(tmp_path, conditions=cross.replace("CC", "cubik")).check(sim)
    assert "did you mean `cubic`?" in caught.value.text()
