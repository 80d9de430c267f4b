"""Kconfig fragments: what is read, and what becomes of options that Kconfig drops in silence."""

from pathlib import Path

import pytest
from thalweg.errors import ThalwegErrors
from thalweg.kernel import fragment
from thalweg.kernel.fragment import Fragment


def test_a_later_line_has_precedence_also_in_another_fragment() -> None:
    ours = fragment.parse("CONFIG_A=y\nCONFIG_HZ=250\n", "ours")
    other = fragment.parse("CONFIG_HZ=100\nCONFIG_HZ=1000\n", "other")
    assert fragment.merged([ours, other]) == {"CONFIG_A": "y", "CONFIG_HZ": "1000"}


def test_all_lines_that_are_no_options_are_reported_with_their_places() -> None:
    with pytest.raises(ThalwegErrors) as error:
        fragment.parse("# a comment\nCONFIG_A=m\nTCP_CONG_LP=y\n\nCONFIG_B\n", "more.config")
    assert [str(each.source) for each in error.value.errors] == ["more.config:2", "more.config:3", "more.config:5"]
    assert "no modules" in error.value.text()


def test_what_the_engine_needs_cannot_be_turned_off() -> None:
    other = fragment.parse("# CONFIG_TCP_CONG_BIC is not set\nCONFIG_HOSTFS=n\n", "other")
    with pytest.raises(ThalwegErrors) as error:
        fragment.merged([Fragment.ours(), other])
    assert [each.place for each in error.value.errors] == ["CONFIG_HOSTFS"], "algorithms may be removed"


def test_ticks_are_defined_before_the_tree_defines_them() -> None:
    text = fragment.wrapper('# hello\nmainmenu "Linux"\nsource "arch/um/Kconfig"\n', "250")
    assert text.index("mainmenu") < text.index("default 250") < text.index('source "arch')
    assert text.count("mainmenu") == 1


def test_an_algorithm_that_a_tree_lacks_is_a_note_and_anything_else_an_error(tmp_path: Path) -> None:
    ours = fragment.parse("CONFIG_HOSTFS=y\nCONFIG_TCP_CONG_VENO=y\n", "ours")
    (note,) = fragment.missing([ours], "CONFIG_HOSTFS=y\n", tmp_path)
    assert note.startswith("CONFIG_TCP_CONG_VENO does not exist in this kernel")
    with pytest.raises(ThalwegErrors) as error:
        fragment.missing([ours], "CONFIG_TCP_CONG_VENO=y\n# CONFIG_HOSTFS is not set\n", tmp_path)
    assert "CONFIG_HOSTFS does not exist in this kernel" in error.value.text()


def test_a_value_that_came_out_differently_is_named_with_both(tmp_path: Path) -> None:
    (tmp_path / "Kconfig").write_text("config HZ\n\tint\n\tdefault 100\n")
    ours = fragment.parse("CONFIG_HZ=250\n", "ours")
    with pytest.raises(ThalwegErrors, match="CONFIG_HZ=250 does not hold: it is 100"):
        fragment.missing([ours], "CONFIG_HZ=100\n", tmp_path)


def test_our_options_name_all_that_scenarios_offer() -> None:
    options = Fragment.ours().options
    algorithms = "CUBIC BBR DCTCP HTCP VEGAS WESTWOOD ILLINOIS BIC VENO YEAH HYBLA"
    queues = "HTB TBF NETEM FQ FQ_CODEL CODEL CAKE PIE RED SFQ INGRESS"
    for name in algorithms.split():
        assert options[f"CONFIG_TCP_CONG_{name}"] == "y"
    for name in queues.split():
        assert options[f"CONFIG_NET_SCH_{name}"] == "y"
    assert options["CONFIG_HZ"] == "1000", "timers of TCP as fine as the simulator's"
