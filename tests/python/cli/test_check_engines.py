"""`check` probes the machine for the requested engine only; other engines are queried when an error names them."""

from pathlib import Path

import pytest
from thalweg import engine, scenario
from thalweg.cli import prepared
from thalweg.errors import ThalwegError, ThalwegErrors

ROOT = Path(__file__).parents[3]
QUICKSTART = ROOT / "scenarios" / "quickstart.toml"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str | None]:
    """Names of the engines that were queried; None means all."""
    names: list[str | None] = []
    capabilities = engine.capabilities

    def recorded(name: str | None = None) -> engine.Capabilities:
        names.append(name)
        return capabilities(name)

    monkeypatch.setattr(engine, "capabilities", recorded)
    return names


def test_a_valid_scenario_queries_only_its_engine(asked: list[str | None]) -> None:
    _, capabilities = prepared.plan_for(scenario.load(QUICKSTART, {}), "sim")
    assert asked == ["sim"]
    assert list(capabilities.engines) == ["sim"]


def test_an_unknown_engine_is_reported_with_all_engines(asked: list[str | None]) -> None:
    with pytest.raises(ThalwegError, match="there is no engine `smi`") as caught:
        prepared.plan_for(scenario.load(QUICKSTART, {}), "smi")
    assert caught.value.expected == "one of sim, kernel, uml, vm"


@pytest.mark.usefixtures("kernel")
def test_what_queue_disciplines_cannot_do_is_refused_before_the_run() -> None:
    for key, value in {"engine.record": True, "host.sender.delay_jitter": "1ms"}.items():
        document = scenario.load(QUICKSTART, {key: value, "engine.link": "netem"})
        with pytest.raises(ThalwegErrors) as caught:
            prepared.plan_for(document, "kernel")
        (error,) = caught.value.errors  # once, not for each point of the sweep
        assert error.code == "not-on-netem"
        assert f"`{key}`" in error.message
        assert 'engine.link = "relay"' in str(error.hint)
        prepared.plan_for(scenario.load(QUICKSTART, {key: value, "engine.link": "relay"}), "kernel")


def test_an_unsupported_key_names_an_engine_that_supports_it(asked: list[str | None]) -> None:
    document = scenario.load(QUICKSTART, {"host.sender.qdisc": "fq"})
    with pytest.raises(ThalwegErrors) as caught:
        prepared.plan_for(document, "sim")
    assert [error.hint for error in caught.value.errors] == ["these do: kernel, uml, vm"]
