"""Sources: trees that can be built, and the identity of trees."""

import shutil
import subprocess
from pathlib import Path

import pytest
from thalweg.errors import ThalwegError
from thalweg.kernel import commands
from thalweg.kernel.source import SourcePackage, SourceTree, tree_sha256, version_of


def test_the_version_is_that_of_the_makefile(tree: Path) -> None:
    assert version_of(tree) == "6.7.8-rc9"
    (tree / "Makefile").write_text("VERSION = 6\nPATCHLEVEL = 1\nSUBLEVEL =\nEXTRAVERSION =\n")
    assert version_of(tree) == "6.1"
    (tree / "Makefile").write_text("all:\n")
    assert version_of(tree) is None


@pytest.mark.parametrize(
    ("file", "text", "slug"),
    [
        ("Makefile", "VERSION = 5\nPATCHLEVEL = 10\nSUBLEVEL = 3\n", "old-kernel"),
        ("Makefile", "all:\n", "no-kernel-tree"),
        ("arch/um/Kconfig", "config HZ\n", "no-time-travel"),
        (".config", "CONFIG_A=y\n", "configured-tree"),
    ],
)
def test_a_tree_that_cannot_be_built_is_refused(tree: Path, file: str, text: str, slug: str) -> None:
    (tree / file).write_text(text)
    with pytest.raises(ThalwegError) as error:
        SourceTree.find(tree)
    assert error.value.code == slug


def test_a_tree_configured_in_place_is_refused_with_the_cleaning_command(tree: Path) -> None:
    (tree / ".config").write_text("")
    with pytest.raises(ThalwegError) as error:
        SourceTree.find(tree)
    assert f"make -C {tree} ARCH=um mrproper" in error.value.text()


def test_a_copy_of_a_tree_has_the_same_checksum(tree: Path, tmp_path: Path) -> None:
    shutil.copytree(tree, tmp_path / "copy")
    assert tree_sha256(tmp_path / "copy") == tree_sha256(tree)


@pytest.mark.parametrize("file", ["main.c", "net/ipv4/tcp.c", "arch/um/Makefile", "arch/x86/new.S"])
def test_compiled_files_change_the_checksum(tree: Path, file: str) -> None:
    before = tree_sha256(tree)
    (tree / file).parent.mkdir(parents=True, exist_ok=True)
    (tree / file).write_text("changed")
    assert tree_sha256(tree) != before


@pytest.mark.parametrize(
    "file", [".git", ".git/HEAD", "Documentation/a.rst", "arch/arm64/Makefile", "tools/testing/a.c"]
)
def test_other_files_do_not_change_the_checksum(tree: Path, file: str) -> None:
    before = tree_sha256(tree)
    (tree / file).parent.mkdir(parents=True, exist_ok=True)
    (tree / file).write_text("changed")
    assert tree_sha256(tree) == before


def test_a_build_folder_inside_the_tree_does_not_change_the_checksum(tree: Path) -> None:
    before = tree_sha256(tree)
    (tree / "build").mkdir()
    (tree / "build" / ".config").write_text("CONFIG_A=y\n")
    assert tree_sha256(tree) == before


def test_the_commit_and_uncommitted_changes_are_reported(tree: Path) -> None:
    git = ["git", "-C", str(tree), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "a"], ["tag", "v1"]):
        subprocess.run([*git, *words], check=True)
    assert SourceTree.find(tree).about.startswith(f"{tree} 6.7.8-rc9 (")
    assert not SourceTree.find(tree).about.endswith(", changed)")
    (tree / "main.c").write_text("changed")
    assert SourceTree.find(tree).about.endswith(", changed)")


def test_a_source_package_is_found_under_options_of_apt_and_fetched_under_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def read(command: list[str]) -> str:
        asked.append(command)
        if "depends" in command:
            return "linux-source\n  Depends: linux-source-7.2\n"
        return f"'any' {command[-1]}_7.2.13-1_all.deb 139 SHA256:ae95"

    asked: list[list[str]] = []
    monkeypatch.setattr(commands, "read", read)
    found = SourcePackage.find(["-oDir::Etc::SourceList=sid.list"])
    assert found.about == "linux-source-7.2 7.2.13-1"
    assert all("-oDir::Etc::SourceList=sid.list" in command for command in asked)
    assert found.options == ("-oDir::Etc::SourceList=sid.list",)
