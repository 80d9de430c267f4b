"""Builds with the real make and gcc, from a tree that takes a second, and every kind of failure."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from thalweg.errors import Exit
from thalweg.kernel import store

Thalweg = Callable[..., Any]

WITHIN_S = 60
"""Timeout of all waits in seconds."""


def files(folder: Path) -> dict[str, int]:
    """Return every file of a folder with its modification time."""
    return {str(path.relative_to(folder)): path.lstat().st_mtime_ns for path in folder.rglob("*")}


def only_programs(folder: Path, *names: str) -> str:
    """Create a folder with only some of this machine's programs, to be used as PATH."""
    folder.mkdir()
    for name in names:
        program = next(path for path in (Path("/usr/bin", name), Path("/bin", name)) if path.exists())
        (folder / name).symlink_to(program)
    return str(folder)


def test_a_kernel_is_built_once_and_described(thalweg: Thalweg, tree: Path, cache: Path) -> None:
    before = files(tree)
    done = thalweg("kernel", "build", "--source", str(tree))
    assert done.returncode == Exit.FINE, done.stderr
    assert done.stdout.startswith("built: Linux 6.7.8-rc9, ")
    folder = (cache / "current").resolve()
    description = json.loads((folder / "kernel.json").read_text())
    assert description["format"] == 1
    assert description["release"] == "6.7.8-rc9"
    assert description["source"] == f"{tree} 6.7.8-rc9"
    assert description["linux_sha256"] == store.sha256(folder / "linux")
    assert description["config_sha256"] == store.sha256(folder / "config")
    assert folder.name.startswith("6.7.8-rc9-")
    assert subprocess.run([folder / "linux"], capture_output=True, text=True).stdout == "6.7.8-rc9\n"
    assert files(tree) == before, "a developer's tree is only read"
    assert not list(cache.glob("build-*/")), "what a build takes is removed after it"

    when = (folder / "linux").stat().st_mtime_ns
    again = thalweg("kernel", "build", "--source", str(tree))
    assert again.stdout.startswith("already there: Linux 6.7.8-rc9")
    assert (folder / "linux").stat().st_mtime_ns == when


def test_kernel_builds_are_reproducible(thalweg: Thalweg, tree: Path) -> None:
    first = json.loads(thalweg("kernel", "build", "--source", str(tree), "--json").stdout)
    second = json.loads(thalweg("kernel", "build", "--source", str(tree), "--json", "--force").stdout)
    assert second["linux_sha256"] == first["linux_sha256"]
    assert second["folder"] == first["folder"]


def test_a_changed_file_yields_another_kernel(thalweg: Thalweg, tree: Path) -> None:
    thalweg("kernel", "build", "--source", str(tree))
    (tree / "main.c").write_text((tree / "main.c").read_text().replace("rc9", "mine"))
    done = thalweg("kernel", "build", "--source", str(tree))
    assert done.stdout.startswith("built:")
    listed = json.loads(thalweg("kernel", "list", "--json").stdout)["kernels"]
    assert [kernel["current"] for kernel in listed].count(True) == 1
    assert len({kernel["source_sha256"] for kernel in listed}) == 2


def test_custom_options_yield_another_kernel(thalweg: Thalweg, tree: Path, tmp_path: Path, cache: Path) -> None:
    (tmp_path / "more.config").write_text("CONFIG_TCP_CONG_LP=y\n# CONFIG_TCP_CONG_BIC is not set\n")
    thalweg("kernel", "build", "--source", str(tree))
    done = thalweg("kernel", "build", "--source", str(tree), "--config", "more.config")
    assert done.returncode == Exit.FINE, done.stderr
    config = (cache / "current" / "config").read_text()
    assert "CONFIG_TCP_CONG_LP=y\n" in config
    assert "# CONFIG_TCP_CONG_BIC is not set\n" in config
    assert "CONFIG_TCP_CONG_BIC=y" not in config


def test_options_without_effect_are_reported_with_their_dependencies(thalweg: Thalweg, tree: Path, cache: Path) -> None:
    Path("more.config").write_text("# two mistakes\nCONFIG_DROPPED=y\nCONFIG_HZ=1000\n")
    done = thalweg("kernel", "build", "--source", str(tree), "--config", "more.config")
    assert done.returncode == Exit.USAGE
    assert "CONFIG_DROPPED=y has no effect: the value is n; it depends on MOON and SUN" in done.stderr
    assert "--> more.config:2" in done.stderr
    assert not (cache / "current").exists()


def test_an_unknown_option_is_reported(thalweg: Thalweg, tree: Path) -> None:
    (tree / "net" / "Kconfig").write_text("")
    Path("more.config").write_text("CONFIG_DROPPED=y\n")
    done = thalweg("kernel", "build", "--source", str(tree), "--config", "more.config")
    assert "CONFIG_DROPPED does not exist in this kernel" in done.stderr


def test_a_build_that_fails_shows_the_end_of_its_log(thalweg: Thalweg, tree: Path, cache: Path) -> None:
    (tree / "main.c").write_text("int main(void) { return nothing; }\n")
    done = thalweg("kernel", "build", "--source", str(tree))
    assert done.returncode == Exit.FAILED
    assert "error[build-failed]: compiling the kernel failed (exit code 2)" in done.stderr
    assert "nothing" in done.stderr
    assert f"hint: to read the log: less {cache / 'build.log'}" in done.stderr
    assert "undeclared" in (cache / "build.log").read_text()
    assert not list(cache.glob("build-*/"))
    assert not list(cache.glob("6.*"))


