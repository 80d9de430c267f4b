"""A kernel saves at least as many bytes of register state as the host's kernel requires."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from thalweg.errors import Exit
from thalweg.kernel import registers

Thalweg = Callable[..., Any]

OLD = "#ifdef FP_XSTATE_MAGIC1\n\tDEFINE_LONGS(HOST_FP_SIZE, 2696);\n#else\n"
"""Excerpt of arch/x86/um/user-offsets.c in Linux 6.1."""


@pytest.fixture
def old(tree: Path) -> Path:
    """Return a tree whose number of bytes for registers is the constant in `OLD`."""
    (tree / registers.PLACE).parent.mkdir(parents=True)
    (tree / registers.PLACE).write_text(OLD)
    return tree


def test_the_register_size_of_the_machine_is_detected() -> None:
    # The minimum is the size of FXSAVE, which all 64-bit x86 processors have.
    assert 512 <= registers.size_bytes() < 1 << 16
    assert registers.size_bytes() % 8 == 0


def test_the_size_in_the_source_is_replaced_with_that_of_the_machine(old: Path) -> None:
    assert registers.is_too_small(old, 11008)
    registers.enlarge(old, 11008)
    assert (old / registers.PLACE).read_text() == OLD.replace("2696", "11008")
    assert not registers.is_too_small(old, 11008)


@pytest.mark.parametrize("needed", [832, 2696])
def test_a_sufficient_size_is_not_changed(old: Path, needed: int) -> None:
    assert not registers.is_too_small(old, needed)


def test_a_custom_tree_with_a_too_small_size_is_refused(
    thalweg: Thalweg, old: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registers, "size_bytes", lambda: 11008)
    done = thalweg("kernel", "build", "--source", str(old))
    assert done.returncode == Exit.USAGE, done.stderr
    assert f"programs on this machine have 11008 bytes of registers, but `{old}` saves 2696" in done.stderr
    assert "change HOST_FP_SIZE from 2696 to 11008" in done.stderr
    assert (old / registers.PLACE).read_text() == OLD, "a developer's tree is only read"


def test_larger_registers_yield_another_kernel_with_larger_stacks(
    thalweg: Thalweg, tree: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for size, option in ((2696, None), (11008, "CONFIG_KERNEL_STACK_ORDER=4\n")):
        monkeypatch.setattr(registers, "size_bytes", lambda size=size: size)
        done = thalweg("kernel", "build", "--source", str(tree))
        assert done.stdout.startswith("built: "), done.stderr
        config = (cache / "current" / "config").read_text()
        assert (option or "CONFIG_HZ=1000\n") in config
        assert ("STACK_ORDER" in config) is (option is not None)
