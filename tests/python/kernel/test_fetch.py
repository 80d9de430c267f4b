"""Kernels for guests are fetched with fake apt and dpkg, stored, selected and removed."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from thalweg.errors import Exit
from thalweg.kernel import guests

Thalweg = Callable[..., Any]

APT_CACHE = """\
case "$*" in
*"depends linux-image-cloud-amd64") echo "  Depends: linux-image-6.7.8-cloud-amd64" ;;
esac
"""

APT_GET = """\
echo "apt-get $*" >>calls
case "$*" in
*indextargets*) echo "http://archive.example/debian|bookworm-updates"; echo "http://archive.example/debian|bookworm" ;;
*update*) grep -q backports "$(echo "$*" | sed 's/.*SourceList=\\([^ ]*\\).*/\\1/')" || exit 100 ;;
*--print-uris*nothing*) exit 100 ;;
*--print-uris*) for name; do :; done; echo "'http://x/p.deb' ${name}_6.7.8-1_amd64.deb 1000000 SHA256:$SHA" ;;
*download*) for name; do :; done; echo "$name" >p.deb ;;
esac
"""

DPKG_DEB = """\
mkdir -p package/boot package/lib/modules/6.7.8/kernel/net/ipv4 package/lib/modules/6.7.8/kernel/drivers/gpu
mkdir -p package/lib/modules/6.7.8/kernel/fs/9p package/lib/modules/6.7.8/kernel/fs/ext4
case "$(cat p.deb)" in
*doc*) exit 0 ;;
esac
echo image >package/boot/vmlinuz-6.7.8-cloud-amd64
echo bbr >package/lib/modules/6.7.8/kernel/net/ipv4/tcp_bbr.ko
echo big >package/lib/modules/6.7.8/kernel/drivers/gpu/big.ko
echo 9p >package/lib/modules/6.7.8/kernel/fs/9p/9p.ko
echo ext4 >package/lib/modules/6.7.8/kernel/fs/ext4/ext4.ko
"""


@pytest.fixture
def vm(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of guests' kernels; fake apt and dpkg are on the PATH."""
    for name, script in {"apt-cache": APT_CACHE, "apt-get": APT_GET, "dpkg-deb": DPKG_DEB}.items():
        program = tmp_path / "bin" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(f"#!/bin/sh\n{script}".replace(">>calls", f">>{tmp_path / 'calls'}"))
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("SHA", "ab" * 32)
    for name in (guests.IMAGE_VARIABLE, guests.MODULES_VARIABLE):
        monkeypatch.delenv(name, raising=False)
    return cache.with_name("vm")


def calls(vm: Path, word: str) -> int:
    lines = (vm.parents[2] / "calls").read_text().splitlines()
    return sum(word in line for line in lines)


def test_the_guest_files_of_a_package_are_kept_and_used(thalweg: Thalweg, vm: Path) -> None:
    done = thalweg("kernel", "fetch")
    assert done.returncode == Exit.FINE, done.stderr
    folder = vm / "kernels" / "6.7.8-cloud-amd64"
    assert done.stdout == f"fetched: Linux 6.7.8-cloud-amd64, {folder}\n"
    assert (folder / "vmlinuz").read_text() == "image\n"
    modules = sorted(file.name for file in (folder / "modules").rglob("*.ko"))
    assert modules == ["9p.ko", "tcp_bbr.ko"], "no guest has a graphics card or a disk; programs need 9p"
    described = json.loads((folder / "kernel.json").read_text())
    assert (described["format"], described["image"], described["modules"]) == (1, "vmlinuz", "modules")
    assert guests.current() == guests.kernels()[0]
    assert "used  6.7.8-cloud-amd64  vm" in thalweg("kernel", "list").stdout
    assert sorted(path.name for path in vm.iterdir()) == ["current", "fetch.log", "kernels", "lock"]


def test_a_fetched_kernel_is_fetched_again_only_if_changed(thalweg: Thalweg, vm: Path) -> None:
    thalweg("kernel", "fetch")
    assert thalweg("kernel", "fetch").stdout.startswith("already there: ")
    assert calls(vm, " download linux") == 1
    (vm / "current" / "vmlinuz").write_text("another image")
    assert thalweg("kernel", "fetch").stdout.startswith("fetched: ")
    assert (vm / "current" / "vmlinuz").read_text() == "image\n"


def test_another_suite_uses_separate_package_lists(thalweg: Thalweg, vm: Path) -> None:
    done = thalweg("kernel", "fetch", "--suite", "bookworm-backports")
    assert done.returncode == Exit.FINE, done.stderr
    assert calls(vm, "SourceParts=/dev/null") == 3, "update, look, download"
    done = thalweg("kernel", "fetch", "--suite", "bookworm-nonsense")
    assert done.returncode == Exit.FAILED
    assert "has no suite `bookworm-nonsense`" in done.stderr


def test_invalid_packages_leave_no_files(thalweg: Thalweg, vm: Path) -> None:
    done = thalweg("kernel", "fetch", "nothing")
    assert done.returncode == Exit.MISSING
    assert "apt has no package `nothing`" in done.stderr
    done = thalweg("kernel", "fetch", "linux-doc")
    assert done.returncode == Exit.USAGE
    assert "the package linux-doc contains no kernel" in done.stderr
    assert not (vm / "kernels").exists()
    assert not list(vm.glob("fetch-*"))


def test_a_guest_kernel_is_selected_and_removed_like_a_built_one(
    thalweg: Thalweg, vm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    thalweg("kernel", "fetch")
    monkeypatch.setenv("SHA", "cd" * 32)
    thalweg("kernel", "fetch", "linux-image-amd64")
    second = "6.7.8-cloud-amd64-cdcdcdcd"
    assert {kernel.name for kernel in guests.kernels()} == {"6.7.8-cloud-amd64", second}, "one release, two packages"
    assert thalweg("kernel", "use", "6.7.8-cloud-amd64").returncode == Exit.FINE
    current = guests.current()
    assert current
    assert current.name == "6.7.8-cloud-amd64"
    assert "no kernel is selected" in thalweg("kernel", "remove", "6.7.8-cloud-amd64").stderr
    assert [kernel.name for kernel in guests.kernels()] == [second]


def test_an_unknown_kernel_is_refused_before_anything_runs(thalweg: Thalweg, vm: Path, tmp_path: Path) -> None:
    scenario = tmp_path / "x.toml"
    scenario.write_text(
        'name = "x"\n[path]\nrate = "1Mbps"\nrtt = "9ms"\n[[flow]]\nname = "a"\ncc = "bbr"\nsize = "1kB"\n'
    )
    thalweg("kernel", "fetch")
    wrong = {
        ("run", str(scenario), "--engine", "vm", "--kernel", "6.9"): "expected an image, or one of 6.7.8-cloud-amd64",
        ("run", str(scenario), "--kernel", "6.7.8-cloud-amd64"): "hint: --engine vm --kernel 6.7.8-cloud-amd64",
        ("run", str(scenario), "--engine", "vm", "--kernel", "6.7.8-cloud-amd64", "--modules", "nothing"): "no folder",
        ("run", str(scenario), "--engine", "vm", "--modules", "x"): "--modules requires --kernel IMAGE",
        ("compare", str(scenario), "--kernel", "6.7.8-cloud-amd64"): "expected two guest kernels",
        ("compare", str(scenario), "x", "--kernel", "a", "--kernel", "b"): "cannot be combined with B or --by",
    }
    for words, message in wrong.items():
        done = thalweg(*words)
        assert done.returncode == Exit.USAGE, words
        assert message in done.stderr
    assert not (tmp_path / "runs").exists()
