"""Built kernels are listed, selected and removed, and modified ones are detected."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from thalweg.errors import Exit
from thalweg.kernel import store
from thalweg.kernel.store import Kernel

Thalweg = Callable[..., Any]


@pytest.fixture
def two(cache: Path) -> tuple[Kernel, Kernel]:
    """Return two kernels; the newer one is the default."""
    return add_kernel(cache, "6.1.1-aaaaaaaaaaaa", "2026-01-01"), add_kernel(cache, "6.1.2-bbbbbbbbbbbb", "2026-01-02")


def add_kernel(cache: Path, name: str, day: str) -> Kernel:
    folder = cache / name
    folder.mkdir(parents=True)
    (folder / "linux").write_text(name)
    checksum = store.sha256(folder / "linux")
    kernel = Kernel(folder, name.split("-")[0], "linux-source-6.1 6.1", "s", "c", checksum, f"{day}T00:00:00Z")
    kernel.describe()
    kernel.use()
    return kernel


def test_an_empty_kernel_list_explains_how_to_build_one(thalweg: Thalweg) -> None:
    done = thalweg("kernel", "list")
    assert done.returncode == Exit.FINE
    assert "to build one that runs in virtual time: thalweg kernel build\n" in done.stderr
    assert "to fetch one for guests: thalweg kernel fetch\n" in done.stderr
    assert thalweg("kernel", "list", "--json").stdout == '{\n  "kernels": []\n}\n'


def test_the_newest_kernel_is_first_and_the_selected_one_is_marked(
    thalweg: Thalweg, two: tuple[Kernel, Kernel]
) -> None:
    two[0].use()
    lines = thalweg("kernel", "list").stdout.splitlines()
    assert lines[1].split()[0] == two[1].name
    assert lines[2].split()[:2] == ["used", two[0].name]


def test_selecting_a_kernel_is_persistent(thalweg: Thalweg, two: tuple[Kernel, Kernel], cache: Path) -> None:
    assert thalweg("kernel", "use", two[0].name).returncode == Exit.FINE
    assert (cache / "current").resolve() == two[0].folder
    assert store.current() == two[0]


def test_an_unknown_kernel_is_reported_with_the_known_ones(thalweg: Thalweg, two: tuple[Kernel, Kernel]) -> None:
    for word in ("use", "remove"):
        done = thalweg("kernel", word, "6.1")
        assert done.returncode == Exit.USAGE
        assert f"expected one of {two[1].name}, {two[0].name}" in done.stderr


def test_removing_the_selected_kernel_leaves_none_selected(
    thalweg: Thalweg, two: tuple[Kernel, Kernel], cache: Path
) -> None:
    done = thalweg("kernel", "remove", two[1].name)
    assert "no kernel is selected" in done.stderr
    assert store.current() is None
    assert store.kernels() == [two[0]]
    assert not (cache / "current").is_symlink()


def test_removing_an_unselected_kernel_keeps_the_selection(thalweg: Thalweg, two: tuple[Kernel, Kernel]) -> None:
    assert thalweg("kernel", "remove", two[0].name).returncode == Exit.FINE
    assert store.current() == two[1]


def test_the_environment_variable_takes_precedence_and_is_reported(
    thalweg: Thalweg, two: tuple[Kernel, Kernel]
) -> None:
    done = thalweg("kernel", "list", "--json", THALWEG_UML_KERNEL=str(two[0].folder))
    assert [kernel["current"] for kernel in json.loads(done.stdout)["kernels"]] == [False, True]
    assert "THALWEG_UML_KERNEL is set" in done.stderr


def test_an_incomplete_kernel_is_ignored(thalweg: Thalweg, two: tuple[Kernel, Kernel]) -> None:
    (two[0].folder / "linux").unlink()
    (two[1].folder / "kernel.json").write_text('{"format": 1, "release"')
    assert store.kernels() == []
    assert store.current() is None


def test_the_doctor_reports_the_kernel_and_its_modification(thalweg: Thalweg, two: tuple[Kernel, Kernel]) -> None:
    def found() -> dict[str, str]:
        findings = json.loads(thalweg("doctor", "--json").stdout)["findings"]
        return next(finding for finding in findings if finding["what"] == "built kernel")

    assert found()["state"] == "ok"
    assert found()["found"].startswith("Linux 6.1.2, built 2026-01-02T00:00:00Z, in ")
    (two[1].folder / "linux").write_text("another program")
    assert found()["state"] == "warning"
    assert found()["todo"] == "thalweg kernel build"
