"""Kconfig fragments: their parsing, and options that Kconfig drops silently."""

from pathlib import Path

import pytest
from thalweg.errors import ThalwegErrors
from thalweg.kernel import fragment
from thalweg.kernel.fragment import Fragment


def test_later_lines_take_precedence_across_fragments() -> None:
    ours = fragment.parse("CONFIG_A=y\nCONFIG_HZ=250\n", "ours")
    other = fragment.parse("CONFIG_HZ=100\nCONFIG_HZ=1000\n", "other")
    assert fragment.merged([ours, other]) == {"CONFIG_A": "y", "CONFIG_HZ": "1000"}


def test_malformed_lines_are_reported_with_their_positions() -> None:
    with pytest.raises(ThalwegErrors) as error:
        fragment.parse("# a comment\nCONFIG_A=m\nTCP_CONG_LP=y\n\nCONFIG_B\n", "more.config")
    assert [str(mistake.source) for mistake in error.value.errors] == [
        "more.config:2",
        "more.config:3",
        "more.config:5",
    ]
    assert "no modules" in error.value.text()


def test_options_required_by_the_engine_cannot_be_disabled() -> None:
    other = fragment.parse("# CONFIG_TCP_CONG_BIC is not set\nCONFIG_HOSTFS=n\n", "other")
    with pytest.raises(ThalwegErrors) as error:
        fragment.merged([Fragment.ours(), other])
    assert [mistake.place for mistake in error.value.errors] == ["CONFIG_HOSTFS"], "algorithms may be removed"


def test_the_tick_rate_precedes_the_defaults_of_the_tree() -> None:
    text = fragment.wrapper('# hello\nmainmenu "Linux"\nsource "arch/um/Kconfig"\n', "250")
    assert text.index("mainmenu") < text.index("default 250") < text.index('source "arch')
    assert text.count("mainmenu") == 1


def test_a_missing_algorithm_is_a_note_and_other_missing_options_are_errors(tmp_path: Path) -> None:
    ours = fragment.parse("CONFIG_HOSTFS=y\nCONFIG_TCP_CONG_VENO=y\n", "ours")
    (note,) = fragment.missing([ours], "CONFIG_HOSTFS=y\n", tmp_path)
    assert note.startswith("CONFIG_TCP_CONG_VENO does not exist in this kernel")
    with pytest.raises(ThalwegErrors) as error:
        fragment.missing([ours], "CONFIG_TCP_CONG_VENO=y\n# CONFIG_HOSTFS is not set\n", tmp_path)
    assert "CONFIG_HOSTFS does not exist in this kernel" in error.value.text()


def test_a_changed_value_is_reported_with_both_values(tmp_path: Path) -> None:
    (tmp_path / "Kconfig").write_text("config HZ\n\tint\n\tdefault 100\n")
    ours = fragment.parse("CONFIG_HZ=250\n", "ours")
    with pytest.raises(ThalwegErrors, match="CONFIG_HZ=250 has no effect: the value is 100"):
        fragment.missing([ours], "CONFIG_HZ=100\n", tmp_path)


def test_kernel_options_cover_all_scenario_algorithms() -> None:
    options = Fragment.ours().options
    algorithms = "CUBIC BBR DCTCP HTCP VEGAS WESTWOOD ILLINOIS BIC VENO YEAH HYBLA"
    queues = "HTB TBF NETEM FQ FQ_CODEL CODEL CAKE PIE RED SFQ INGRESS"
    for name in algorithms.split():
        assert options[f"CONFIG_TCP_CONG_{name}"] == "y"
    for name in queues.split():
        assert options[f"CONFIG_NET_SCH_{name}"] == "y"
    assert options["CONFIG_HZ"] == "1000", "timers of TCP as fine as the simulator's"