def test_a_full_disk_is_reported_as_such(thalweg: Thalweg, tree: Path) -> None:
    makefile = (tree / "Makefile").read_text()
    (tree / "Makefile").write_text(makefile.replace("linux:", "linux:\n\tcat /dev/zero > /dev/full\n"))
    done = thalweg("kernel", "build", "--source", str(tree))
    assert done.returncode == Exit.CANNOT_WRITE
    assert "the disk is full" in done.stderr
    assert "XDG_CACHE_HOME=" in done.stderr


def test_a_build_of_a_tree_that_changes_is_discarded(thalweg: Thalweg, tree: Path, cache: Path) -> None:
    makefile = (tree / "Makefile").read_text()
    (tree / "Makefile").write_text(makefile + "\techo >> $(CURDIR)/main.c\n")
    done = thalweg("kernel", "build", "--source", str(tree))
    assert done.returncode == Exit.FAILED
    assert "changed during the build" in done.stderr
    assert not (cache / "current").exists()


def test_missing_programs_are_reported_with_their_packages(thalweg: Thalweg, tree: Path, tmp_path: Path) -> None:
    path = only_programs(tmp_path / "bin", "make", "gcc", "ld", "bc", "gzip")
    done = thalweg("kernel", "build", "--source", str(tree), PATH=path)
    assert done.returncode == Exit.MISSING
    assert "not installed: flex, bison" in done.stderr
    assert "hint: sudo apt-get install flex bison\n" in done.stderr


def test_without_apt_a_source_is_required(thalweg: Thalweg, tmp_path: Path, toolchain: None) -> None:
    path = only_programs(tmp_path / "bin", "make", "gcc", "ld", "flex", "bison", "bc", "gzip", "tar", "xz")
    done = thalweg("kernel", "build", PATH=path)
    assert done.returncode == Exit.MISSING
    assert "apt-get, which fetches the source package" in done.stderr
    assert "thalweg kernel build --source DIR" in done.stderr


def test_an_unwritable_cache_is_reported(thalweg: Thalweg, tree: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = thalweg("kernel", "build", "--source", str(tree), XDG_CACHE_HOME=str(tmp_path / "file"))
    assert done.returncode == Exit.CANNOT_WRITE
    assert f"`{tmp_path / 'file' / 'thalweg'}" in done.stderr
    assert "XDG_CACHE_HOME=" in done.stderr


def test_an_invalid_kernel_tree_is_refused(thalweg: Thalweg, tmp_path: Path, toolchain: None) -> None:
    done = thalweg("kernel", "build", "--source", str(tmp_path))
    assert done.returncode == Exit.USAGE
    assert f"`{tmp_path}` is not the source of a Linux kernel" in done.stderr


@pytest.fixture
def slow(tree: Path) -> Path:
    """Return the tree with a build step that takes longer than any test and writes its pid into a file."""
    makefile = (tree / "Makefile").read_text()
    (tree / "Makefile").write_text(
        makefile.replace("linux:", "linux:\n\techo $$$$ > $(O)/../../slow; exec sleep 1000\n")
    )
    return tree


def start_build(tree: Path, cache: Path) -> tuple[subprocess.Popen[str], int]:
    """Start a build as a user does; return it, and the pid of its slow step."""
    command = [sys.executable, "-m", "thalweg", "kernel", "build", "--source", str(tree)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    build = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + WITHIN_S
    while not (cache / "slow").exists() or not (cache / "slow").read_text():
        assert build.poll() is None, build.communicate()
        assert time.monotonic() < until
        time.sleep(0.02)
    return build, int((cache / "slow").read_text())


def is_running(process: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def ends(process: int) -> bool:
    until = time.monotonic() + WITHIN_S
    while is_running(process) and time.monotonic() < until:
        time.sleep(0.02)
    return not is_running(process)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_build_leaves_no_files(slow: Path, cache: Path, number: signal.Signals) -> None:
    build, part = start_build(slow, cache)
    build.send_signal(number)
    _, stdout = build.communicate(timeout=WITHIN_S)
    assert build.returncode == Exit.INTERRUPTED, stdout
    assert "interrupted" in stdout
    assert ends(part)
    assert not list(cache.glob("build-*/"))
    assert not (cache / "current").exists()


def test_the_same_command_succeeds_after_a_kill(thalweg: Thalweg, slow: Path, cache: Path) -> None:
    build, part = start_build(slow, cache)
    build.kill()
    build.communicate(timeout=WITHIN_S)
    assert ends(part), "compilers do not go on without us"
    assert list(cache.glob("build-*/"))
    (slow / "Makefile").write_text((slow / "Makefile").read_text().replace("sleep 1000", "true"))
    done = thalweg("kernel", "build", "--source", str(slow))
    assert done.returncode == Exit.FINE, done.stderr
    assert not list(cache.glob("build-*/"))


def test_concurrent_builds_do_not_interfere(thalweg: Thalweg, slow: Path, cache: Path) -> None:
    build, part = start_build(slow, cache)
    try:
        second = thalweg("kernel", "build", "--source", str(slow))
        assert second.returncode == Exit.FAILED
        assert f"another build is running in `{cache}` (process {build.pid})" in second.stderr
        assert is_running(part)
    finally:
        build.send_signal(signal.SIGINT)
        build.communicate(timeout=WITHIN_S)
