"""Network cards of hosts and offloads of a path in the plan."""

from pathlib import Path

import pytest
from synthetic_engines import KERNEL, SIM
from thalweg import plan, scenario
from thalweg.engine import Engine
from thalweg.errors import ThalwegErrors
from thalweg.plan.models import Experiment

ENGINE = type(SIM)(
    **{
        **vars(SIM),
        "honours": SIM.honours | {"path.offloads", "host.*.offloads", "host.*.interrupt_coalescing", "host.*.preset"},
    }
)
FLOW = '[[flow]]\nname = "a"\ncc = "cubic"\nsize = "1MB"\n'


def experiments(tmp_path: Path, hosts: str, path: str = "", engine: Engine = ENGINE) -> list[Experiment]:
    text = f'name = "x"\n[path]\nrate = "500Mbps"\nrtt = "10ms"\n{path}\n{FLOW}{hosts}'
    (tmp_path / "x.toml").write_text(text)
    return plan.make(scenario.load(tmp_path / "x.toml"), engine, {"sim": ENGINE, "kernel": KERNEL}).experiments


def card(experiment: Experiment, name: str) -> tuple[bool, int]:
    host = experiment.hosts[name]
    return host.offloads, host.interrupt_coalescing_ns


def test_network_card_keys_are_absent_by_default(tmp_path: Path) -> None:
    (plain,) = experiments(tmp_path, "")
    assert card(plain, "sender") == (False, 0)
    assert not plain.forward.offloads
    document = plain.model_dump_json()
    assert "offloads" not in document.replace('"offloads":false,"record"', "")
    assert "interrupt_coalescing" not in document


def test_host_keys_override_a_network_card_preset(tmp_path: Path) -> None:
    hosts = '[host.sender]\npreset = "nic-2019"\n[host.receiver]\npreset = "nic-2019"\ninterrupt_coalescing = "20us"\n'
    (experiment,) = experiments(tmp_path, hosts, "offloads = true")
    assert card(experiment, "sender") == (True, 800_000)
    assert card(experiment, "receiver") == (True, 20_000)
    assert (experiment.forward.offloads, experiment.reverse.offloads) == (True, False)


def test_a_sweep_over_a_host_expands_its_preset(tmp_path: Path) -> None:
    hosts = '[host.sender]\npreset = "nic-2019"\n[sweep]\n"host.sender.interrupt_coalescing" = ["0us", "50us"]\n'
    assert [card(experiment, "sender") for experiment in experiments(tmp_path, hosts)] == [(True, 0), (True, 50_000)]


def test_an_unrealistic_interval_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ThalwegErrors) as caught:
        experiments(tmp_path, '[host.sender]\ninterrupt_coalescing = "1s"\n')
    assert "`host.sender.interrupt_coalescing` is too long" in caught.value.text()


def test_an_engine_with_real_network_cards_refuses_the_keys(tmp_path: Path) -> None:
    with pytest.raises(ThalwegErrors) as caught:
        experiments(tmp_path, "[host.sender]\noffloads = true\n", engine=KERNEL)
    assert "does not support `host.sender.offloads`" in caught.value.text()
